/** Instances are replaced by those of the next version, one after the other, under load: clients notice nothing. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { contraction, createNextVersion, expansion } from '../kit/next-version.ts';
import { initiationCounts, paidTwice } from '../kit/payment-fleet.ts';
import { connectOther, skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

test('a rolling upgrade over a migration fails no request and pays nothing twice, and the migration that excludes the old version waits until it has ended', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const bank = await startBank(t);
  const postgres = await newMigratedPostgres();
  const start = (main?: string) =>
    startGatewayProcess(
      t,
      {
        environments: { sandbox: { baseUrl: bank.baseUrl } },
        shaping: { expectedInstances: 4 },
        state: { postgres },
      },
      main === undefined ? {} : { main },
    );
  const next = createNextVersion(t, expansion);
  const last = await createNextVersion(t, expansion, contraction).load();
  const settings = { postgres, file: null };
  const old = [await start(), ...(await Promise.all([start(), start()]))] as const;
  const balancer = startLoadBalancer(t);
  await Promise.all(old.map(balancer.uses));
  const load = startPayments(t, balancer);
  await load.hasSent(60);

  // A long transaction, such as that of a backup, holds a lock on the ledger when the first instance of the next version migrates.
  const backup = await connectOther(t, postgres);
  await backup.query('BEGIN');
  await backup.query('SELECT count(*) FROM ledger');
  const starting = start(next.main);
  await until(20_000, 'the migration waits for the ledger', async () => {
    const { rows } = await backup.query(
      "SELECT FROM pg_locks WHERE relation = 'ledger'::regclass AND NOT granted",
    );
    return rows.length > 0;
  });
  await load.hasSentMore(60);
  await backup.query('COMMIT');
  const first = await starting;
  await balancer.uses(first);

  assert.equal(await old[0].stop(), 0);
  assert.equal(await old[1].stop(), 0);
  await old[1].start();
  await balancer.uses(old[1]);

  const living = [old[1], old[2]].map(instanceOf).toSorted();
  const [others] = await Promise.all([
    Promise.all([start(next.main), start(next.main)]),
    assert.rejects(last.migrateDatabase(settings), (error: Error) => {
      assert.match(String(error.cause), new RegExp(`: stop ${living.join(', ')}, or replace them`));
      return true;
    }),
  ]);
  await Promise.all(others.map(balancer.uses));
  assert.deepEqual(await Promise.all([old[1].stop(), old[2].stop()]), [0, 0]);
  assert.deepEqual(await last.migrateDatabase(settings), { from: 2, to: 3 });
  await load.hasSentMore(60);

  const exchanges = await load.stop();
  assert.deepEqual(failuresIn(exchanges), {});
  assert.deepEqual(paidTwice(bank), []);
  assert.equal(initiationCounts(bank).size, load.initiated());
  assert.ok(load.repeated() > 20 && load.initiated() > 60, `${load.initiated()} and ${load.repeated()}`);

  await assert.rejects(
    old[0].start(),
    /has schema version 3, which only versions of Penstock that know 2 or a later one can use; this one knows 1: start a newer version/,
  );
});

const instanceOf = (one: GatewayProcess) => String(one.logged().at(-1)?.instance);

/** Sends each call to one of the instances that are ready, which take turns. */
function startLoadBalancer(t: TestContext) {
  const known = new Set<GatewayProcess>();
  let ready: readonly GatewayProcess[] = [];
  let calls = 0;
  let isChecking = false;

  async function check(): Promise<void> {
    const isReady = async (one: GatewayProcess) => {
      const answer = await call(one.adminUrl, { method: 'GET', path: '/health/ready' }).catch(
        () => undefined,
      );
      return answer?.status === 200;
    };
    const checked = await Promise.all([...known].map(async (one) => ((await isReady(one)) ? [one] : [])));
    ready = checked.flat();
  }

  const timer = setInterval(async () => {
    if (isChecking) return;
    isChecking = true;
    await check();
    isChecking = false;
  }, 50);
  t.after(() => clearInterval(timer));

  async function send(one: Call): Promise<Reply> {
    calls += 1;
    const instance = ready[calls % ready.length];
    if (!instance) throw new Error('no instance is ready');
    return call(instance.url, one);
  }

  return {
    send,
    /** Checks an instance from now on, and waits until it is used. */
    uses(one: GatewayProcess): Promise<void> {
      known.add(one);
      return until(20_000, 'the instance is ready', () => ready.includes(one));
    },
  };
}

/** New payments, reads of their statuses, and repeats, which must have the first answer. */
function startPayments(t: TestContext, { send }: ReturnType<typeof startLoadBalancer>) {
  const paid: { readonly requestId: string; readonly paymentId: string }[] = [];
  let [initiated, repeated] = [0, 0];
  const load = startLoad(t, { perSecond: 40 }, (number) => {
    const known = paid[(number * 7) % paid.length];
    const kind = known ? number % 4 : 0;
    const requestId = kind === 1 ? (known?.requestId ?? '') : randomUUID();
    if (kind >= 2)
      return measureExchange({ method: 'GET', path: `${transfersPath}/${known?.paymentId}/status` }, send);
    if (kind === 0) initiated += 1;
    else repeated += 1;
    return measureExchange({ ...initiation, requestId }, async (one) => {
      const reply = await send(one);
      if (reply.status !== 201) return reply;
      const paymentId = String(jsonOf(reply).paymentId);
      if (kind === 1) assert.equal(paymentId, known?.paymentId, 'a repeat has the first answer');
      else paid.push({ requestId, paymentId });
      return reply;
    });
  });
  return { ...load, initiated: () => initiated, repeated: () => repeated };
}
