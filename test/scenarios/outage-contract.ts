/** An outage of Redis under load: reads and payments go on, and nothing is lost. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import type { Call } from '../kit/call.ts';
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

/** A read or a payment every 5 ms on both instances, and an outage in the middle of them. */
export async function testOutage(t: TestContext, redis: FleetRedis, outage: Outage): Promise<void> {
  const fleet = await startFleet(t, redis, { state: impatientState });
  await switchEnvironment(fleet.one, 'production');
  await untilFollowed(fleet.other, 'production');
  const ids = await Promise.all(
    Array.from({ length: 50 }, (_, number) => instanceFor(fleet, number).pay('shop')),
  );
  const inSandbox = await fleet.one.pay('shop', 'sandbox');

  const load = startLoad(t, { perSecond: 200 }, (number) =>
    measureExchange(
      Math.floor(number / 2) % 4 === 0 ? initiation : statusOf(ids[number % ids.length] ?? ''),
      (one) => instanceFor(fleet, number).ask('shop', one),
    ),
  );
  await load.hasSent(200);
  const answer = await acceptedAtTheBeginningOf(outage, fleet);
  await assertServed(fleet, ids[0] ?? '', inSandbox);
  const inTheMoment = await answer.id;
  await switchEnvironment(fleet.other, 'sandbox');
  await untilFollowed(fleet.one, 'sandbox');
  assert.match(await fleet.one.pay('shop'), /^sandbox-/);
  await load.hasSentMore(200);
  await outage.end();
  await load.hasSentMore(200);
  const exchanges = await load.stop();

  assert.deepEqual(failuresIn(exchanges), {});
  const paid = exchanges.filter(({ call }) => call.path === transfersPath);
  assert.ok(paid.length > 100);
  assert.equal(paymentsAt(fleet), paid.length + ids.length + otherPayments);
  for (const instance of [fleet.one, fleet.other])
    for (const id of [...ids, inSandbox, inTheMoment])
      assert.equal((await instance.ask('shop', statusOf(id))).status, 200);
}

/** Those of `testOutage` besides `ids` and the load, and two of `assertServed`. */
const otherPayments = 5;

const instanceFor = ({ one, other }: Fleet, number: number): Instance => (number % 2 === 0 ? one : other);

const paymentsAt = ({ sandbox, production }: Fleet) => sandbox.payments.length + production.payments.length;

/** Without a message through Redis, an instance looks every second. */
const untilFollowed = (instance: Instance, environment: string): Promise<void> =>
  until(
    20_000,
    'the instance has followed',
    async () => (await readAdminApi(instance, '/api/environments')).active === environment,
  );

/** Begins the outage when the bank has accepted a payment, before it responds. @returns the promise of the payment's id */
async function acceptedAtTheBeginningOf(outage: Outage, { one, production }: Fleet) {
  const isAccepted = () => production.payments.length > before;
  const before = production.payments.length;
  production.injectFault({ name: 'latency', ms: 150 }, { times: 1, operation: 'initiatePayment' });
  const answer = one.pay('shop', 'production');
  await production.waitUntil(isAccepted);
  await outage.begin();
  return { id: answer };
}

/** Each instance answers as without an outage, and reveals nothing to another tenant. */
async function assertServed(
  { one, other, sandbox, production }: Fleet,
  foreign: string,
  inSandbox: string,
): Promise<void> {
  const unknown: Exchange[] = [];
  for (const instance of [one, other]) {
    assert.match(await instance.pay('shop'), /^production-/);
    assert.equal((await instance.ask('shop', statusOf(inSandbox))).header('Penstock-Environment'), 'sandbox');
    const attempts: readonly (readonly [ClientName, Call])[] = [
      ['shop', statusOf('never-seen')],
      ['rival', statusOf(foreign)],
      ['rival', { method: 'DELETE', path: `${transfersPath}/${foreign}` }],
    ];
    for (const [client, attempt] of attempts)
      unknown.push(await measureExchange(attempt, (call) => instance.ask(client, call)));
  }
  for (const { came } of unknown)
    assert.equal(came instanceof Error ? came : came.header('Penstock-Error'), 'PAYMENT_UNKNOWN');
  const [first, ...more] = unknown.filter(({ call: { method } }) => method === 'GET').map(seenIn);
  for (const answer of more)
    assert.deepEqual(answer, first, 'the response does not reveal whether the payment exists');
  assert.equal(callsOn('never-seen', sandbox) + callsOn('never-seen', production), 0);
}

const seenIn = ({ came }: Exchange) => (came instanceof Error ? came : comparableResponse(came));

const callsOn = (id: string, { requests }: SimulatedBank) =>
  requests.filter(({ url }) => url.includes(id)).length;
