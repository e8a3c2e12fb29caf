import { describe } from 'node:test';
import { everyCallFails, type Failure, short } from './promises.ts';

const unknown: Failure = { status: 504, code: 'OUTCOME_UNKNOWN', proxyError: 'http_response_timeout' };

describe('a bank that is not done when the deadline passes (E8)', { concurrency: true }, () => {
  everyCallFails({ name: 'never-answer' }, unknown, short);
  everyCallFails({ name: 'drip', everyMs: 20 }, unknown, short);
  everyCallFails({ name: 'drip', everyMs: 20, from: 'body' }, unknown, short);
  everyCallFails({ name: 'latency', ms: 10_000 }, unknown, short);
});
