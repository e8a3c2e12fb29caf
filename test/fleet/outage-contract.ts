/** An outage of Redis under load: known statuses are served, new payments are refused, and nothing is lost. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Call, repeatWhile } from '../kit/call.ts';
import { comparableResponse } from '../kit/comparable-response.ts';
import { type Fleet, type Instance, startFleet } from '../kit/fleet.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import { impatientState } from '../kit/gateway.ts';
import { type Exchange, failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import type { ClientName } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** How the outage of Redis begins and ends. */
export interface Outage {
  begin(): void | Promise<void>;
  end(): void | Promise<void>;
}

const statusOf = (id: string): Call => ({ method: 'GET', path: `${transfersPath}/${id}/status` });

/** A read every 5 ms, of 50 payments that both instances remember, and an outage in the middle of it. */
export async function testOutage(t: TestContext, redis: FleetRedis, outage: Outage): Promise<void> {
  const fleet = await startFleet(t, redis, { state: impatientState });
  const instances = [fleet.one, fleet.other];
  await switchEnvironment(fleet.one, 'production');
  const ids = await Promise.all(
    Array.from({ length: 50 }, (_, number) => instanceFor(fleet, number).pay('shop')),
  );
  for (const instance of instances) {
    await Promise.all(
      ids.map((id) => repeatWhile('STATE_UNAVAILABLE', () => instance.ask('shop', statusOf(id)))),
    );
  }
  const knownToOne = await fleet.one.pay('shop', 'sandbox');

  const load = startLoad(t, { perSecond: 200 }, (number) =>
    measureExchange(statusOf(ids[number % ids.length] ?? ''), (one) =>
      instanceFor(fleet, Math.floor(number / 50)).ask('shop', one),
    ),
  );
  await load.hasSent(200);
  const { id } = await acceptedAtTheBeginningOf(outage, fleet);
  const beganAtMs = performance.now();
  const paymentsThen = paymentsAt(fleet);
  await assertRefused(fleet, ids[0] ?? '', knownToOne);
  const inTheMoment = await id;
  assert.equal((await fleet.one.ask('shop', statusOf(inTheMoment))).status, 200);
  assert.deepEqual(paymentsAt(fleet), paymentsThen);
  const overAtMs = performance.now();
  await outage.end();
  await Promise.all(instances.map(recovered));

  const exchanges = await load.stop();
  const during = exchanges.filter(({ sentAtMs }) => sentAtMs >= beganAtMs && sentAtMs < overAtMs);
  assert.ok(during.length > 0);
  assert.deepEqual(failuresIn(exchanges), {});
  await assertNothingIsLost(fleet, [...ids, knownToOne], inTheMoment);
}

/** Redis has kept its data and receives what it missed, and both instances follow a switch. */
async function assertNothingIsLost(fleet: Fleet, known: readonly string[], untold: string): Promise<void> {
  await until(
    20_000,
    'the other instance knows the payment of the beginning',
    async () => (await fleet.other.ask('shop', statusOf(untold))).status === 200,
  );
  for (const id of known) {
    const reply = await repeatWhile('STATE_UNAVAILABLE', () => fleet.other.ask('shop', statusOf(id)));
    assert.equal(reply.status, 200);
  }
  for (const instance of [fleet.one, fleet.other]) {
    const { active, version } = await readAdminApi(instance, '/api/environments');
    assert.deepEqual([active, version], ['production', 2]);
    assert.ok(!instance.logged().some(({ message }) => /was emptied/.test(String(message))));
  }
  await switchEnvironment(fleet.other, 'sandbox');
  for (const instance of [fleet.one, fleet.other]) assert.match(await instance.pay('shop'), /^sandbox-/);
}

const instanceFor = ({ one, other }: Fleet, number: number): Instance => (number % 2 === 0 ? one : other);

const paymentsAt = ({ sandbox, production }: Fleet) => [sandbox.payments.length, production.payments.length];

/** Begins the outage when the bank has accepted a payment, before it responds. @returns the promise of the payment's id */
async function acceptedAtTheBeginningOf(outage: Outage, { one, production }: Fleet) {
  const before = production.payments.length;
  production.injectFault({ name: 'latency', ms: 150 }, { times: 1, operation: 'initiatePayment' });
  const answer = one.pay('shop');
  await production.waitUntil(() => production.payments.length === before + 1);
  await outage.begin();
  return { id: answer };
}

/** How often each attempt is made during an outage. */
const rounds = 10;

/** Sends requests that need the state to both instances; all are refused, and none reaches a bank. */
async function assertRefused(
  { one, other, sandbox, production }: Fleet,
  foreign: string,
  unknownToOther: string,
): Promise<void> {
  const attempts: readonly (readonly [Instance, ClientName, Call])[] = [
    ...[one, other].flatMap((instance): readonly (readonly [Instance, ClientName, Call])[] => [
      [instance, 'shop', initiation],
      [instance, 'shop', statusOf('never-seen')],
      [instance, 'rival', statusOf(foreign)],
    ]),
    [other, 'shop', statusOf(unknownToOther)],
    [other, 'shop', { method: 'DELETE', path: `${transfersPath}/${unknownToOther}` }],
  ];
  const refused: Exchange[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const [instance, client, attempt] of attempts)
      refused.push(await measureExchange(attempt, (call) => instance.ask(client, call)));
  }

  for (const { came } of refused)
    assert.equal(came instanceof Error ? came : came.header('Penstock-Error'), 'STATE_UNAVAILABLE');
  const [first, ...more] = refused.filter(({ call: { method } }) => method === 'GET').map(seenIn);
  for (const answer of more)
    assert.deepEqual(answer, first, 'the response does not reveal whether the payment exists');
  assert.equal(callsOn('never-seen', sandbox) + callsOn('never-seen', production), 0);
  assert.equal(callsOn(unknownToOther, sandbox), 0);
}

const seenIn = ({ came }: Exchange) => (came instanceof Error ? came : comparableResponse(came));

const callsOn = (id: string, { requests }: SimulatedBank) =>
  requests.filter(({ url }) => url.includes(id)).length;

/** Waits until an instance takes new payments again, and knows which payments it does not know. */
const recovered = (instance: Instance): Promise<void> =>
  until(20_000, 'the instance works again', async () => {
    const [paid, unknown] = [
      await instance.ask('shop', initiation),
      await instance.ask('shop', statusOf('never-seen')),
    ];
    return paid.status === 201 && unknown.header('Penstock-Error') === 'PAYMENT_UNKNOWN';
  });
