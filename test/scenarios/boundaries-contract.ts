/** Clients cannot reach other environments or other tenants' payments through any instance. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { switchEnvironment } from '../kit/admin-api.ts';
import type { Call } from '../kit/call.ts';
import { comparableResponse } from '../kit/comparable-response.ts';
import { type Fleet, type Instance, startFleet } from '../kit/fleet.ts';
import { type FleetRedis, lazy } from '../kit/fleet-redis.ts';
import { type Load, measureExchange, startLoad } from '../kit/load.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { withEnvironmentHeader } from '../kit/two-environments.ts';

const statusOf = (id: string): Call => ({ method: 'GET', path: `${transfersPath}/${id}/status` });
const cancel = (id: string): Call => ({ method: 'DELETE', path: `${transfersPath}/${id}` });

/**
 * Its tests share a fleet.
 *
 * @param life  of the fleet
 * @param redis the one that the instances share
 */
export function testBoundaries(life: TestScope, redis: () => Promise<FleetRedis>): void {
  const startedFleet = lazy(async () => startFleet(life, await redis()));

  test('no request of a sandbox client reaches production while both instances switch back and forth', async (t) => {
    const fleet = await startedFleet();
    const before = fleet.production.payments.length;
    const own = await fleet.one.pay('till');
    const ofItsTenant = await fleet.other.pay('shop', 'production');
    const foreign = await fleet.one.pay('rival', 'production');
    const attempts = [own, ofItsTenant, foreign, 'production-ffffffffffff'].flatMap(attemptsOn);

    const request = (number: number) => {
      const instance = number % 2 === 0 ? fleet.one : fleet.other;
      const honest = number % 10 < 2;
      const attempt = honest
        ? initiation
        : (attempts[Math.floor(number / 2) % attempts.length] ?? initiation);
      return measureExchange(signed(attempt), (one) => instance.ask(honest ? 'shop' : 'till', one));
    };
    const byTill: Awaited<ReturnType<typeof request>>[] = [];
    let switches = 0;
    const isEnough = () => fleet.production.payments.length > before + 10 && switches > 5;
    for (let rounds = 0; rounds < 10 && !isEnough(); rounds++) {
      const load = startLoad(t, { perSecond: 200, forMs: 2_000 }, request); // a busy machine switches rarely
      switches += await switchUntilItEnds(fleet, load);
      byTill.push(...(await load.ended).filter((_, number) => number % 10 >= 2));
    }
    for (const { call: one, came } of byTill) {
      assert.ok(!(came instanceof Error), `${one.method} ${one.path}: ${came}`);
      assert.ok([200, 201, 204, 400, 403, 404, 405, 409].includes(came.status), came.text);
      assert.ok([undefined, 'sandbox'].includes(came.header('Penstock-Environment')));
    }
    const atProduction = requestIdsAt(fleet.production);
    assert.deepEqual(
      byTill.filter(({ call: one }) => atProduction.has(requestIdIn(one))),
      [],
    );
    assert.equal(
      fleet.production.payments.filter(({ transactionStatus }) => transactionStatus === 'CANC').length,
      0,
    );
    const reached = requestIdsAt(fleet.sandbox);
    assert.ok(byTill.some(({ call: one }) => reached.has(requestIdIn(one))));
    assert.ok(isEnough(), 'other clients reached production during the switches');
  });

  test("the responses about another tenant's payment and about an unknown payment are the same on both instances", async () => {
    const fleet = await startedFleet();
    const unknown = 'production-ffffffffffff';
    const reachedBanks = () => [fleet.sandbox.requests.length, fleet.production.requests.length];
    for (const environment of ['sandbox', 'production'] as const) {
      const foreign = await fleet.one.pay('shop', environment);
      const before = reachedBanks();
      for (const instance of [fleet.other, fleet.one]) {
        for (const [index, attempt] of attemptsOn(foreign).entries()) {
          if (attempt.path === transfersPath) continue;
          const never = attemptsOn(unknown)[index] ?? assert.fail();
          const [theirs, nobodys] = [
            await instance.ask('rival', attempt),
            await instance.ask('rival', never),
          ];
          assert.deepEqual(comparableResponse(theirs), comparableResponse(nobodys));
          assert.ok([400, 404].includes(theirs.status));
        }
      }
      assert.deepEqual(reachedBanks(), before);
      assert.equal((await fleet.other.ask('shop', statusOf(foreign))).status, 200);
    }
  });

  test('an id that exists in both environments is refused, also on an instance that knew only one of them', async () => {
    const fleet = await startedFleet();
    const guesses: (string | undefined)[] = [];
    for (let round = 0; round < 30; round += 1) {
      const id = `twin-${round}`;
      const [first, second] = round % 2 === 0 ? [fleet.one, fleet.other] : [fleet.other, fleet.one];
      fleet.sandbox.nextPaymentId(id);
      fleet.production.nextPaymentId(id);
      await first.pay('shop', 'sandbox');
      for (const instance of [first, second]) assert.equal(await askedFor(instance, statusOf(id)), 'sandbox');
      await second.pay('shop', 'production');
      const asked = await Promise.all([first, second].map((instance) => askedFor(instance, statusOf(id))));
      guesses.push(...asked.filter((came) => came !== 'ENVIRONMENT_MISMATCH'));
    }
    assert.deepEqual(guesses, []);
  });
}

/** Every request about a payment, and an initiation, with every form of Penstock-Environment. */
function attemptsOn(id: string): readonly Call[] {
  const path = `${transfersPath}/${id}`;
  const calls: readonly Call[] = [
    initiation,
    { method: 'GET', path },
    statusOf(id),
    cancel(id),
    {
      method: 'POST',
      path: `${path}/authorisations`,
      headers: [['Content-Type', 'application/json']],
      body: '{}',
    },
    { method: 'GET', path: `${path}/authorisations` },
    { method: 'GET', path: `${path}/authorisations/sca-1` },
    { method: 'GET', path: `/psd2${path}` },
    { method: 'GET', path: `${path}/status?environment=production` },
  ];
  return calls.flatMap((one) => [
    one,
    withEnvironmentHeader('production', one),
    withEnvironmentHeader('sandbox', one),
    withEnvironmentHeader('Production', one),
    withEnvironmentHeader('production', withEnvironmentHeader('sandbox', one)),
  ]);
}

const signed = ({ headers = [], ...rest }: Call): Call => ({
  ...rest,
  headers: [['X-Request-ID', randomUUID()], ...headers],
});

const requestIdIn = ({ headers = [] }: Call) => headers[0]?.[1] ?? '';

/** The X-Request-IDs that reached a bank. */
const requestIdsAt = ({ requests }: SimulatedBank): ReadonlySet<string> =>
  new Set(
    requests.map(
      ({ rawHeaders }) => rawHeaders[rawHeaders.findIndex((name) => /^x-request-id$/i.test(name)) + 1] ?? '',
    ),
  );

/** Switches to production on one instance and back on the other, until the load ends. @returns the number of switches */
async function switchUntilItEnds({ one, other }: Fleet, load: Load): Promise<number> {
  let [switches, over] = [0, false];
  const ended = load.ended.then(() => {
    over = true;
  });
  for (; !over; switches += 2) {
    await switchEnvironment(one, 'production');
    await switchEnvironment(other, 'sandbox');
  }
  await ended;
  return switches;
}

/** Where a call went, or why it was refused. */
async function askedFor(instance: Instance, one: Call): Promise<string | undefined> {
  const reply = await instance.ask('shop', one);
  return reply.header('Penstock-Error') ?? reply.header('Penstock-Environment');
}
