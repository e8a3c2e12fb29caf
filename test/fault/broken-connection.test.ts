import { describe } from 'node:test';
import { type ExpectedFailure, testEveryMethodFails } from './fault-contract.ts';

/** The request was on its way: what became of it, only the bank knows. */
const unknown: ExpectedFailure = {
  status: 504,
  code: 'OUTCOME_UNKNOWN',
  proxyError: 'connection_terminated',
};

/** The bank has seen the request, and what it had to say is lost in part. */
const cutOff: ExpectedFailure = {
  status: 502,
  code: 'UPSTREAM_MALFORMED',
  proxyError: 'http_response_incomplete',
};

describe('a connection to the bank that breaks (E8, E9)', { concurrency: true }, () => {
  testEveryMethodFails({ name: 'reset' }, unknown);
  testEveryMethodFails({ name: 'reset', strikes: 'before-reading' }, unknown);
  testEveryMethodFails({ name: 'close-before-answering' }, unknown);
  testEveryMethodFails({ name: 'reset-mid-answer' }, cutOff);
  testEveryMethodFails({ name: 'half-answer' }, cutOff);
  testEveryMethodFails({ name: 'half-chunked-answer' }, cutOff);
});
