import { describe } from 'node:test';
import { type ExpectedFailure, testEveryMethodFails } from './fault-contract.ts';

/** The request was sent, and its outcome is unknown. */
const unknown: ExpectedFailure = {
  status: 504,
  code: 'OUTCOME_UNKNOWN',
  proxyError: 'connection_terminated',
};

/** The bank has processed the request, but its response is incomplete. */
const cutOff: ExpectedFailure = {
  status: 502,
  code: 'UPSTREAM_MALFORMED',
  proxyError: 'http_response_incomplete',
};

describe('broken connection to the bank', { concurrency: 8 }, () => {
  testEveryMethodFails({ name: 'reset' }, unknown);
  testEveryMethodFails({ name: 'reset', strikes: 'before-reading' }, unknown);
  testEveryMethodFails({ name: 'close-before-answering' }, unknown);
  testEveryMethodFails({ name: 'reset-mid-answer' }, cutOff);
  testEveryMethodFails({ name: 'half-answer' }, cutOff);
  testEveryMethodFails({ name: 'half-chunked-answer' }, cutOff);
});
