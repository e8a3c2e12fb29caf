import { describe } from 'node:test';
import { shortDeadlines } from '../kit/gateway.ts';
import { type ExpectedFailure, testEveryMethodFails } from './fault-contract.ts';

const unknown: ExpectedFailure = {
  status: 504,
  code: 'OUTCOME_UNKNOWN',
  proxyError: 'http_response_timeout',
};

describe('bank that has not responded completely at the deadline', { concurrency: 8 }, () => {
  testEveryMethodFails({ name: 'never-answer' }, unknown, shortDeadlines);
  testEveryMethodFails({ name: 'drip', everyMs: 20 }, unknown, shortDeadlines);
  testEveryMethodFails({ name: 'drip', everyMs: 20, from: 'body' }, unknown, shortDeadlines);
  testEveryMethodFails({ name: 'latency', ms: 600_000 }, unknown, shortDeadlines);
});
