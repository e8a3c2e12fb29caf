/** A switch during a running load, counted at both sides of the bank. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerFieldsFrom, headerValue } from '../../src/pis/headers.ts';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Call, repeatWhile } from '../kit/call.ts';
import { type Fleet, type Instance, startFleet } from '../kit/fleet.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import { type Exchange, failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const paymentsBefore = 50;

/** @param redis the one that the instances share */
export function testSwitching(redis: () => Promise<FleetRedis>): void {
  test('after a switch under load, old payments finish in the sandbox and new ones go to production on both instances', async (t) => {
    const fleet = await startFleet(t, await redis());
    const ids = await Promise.all(
      Array.from({ length: paymentsBefore }, (_, number) => instanceFor(fleet, number).pay('shop')),
    );

    const load = startLoad(t, { perSecond: 200 }, (number) =>
      measureExchange(mixed(ids, number), (one) =>
        repeatWhile('STATE_UNAVAILABLE', () => instanceFor(fleet, number).ask('shop', one)),
      ),
    );
    await load.hasSent(200);
    const askedAtMs = performance.now();
    await switchEnvironment(fleet.one, 'production');
    await until(
      20_000,
      'the other instance has followed',
      async () => (await readAdminApi(fleet.other, '/api/environments')).active === 'production',
    );
    const followedAtMs = performance.now();
    await load.hasSentMore(200);
    const during = await load.stop();
    const farewell = await startLoad(t, { perSecond: 200, forMs: (1_000 * paymentsBefore) / 200 }, (number) =>
      measureExchange(cancellation(ids[number] ?? ''), (one) =>
        repeatWhile('STATE_UNAVAILABLE', () => instanceFor(fleet, number + 1).ask('shop', one)),
      ),
    ).ended;

    assert.deepEqual(failuresIn([...during, ...farewell]), {});
    const initiated = during.filter(({ call }) => call.path === transfersPath);
    const late = initiated.filter(({ sentAtMs }) => sentAtMs > followedAtMs);
    const early = initiated.filter(({ sentAtMs, tookMs }) => sentAtMs + tookMs < askedAtMs);
    assert.ok(late.length > 20 && early.length > 20);
    assert.deepEqual(new Set(late.map(environmentOf)), new Set(['production']));
    assert.deepEqual(new Set(early.map(environmentOf)), new Set(['sandbox']));
    const old = [...during, ...farewell].filter(({ call }) => call.path !== transfersPath);
    assert.deepEqual(new Set(old.map(environmentOf)), new Set(['sandbox']));

    assert.equal(callsOn(ids, fleet.sandbox), old.filter(askedTheBank).length);
    assert.equal(callsOn(ids, fleet.production), 0);
    const toProduction = initiated.filter(isIn('production')).length;
    assert.equal(fleet.production.payments.length, toProduction);
    assert.equal(fleet.sandbox.payments.length, paymentsBefore + initiated.length - toProduction);
  });
}

/** The instances in turn. */
const instanceFor = ({ one, other }: Fleet, number: number): Instance => (number % 2 === 0 ? one : other);

/** A quarter new payments, a quarter authorisations, and status reads; each sort on both instances. */
function mixed(ids: readonly string[], number: number): Call {
  const path = `${transfersPath}/${ids[Math.floor(number / 2) % ids.length]}`;
  switch (Math.floor(number / 2) % 4) {
    case 0:
      return initiation;
    case 1:
      return {
        method: 'POST',
        path: `${path}/authorisations`,
        headers: [['Content-Type', 'application/json']],
        body: '{}',
      };
    default:
      return { method: 'GET', path: `${path}/status` };
  }
}

const cancellation = (id: string): Call => ({ method: 'DELETE', path: `${transfersPath}/${id}` });

const environmentOf = ({ came }: Exchange) =>
  came instanceof Error ? undefined : came.header('Penstock-Environment');

/** Whether the response came neither from the cache nor from a shared call. */
const askedTheBank = ({ came }: Exchange) =>
  !(came instanceof Error) && !/hit|collapsed/.test(came.header('Cache-Status') ?? '');

const isIn = (environment: string) => (one: Exchange) => environmentOf(one) === environment;

/**
 * How many calls on these payments a bank has got. A status that a write may have changed while it was being read is read
 * again, under the same X-Request-ID: that is one call.
 */
function callsOn(ids: readonly string[], { requests }: SimulatedBank): number {
  const calls = requests.filter(({ url }) =>
    ids.some((id) => url.includes(`/${id}/`) || url.endsWith(`/${id}`)),
  );
  const reads = calls.filter(({ method }) => method === 'GET');
  const readIds = new Set(
    reads.map(({ rawHeaders }) => headerValue(headerFieldsFrom(rawHeaders), 'x-request-id')),
  );
  return calls.length - reads.length + readIds.size;
}
