import { describe } from 'node:test';
import { everyCallFails, type Failure } from './promises.ts';

/** The request was on its way: what became of it, only the bank knows. */
const unknown: Failure = { status: 504, code: 'OUTCOME_UNKNOWN', proxyError: 'connection_terminated' };

/** The bank has seen the request, and what it had to say is lost in part. */
const cutOff: Failure = { status: 502, code: 'UPSTREAM_MALFORMED', proxyError: 'http_response_incomplete' };

describe('a connection to the bank that breaks (E8, E9)', { concurrency: true }, () => {
  everyCallFails({ name: 'reset' }, unknown);
  everyCallFails({ name: 'reset', strikes: 'before-reading' }, unknown);
  everyCallFails({ name: 'close-before-answering' }, unknown);
  everyCallFails({ name: 'reset-mid-answer' }, cutOff);
  everyCallFails({ name: 'half-answer' }, cutOff);
  everyCallFails({ name: 'half-chunked-answer' }, cutOff);
});
