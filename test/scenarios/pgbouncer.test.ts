/** Two instances reach PostgreSQL through PgBouncer in transaction mode, with the settings of docs/operations/pgbouncer.md. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { Client } from 'pg';
import { migrateDatabase } from '../../src/store/gateway-database.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { postgresProblems } from '../../src/store/postgres-settings.ts';
import { root } from '../kit/command.ts';
import {
  initiationCounts,
  type PaymentFleet,
  paidTwice,
  startLocalPaymentFleet,
  startPayments,
} from '../kit/payment-fleet.ts';
import { type Pgbouncer, skipWithoutPgbouncer, startPgbouncer } from '../kit/pgbouncer.ts';
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { until } from '../kit/within.ts';

/** The lines of the section `[pgbouncer]` that the page shows. */
function linesOfPage(): readonly string[] {
  const page = readFileSync(join(root, 'docs/operations/pgbouncer.md'), 'utf8');
  const [, block = ''] = /^```ini\n(?:.*\n)*?\[pgbouncer\]\n([\s\S]*?)^```/m.exec(page) ?? [];
  const lines = block.split('\n').filter((line) => line !== '');
  assert.ok(lines.includes('pool_mode = transaction'));
  return lines;
}

async function startServers(t: TestContext, ...lines: readonly string[]) {
  const server = await startPostgres(t, 'fsync=off');
  const pooler = await startPgbouncer(t, server.url, ...linesOfPage(), ...lines);
  return { server, pooler, postgres: pooler.through(server.url) };
}

/** Without Redis. */
const startFleet = (t: TestContext, postgres: string) =>
  startLocalPaymentFleet(t, '', 2, { state: { postgres, redis: null } });

interface Outage {
  /** Further lines of the configuration of PgBouncer. */
  readonly lines?: readonly string[];
  readonly begin: (pooler: Pgbouncer, server: PostgresServer) => unknown;
  readonly end: (pooler: Pgbouncer, server: PostgresServer) => unknown;
}

const outages: Readonly<Record<string, Outage>> = {
  'PgBouncer is killed and started again': {
    begin: (pooler) => pooler.kill(),
    end: (pooler) => pooler.restart(),
  },
  'PostgreSQL behind it is killed and started again': {
    begin: (_, server) => server.kill(),
    end: (_, server) => server.restart(),
  },
  'statements wait for a connection longer than query_wait_timeout': {
    lines: ['query_wait_timeout = 1'],
    begin: (pooler) => pooler.command('PAUSE'),
    end: (pooler) => pooler.command('RESUME'),
  },
};

const phase = 100; // payments
const atOnce = 20;

describe('two instances behind PgBouncer', {
  concurrency: 3,
  skip: skipWithoutPostgres || skipWithoutPgbouncer,
}, () => {
  test('start after a migration through it, and each of its connections has the settings of the role', async (t) => {
    const { postgres } = await startServers(t);
    await migrateDatabase({ postgres, file: null });
    const database = connectPostgres(postgres);
    t.after(() => database.close());
    const seen = new Set<unknown>();
    await until(20_000, 'PgBouncer has opened three connections', async () => {
      const backends = Array.from({ length: 4 }, () =>
        database.query(
          `SELECT pg_backend_pid() AS pid, current_setting('lock_timeout') AS "timeout" FROM pg_sleep(0.05)`,
        ),
      );
      for (const [row] of await Promise.all(backends)) {
        assert.equal(row?.timeout, '200ms');
        seen.add(row.pid);
      }
      return seen.size >= 3;
    });
    assert.deepEqual(await postgresProblems(database), []);
  });

  test('share its connections: every payment is executed once, and replayed by both', async (t) => {
    const { server, postgres } = await startServers(t, 'default_pool_size = 3');
    const fleet = await startFleet(t, postgres);
    const load = startPayments(t, fleet);
    await load.hasSentMore(phase);
    assert.ok((await connectionsTo(server)) <= 3);
    await load.stop();
    assert.deepEqual(outcomesOf(fleet.answers), new Set(['201']));
    await assertReplayed(fleet, fleet.answers);
  });

  for (const [what, { lines = [], begin, end }] of Object.entries(outages))
    test(`pay nothing twice when ${what}`, async (t) => {
      const { server, pooler, postgres } = await startServers(t, ...lines);
      const fleet = await startFleet(t, postgres);
      const load = startPayments(t, fleet);
      await load.hasSentMore(phase);
      await begin(pooler, server);
      const isRefused = ({ outcome }: PaymentFleet['answers'][number]) => outcome === '503 STATE_UNAVAILABLE';
      await until(20_000, 'payments are refused', () => fleet.answers.filter(isRefused).length > 10);
      await end(pooler, server);
      await until(20_000, 'payments are executed', async () =>
        (await Promise.all(fleet.newPayments(2).map((payment) => fleet.send(payment)))).every(
          ({ outcome }) => outcome === '201',
        ),
      );
      await load.stop();
      const sent = [...fleet.answers];
      assert.deepEqual(paidTwice(fleet.bank), []);
      for (const outcome of outcomesOf(sent))
        assert.match(outcome, /^(201|503 STATE_UNAVAILABLE|504 OUTCOME_UNKNOWN)$/);

      // A payment that was sent has got its answer, or a doubt; one that was refused is executed by its repeat.
      const executed = new Set(initiationCounts(fleet.bank).keys());
      for (const { requestId, outcome } of sent)
        assert.equal(executed.has(requestId), outcome !== '503 STATE_UNAVAILABLE');
      await assertReplayed(
        fleet,
        sent.filter(({ outcome }) => outcome === '201'),
      );
      const refused = sent.filter(isRefused);
      for (const payment of refused) assert.equal(await repeat(fleet, payment), '201');
      assert.deepEqual(paidTwice(fleet.bank), []);
    });
});

/**
 * Repeats a payment until it is over. If the answer to its claim was lost, the instance takes the claim back within
 * seconds; and on a busy machine, the first statements after an outage may take too long.
 */
async function repeat(
  fleet: PaymentFleet,
  payment: PaymentFleet['answers'][number],
  instance?: number,
): Promise<string> {
  let outcome = '';
  await until(20_000, 'a repeat has its answer', async () => {
    ({ outcome } = await fleet.send(payment, instance));
    return outcome !== '409 DUPLICATE_IN_FLIGHT' && outcome !== '503 STATE_UNAVAILABLE';
  });
  return outcome;
}

async function assertReplayed(fleet: PaymentFleet, answers: PaymentFleet['answers']): Promise<void> {
  // A few at once: a busy machine would not read hundreds of requests within their time limit.
  const all = [...answers]; // each repeat adds one to those of the fleet
  for (let first = 0; first < all.length; first += atOnce) {
    const some = all.slice(first, first + atOnce);
    const repeats = fleet.instances.flatMap((_, instance) => some.map((one) => repeat(fleet, one, instance)));
    assert.deepEqual(new Set(await Promise.all(repeats)), new Set(['201 replayed']));
  }
  assert.deepEqual(paidTwice(fleet.bank), []);
}

const outcomesOf = (answers: PaymentFleet['answers']) => new Set(answers.map(({ outcome }) => outcome));

/** Of the gateways, by their name in PostgreSQL. */
async function connectionsTo({ url }: PostgresServer): Promise<number> {
  const client = new Client(url);
  await client.connect();
  const { rows } = await client
    .query(`SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = 'penstock'`)
    .finally(() => client.end());
  const count = Number(rows[0]?.count);
  assert.ok(count > 0);
  return count;
}
