/** Monotonic reads and read-your-writes in random histories over HTTP, on two instances and a real Redis. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { call, jsonOf } from '../kit/call.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { transfersPath } from '../kit/request.ts';
import { seededRuns } from '../kit/seeded-runs.ts';
import { createStatusOrderChecker, statusCode, statusNumber } from '../kit/status-order.ts';
import { type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';

const step = fc.record({
  what: fc.constantFrom(
    'read',
    'read',
    'read',
    'refetch',
    'signed read',
    'cancel',
    'authorise',
    'change status',
  ),
  instance: fc.nat(1),
  token: fc.constantFrom('one', 'two'),
  /** Delays of the bank before and after it decides the response. */
  beforeMs: fc.nat(4),
  afterMs: fc.nat(8),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
const workers = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 6 });

/** A bank whose payments only change forward, with the delays that each request names. */
function createDelayedBank() {
  const counts = new Map<string, number>();
  const paymentIn = ({ path }: StubRequest) => path.split('/')[5] ?? '';
  const changeStatus = (payment: string) => void counts.set(payment, (counts.get(payment) ?? 0) + 1);
  const respond = async (request: StubRequest) => {
    await setTimeout(Number(request.header('x-before')));
    if (request.method !== 'GET') changeStatus(paymentIn(request));
    const status = statusCode(counts.get(paymentIn(request)) ?? 0);
    await setTimeout(Number(request.header('x-after')));
    return statusResponse(status);
  };
  return { respond, changeStatus };
}

describe('random histories on two instances', { skip: skipWithoutRedis }, () => {
  test('never serves a TPP a status older than one it has seen or than its own write', async (t) => {
    const { respond, changeStatus } = createDelayedBank();
    const bank = await startStubBank(t, respond);
    const instances = await startInstances(t, bank, await sharedRedisUrl(t));
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    let payments = 0;

    const run = async (checker: ReturnType<typeof createStatusOrderChecker>, payment: string, one: Step) => {
      if (one.what === 'change status') return changeStatus(payment);
      const lastSeen = checker.lastSeen('tpp', payment);
      const request = requestFor(payment, one);
      const reply = await call(instances[one.instance]?.url ?? '', request, agent);
      assert.equal(reply.status, 200, reply.text);
      const status = statusNumber(String(jsonOf(reply).transactionStatus));
      if (request.method !== 'GET') return checker.onWrite('tpp', payment, status);
      checker.onRead('tpp', payment, lastSeen, status);
    };

    await fc.assert(
      fc.asyncProperty(workers, async (all) => {
        const checker = createStatusOrderChecker();
        const payment = `payment-${payments++}`;
        const done = all.map(async (steps) => {
          for (const one of steps) await run(checker, payment, one);
        });
        await Promise.all(done);
      }),
      seededRuns(t, 30),
    );
  });
});

function requestFor(payment: string, { what, token, beforeMs, afterMs }: Step) {
  const path = `${transfersPath}/${payment}`;
  const headers = [
    ['Authorization', token],
    ['X-Before', String(beforeMs)],
    ['X-After', String(afterMs)],
  ] as const;
  switch (what) {
    case 'cancel':
      return { method: 'DELETE', path, headers };
    case 'authorise':
      return { method: 'POST', path: `${path}/authorisations`, headers, body: '{}' };
    case 'signed read':
      return { method: 'GET', path: `${path}/status`, headers: [...headers, ['Signature', 'a'] as const] };
    case 'refetch':
      return {
        method: 'GET',
        path: `${path}/status`,
        headers: [...headers, ['Cache-Control', 'no-cache'] as const],
      };
    default:
      return { method: 'GET', path: `${path}/status`, headers };
  }
}
