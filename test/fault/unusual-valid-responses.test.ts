import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { type Call, call } from '../kit/call.ts';
import { within } from '../kit/within.ts';
import { callOn, type FaultTestSetup, logLineOf, methods, startWithPayment } from './fault-contract.ts';

/** What each call is answered by a bank that is well. */
const proper = { GET: 200, POST: 201, DELETE: 202 } as const;

const passes: readonly (readonly [fault: Fault, status?: number])[] = [
  [{ name: 'latency', ms: 50 }],
  [{ name: 'interim-answers' }],
  [{ name: 'interim-answers', statuses: [102, 103, 103, 100] }],
  [{ name: 'gzip-answer' }],
  [{ name: 'connection-close' }],
  [{ name: 'status', status: 500 }, 500],
  [{ name: 'status', status: 503 }, 503],
  [{ name: 'status', status: 504 }, 504],
  [{ name: 'status', status: 302, headers: { Location: 'https://elsewhere.example/' } }, 302],
  [{ name: 'status', status: 413, strikes: 'before-reading' }, 413],
];

/** Those by which the bank asks to be left alone, for longer than any call may wait. */
const pauses: readonly (readonly [fault: Fault, status: number])[] = [
  [{ name: 'status', status: 503, headers: { 'Retry-After': '20' } }, 503],
  [{ name: 'too-many-requests', retryAfterSeconds: 20 }, 429],
];

describe('an answer of the bank that is odd but right', { concurrency: true }, () => {
  for (const [fault, status] of passes) {
    for (const method of methods) {
      test(`${method} ${JSON.stringify(fault)} passes as the bank gave it, asked for once`, async (t) => {
        const line = await startWithPayment(t);
        const before = line.bank.requests.length;
        line.bank.injectFault(fault, { times: 1 });

        await assertPasses(line, callOn(line, method), status ?? proper[method]);
        await assertPasses(line, callOn(line, 'GET'), 200);
        assert.equal(line.bank.requests.length - before, 2);
      });
    }
  }
});

describe('an answer by which the bank asks for a pause', { concurrency: true }, () => {
  for (const [fault, status] of pauses) {
    for (const method of methods) {
      test(`${method} ${JSON.stringify(fault)} passes as the bank gave it, and the next call is not sent`, async (t) => {
        const line = await startWithPayment(t);
        const before = line.bank.requests.length;
        line.bank.injectFault(fault, { times: 1 });

        await assertPasses(line, callOn(line, method), status);
        for (const next of methods) {
          const reply = await within(4_000, 'a refusal', call(line.gateway.url, callOn(line, next)));
          assert.equal(reply.status, 503);
          assert.equal(reply.header('penstock-error'), 'QUEUE_TIMEOUT');
          assert.match(reply.header('retry-after') ?? '', /^(19|20)$/);
          assert.match(reply.text, /The bank asks for a pause; nothing was sent\. Try again in (19|20) s\./);
        }
        assert.equal(line.bank.requests.length - before, 1);
      });
    }
  }
});

async function assertPasses({ gateway }: FaultTestSetup, request: Call, status: number): Promise<void> {
  const reply = await within(4_000, 'an answer', call(gateway.url, request));
  assert.equal(reply.status, status);
  assert.equal(reply.header('penstock-error'), undefined);
  assert.equal(reply.header('proxy-status'), undefined);
  assert.equal(reply.header('x-request-id'), request.requestId);
  assert.ok(reply.text.length > 0);

  const logged = logLineOf(gateway, request);
  assert.equal(logged.status, status);
  assert.equal(logged.servedFrom, 'bank');
}
