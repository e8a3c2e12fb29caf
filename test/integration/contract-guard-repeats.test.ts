/** A repeated X-Request-ID is answered before any rule of the contract, on every instance; only a new one is checked. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { root } from '../kit/command.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { outcomeOf } from '../kit/writes.ts';

const life = scopeOfAllTests();

/** Two instances with one Redis, in front of one bank, for all tests of this file. */
const startPair = lazy(async () => {
  const bank = await startBank(life);
  const createState = redisStateFactory(await sharedRedisUrl(life));
  const sections = sectionsOf(bank, {});
  const one = await startGateway(life, sections, createState());
  return { bank, one, other: await startGateway(life, sections, createState()) };
});

const sectionsOf = ({ baseUrl }: SimulatedBank, contract: object) => ({
  environments: { sandbox: { baseUrl, standardVersion: '1.3.11', contract } },
  idempotency: { wait: '50ms' },
});

interface Pair {
  readonly bank: SimulatedBank;
  readonly one: GatewayUnderTest;
  readonly other: GatewayUnderTest;
  /** Both instances use this configuration of the contract from now on. */
  use(contract: object): Promise<void>;
  /** How often the bank received a request with this `X-Request-ID`, and how many payments it made of it. */
  atBank(requestId: string): readonly [requests: number, payments: number];
}

/** @param contract of both instances at first */
async function pairWith(t: TestContext, contract: object): Promise<Pair> {
  const pair = await startPair();
  const { bank, one, other } = pair;
  const use = async (next: object) => {
    for (const gateway of [one, other]) await gateway.reload(sectionsOf(bank, next));
  };
  await use(contract);
  t.after(() => bank.clearFaults());
  const atBank = (requestId: string) =>
    [
      bank.requests.filter(({ rawHeaders }) => rawHeaders.includes(requestId)).length,
      bank.payments.filter((payment) => payment.requestId === requestId).length,
    ] as const;
  return { ...pair, use, atBank };
}

const body = jsonOf({ text: initiation.body });
const errorOf = (reply: Reply) => reply.header('Penstock-Error');

/** A payment with these fields in its body, without some headers. */
const payment = (requestId: string, changes: object = {}, without: readonly string[] = []): Call => ({
  ...initiation,
  requestId,
  headers: initiation.headers.filter(([name]) => !without.includes(name)),
  body: JSON.stringify({ ...body, ...changes }),
});
/** Violates the standard: the bank would refuse it. */
const withoutAmount = (requestId: string) => payment(requestId, { instructedAmount: undefined });

describe('a payment that was sent before a rule applied to it', { skip: skipWithoutRedis }, () => {
  test('is replayed by both instances after a reload from report to enforce', async (t) => {
    const { one, other, use, atBank } = await pairWith(t, { requests: 'report' });
    const requestId = randomUUID();
    const first = await call(one.url, withoutAmount(requestId));
    assert.equal(first.status, 201, first.text);
    await use({ requests: 'enforce' });

    for (const gateway of [other, one]) {
      const repeat = await call(gateway.url, withoutAmount(requestId));
      assert.equal(outcomeOf(repeat), '201 replayed');
      assert.equal(repeat.text, first.text);
    }
    assert.deepEqual(atBank(requestId), [1, 1]);
  });

  test('is replayed after a reload with a stricter profile and a required header', async (t) => {
    const { one, other, use, atBank } = await pairWith(t, { requests: 'enforce' });
    const address = { creditorAddress: { country: 'DE' } };
    const send = (gateway: GatewayUnderTest, requestId: string) =>
      call(gateway.url, payment(requestId, address, ['TPP-Redirect-URI', 'TPP-Redirect-Preferred']));
    const requestId = randomUUID();
    assert.equal(outcomeOf(await send(one, requestId)), '201');

    const profile = join(root, 'examples/contract-profiles/stricter-bank.yaml');
    await use({ requests: 'enforce', profile });
    assert.equal(outcomeOf(await send(other, requestId)), '201 replayed');
    assert.equal(outcomeOf(await send(one, randomUUID())), '400 CONTRACT_VIOLATED');

    await use({ requests: 'enforce', profile, requireHeaders: { initiatePayment: ['TPP-Redirect-URI'] } });
    assert.equal(outcomeOf(await send(other, requestId)), '201 replayed');
    assert.equal(outcomeOf(await send(one, randomUUID())), '400 HEADER_MALFORMED');
    assert.deepEqual(atBank(requestId), [1, 1]);
  });

  test('is replayed on the next day, which makes its day of execution a day in the past', async (t) => {
    const day = '2027-03-01';
    const enforced = { requests: 'enforce', timeZone: 'UTC' };
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse(`${day}T23:59:50Z`) });
    const { one, other, use, atBank } = await pairWith(t, enforced);
    const today = (requestId: string) => payment(requestId, { requestedExecutionDate: day });
    const reported = (requestId: string) =>
      payment(requestId, { requestedExecutionDate: day, instructedAmount: undefined });
    const [checked, unchecked] = [randomUUID(), randomUUID()];
    assert.equal(outcomeOf(await call(one.url, today(checked))), '201');
    await use({ requests: 'report' });
    assert.equal(outcomeOf(await call(one.url, reported(unchecked))), '201');

    t.mock.timers.setTime(Date.parse(`${day}T23:59:50Z`) + 20_000);
    await use(enforced);
    for (const gateway of [other, one]) {
      assert.equal(outcomeOf(await call(gateway.url, today(checked))), '201 replayed');
      assert.equal(outcomeOf(await call(gateway.url, reported(unchecked))), '201 replayed');
    }
    const refused = await call(other.url, today(randomUUID()));
    assert.equal(errorOf(refused), 'CONTRACT_VIOLATED', refused.text);
    assert.match(refused.text, /body\/requestedExecutionDate \(date-in-past\)/);
    assert.deepEqual([checked, unchecked].map(atBank), [
      [1, 1],
      [1, 1],
    ]);
  });

  test('is in flight for a repeat, and replayed when the bank has answered', async (t) => {
    const { bank, one, other, use, atBank } = await pairWith(t, { requests: 'report' });
    const requestId = randomUUID();
    bank.injectFault({ name: 'latency', ms: 600_000 }, { times: 1 });
    const first = call(one.url, withoutAmount(requestId));
    await bank.waitUntil(() => atBank(requestId)[1] === 1);
    await use({ requests: 'enforce' });

    for (const gateway of [other, one])
      assert.equal(outcomeOf(await call(gateway.url, withoutAmount(requestId))), '409 DUPLICATE_IN_FLIGHT');
    bank.endDelays();
    assert.equal(outcomeOf(await first), '201');
    for (const gateway of [other, one])
      assert.equal(outcomeOf(await call(gateway.url, withoutAmount(requestId))), '201 replayed');
    assert.deepEqual(atBank(requestId), [1, 1]);
  });

  test('is in doubt for a repeat if the bank has not answered', async (t) => {
    const { bank, one, other, use, atBank } = await pairWith(t, { requests: 'report' });
    const requestId = randomUUID();
    bank.injectFault({ name: 'close-before-answering' }, { times: 1 });
    assert.equal(outcomeOf(await call(one.url, withoutAmount(requestId))), '504 OUTCOME_UNKNOWN');
    await use({ requests: 'enforce' });

    for (const gateway of [other, one])
      assert.equal(outcomeOf(await call(gateway.url, withoutAmount(requestId))), '409 DUPLICATE_IN_DOUBT');
    assert.deepEqual(atBank(requestId), [1, 1]);
  });
});

describe('a new payment that is refused', { skip: skipWithoutRedis }, () => {
  test('can be corrected with the same X-Request-ID at the other instance, and is then made once', async (t) => {
    const { one, other, atBank } = await pairWith(t, {
      requests: 'enforce',
      requireHeaders: { initiatePayment: ['TPP-Redirect-URI'] },
    });
    const withoutHeader = (requestId: string) => payment(requestId, {}, ['TPP-Redirect-URI']);
    for (const [wrong, code, later] of [
      [withoutAmount, 'CONTRACT_VIOLATED', '409 DUPLICATE_MISMATCH'],
      [withoutHeader, 'HEADER_MALFORMED', '201 replayed'],
    ] as const) {
      const requestId = randomUUID();
      assert.equal(outcomeOf(await call(one.url, wrong(requestId))), `400 ${code}`);
      assert.equal(outcomeOf(await call(other.url, wrong(requestId))), `400 ${code}`);
      assert.deepEqual(atBank(requestId), [0, 0]);

      assert.equal(outcomeOf(await call(other.url, payment(requestId))), '201');
      assert.equal(outcomeOf(await call(one.url, payment(requestId))), '201 replayed');
      assert.equal(outcomeOf(await call(one.url, wrong(requestId))), later);
      assert.deepEqual(atBank(requestId), [1, 1]);
    }
  });
});
