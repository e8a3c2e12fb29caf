/** Random histories over HTTP, on two instances and a real Redis: time never runs backwards for a TPP. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { call, jsonOf } from '../kit/call.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { transfers } from '../kit/request.ts';
import { seeded } from '../kit/seeded.ts';
import { createStatusOrderChecker, statusCode, statusNumber } from '../kit/status-order.ts';
import { type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';

const step = fc.record({
  what: fc.constantFrom('read', 'read', 'read', 'ask the bank', 'sign', 'cancel', 'authorise', 'move on'),
  instance: fc.nat(1),
  token: fc.constantFrom('one', 'two'),
  /** How long the bank takes, before and after it has decided: milliseconds. */
  before: fc.nat(4),
  after: fc.nat(8),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
const workers = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 6 });

/** A bank whose payments only ever move on, as slow as each request wants it. */
function createMovingBank() {
  const counts = new Map<string, number>();
  const paymentIn = ({ path }: StubRequest) => path.split('/')[5] ?? '';
  const moveOn = (payment: string) => void counts.set(payment, (counts.get(payment) ?? 0) + 1);
  const says = async (asked: StubRequest) => {
    await setTimeout(Number(asked.header('x-before')));
    if (asked.method !== 'GET') moveOn(paymentIn(asked));
    const status = statusCode(counts.get(paymentIn(asked)) ?? 0);
    await setTimeout(Number(asked.header('x-after')));
    return statusResponse(status);
  };
  return { says, moveOn };
}

describe('on two instances', { skip: skipWithoutRedis }, () => {
  test('no TPP sees a status older than one it has seen, or one from before its own write', async (t) => {
    const { says, moveOn } = createMovingBank();
    const bank = await startStubBank(t, says);
    const instances = await startInstances(t, bank, await sharedRedisUrl(t));
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    let payments = 0;
    let reads = 0;

    const take = async (witness: ReturnType<typeof createStatusOrderChecker>, payment: string, one: Step) => {
      if (one.what === 'move on') return moveOn(payment);
      const known = witness.lastSeen('tpp', payment);
      const request = requestFor(payment, one);
      const reply = await call(instances[one.instance]?.url ?? '', request, agent);
      assert.equal(reply.status, 200, reply.text);
      const status = statusNumber(String(jsonOf(reply).transactionStatus));
      if (request.method !== 'GET') return witness.onWrite('tpp', payment, status);
      reads++;
      witness.onRead('tpp', payment, known, status);
    };

    await fc.assert(
      fc.asyncProperty(workers, async (all) => {
        const witness = createStatusOrderChecker();
        const payment = `payment-${payments++}`;
        const done = all.map(async (steps) => {
          for (const one of steps) await take(witness, payment, one);
        });
        await Promise.all(done);
      }),
      seeded(t, 60),
    );
    t.diagnostic(`${reads} reads, ${bank.requests.length} requests at the bank`);
  });
});

function requestFor(payment: string, { what, token, before, after }: Step) {
  const path = `${transfers}/${payment}`;
  const headers = [
    ['Authorization', token],
    ['X-Before', String(before)],
    ['X-After', String(after)],
  ] as const;
  switch (what) {
    case 'cancel':
      return { method: 'DELETE', path, headers };
    case 'authorise':
      return { method: 'POST', path: `${path}/authorisations`, headers, body: '{}' };
    case 'sign':
      return { method: 'GET', path: `${path}/status`, headers: [...headers, ['Signature', 'a'] as const] };
    case 'ask the bank':
      return {
        method: 'GET',
        path: `${path}/status`,
        headers: [...headers, ['Cache-Control', 'no-cache'] as const],
      };
    default:
      return { method: 'GET', path: `${path}/status`, headers };
  }
}
