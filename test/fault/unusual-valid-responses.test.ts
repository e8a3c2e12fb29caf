import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { type Call, call, type Method } from '../kit/call.ts';
import { within } from '../kit/within.ts';
import { callOn, type FaultTestSetup, logLineOf, methods, startWithPayment } from './fault-contract.ts';

/** The status of each call without a fault. */
const expectedStatus = { GET: 200, POST: 201, DELETE: 202 } as const;

const validResponses: readonly (readonly [fault: Fault, status?: number])[] = [
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

/** Responses that ask for a pause, longer than any call may wait. */
const pauseResponses: readonly (readonly [fault: Fault, status: number])[] = [
  [{ name: 'status', status: 503, headers: { 'Retry-After': '20' } }, 503],
  [{ name: 'too-many-requests', retryAfterSeconds: 20 }, 429],
];

describe('unusual but valid response of the bank', { concurrency: 8 }, () => {
  for (const [fault, status] of validResponses) {
    for (const method of methods) {
      test(`passes through unchanged: ${method} ${JSON.stringify(fault)}`, async (t) => {
        const setup = await startWithPayment(t);
        const before = setup.bank.requests.length;
        setup.bank.injectFault(fault, { times: 1 });

        await assertPassedThrough(setup, callOn(setup, method), status ?? expectedStatus[method]);
        await assertPassedThrough(setup, callOn(setup, 'GET'), 200);
        assert.equal(setup.bank.requests.length - before, 2);
      });
    }
  }
});

/** An initiation has the product in common with a cancellation: nobody knows whose limit it is. */
const unaffected: Readonly<Record<Method, readonly Method[]>> = {
  GET: ['POST', 'DELETE'],
  POST: ['GET'],
  DELETE: ['GET', 'POST'],
};

describe('response of the bank that asks for a pause', { concurrency: 8 }, () => {
  for (const [fault, status] of pauseResponses) {
    for (const method of methods) {
      test(`passes through unchanged, and only the next call of this kind is not sent: ${method} ${JSON.stringify(fault)}`, async (t) => {
        const setup = await startWithPayment(t);
        const before = setup.bank.requests.length;
        setup.bank.injectFault(fault, { times: 1 });

        await assertPassedThrough(setup, callOn(setup, method), status);
        const reply = await within(4_000, 'a refusal', call(setup.gateway.url, callOn(setup, method)));
        assert.equal(reply.status, 503);
        assert.equal(reply.header('penstock-error'), 'QUEUE_TIMEOUT');
        assert.match(reply.header('retry-after') ?? '', /^(19|20)$/);
        assert.match(
          reply.text,
          /The bank has asked for a pause of [a-z ]+; nothing was sent\. Try again in (19|20) s\./,
        );
        assert.equal(setup.bank.requests.length - before, 1);
        for (const other of unaffected[method])
          await assertPassedThrough(setup, callOn(setup, other), expectedStatus[other]);
      });
    }
  }
});

async function assertPassedThrough(
  { gateway }: FaultTestSetup,
  request: Call,
  status: number,
): Promise<void> {
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
