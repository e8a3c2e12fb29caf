/** docs/operations/restore.md, played word by word: a payment from before the backup is replayed, a later one is paid again. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { migrateDatabase } from '../../src/store/gateway-database.ts';
import { blocksOf, textOf } from '../docs/blocks.ts';
import { call } from '../kit/call.ts';
import { cleanVariables, root } from '../kit/command.ts';
import { postgresPrograms } from '../kit/find-postgres.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { onPath } from '../kit/on-path.ts';
import { initiationCounts } from '../kit/payment-fleet.ts';
import { asUserOfPostgres, type PostgresServer, startPostgres } from '../kit/postgres.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

const page = 'docs/operations/restore.md';
const programs = postgresPrograms();
const run = promisify(execFile);

/** Payments of a gateway in front of a simulated bank. @param state of its configuration */
async function startPayments(t: TestContext, state: object) {
  const bank = await startBank(t);
  const gateway = await startGatewayProcess(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    idempotency: { wait: '50ms' },
    state,
  });
  const pay = async (requestId: string = randomUUID()) => {
    const reply = await call(gateway.url, { ...initiation, requestId });
    return { requestId, outcome: outcomeOf(reply) };
  };
  return {
    bank,
    gateway,
    pay,
    async newPayment() {
      const { requestId, outcome } = await pay();
      assert.equal(outcome, '201');
      return requestId;
    },
    outcomeOfRepeat: async (requestId: string) => (await pay(requestId)).outcome,
    timesPaid: (requestId: string) => initiationCounts(bank).get(requestId),
  };
}

/** Runs blocks of the page with bash. @param places the folders of the page, and those of this test */
async function play(
  commands: readonly string[],
  places: Readonly<Record<string, string>>,
  gateway: GatewayProcess,
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { args, variables: ownVariables } = gateway.order();
  const here = Object.entries({ ...places, '--config FILE': args.join(' ') }).reduce(
    (text, [from, to]) => text.replaceAll(from, to),
    commands.join('\n'),
  );
  const sudo = `sudo() { shift 2; ${asUserOfPostgres().join(' ')} "$@"; }`; // sudo -u postgres …
  const script = `set -e\n${sudo}\n${here.replaceAll('npm exec penstock --', 'bin/penstock.cjs')}`;
  const env = { ...cleanVariables(), ...ownVariables, ...variables };
  const { stdout } = await run('bash', ['-c', script], { cwd: root, env });
  return stdout;
}

const commandsOf = (section: string) => blocksOf(page, section).map(({ commands }) => commands);

const [migrate = '', checks = ''] = commandsOf('After each restore');

describe('the page on backup and restore: PostgreSQL', {
  skip: programs ? false : 'there is no PostgreSQL',
  concurrency: 2,
}, () => {
  async function start(t: TestContext) {
    const server = await startPostgres(t);
    const variables = {
      ...{ PGHOST: '127.0.0.1', PGPORT: new URL(server.url).port, PGUSER: 'postgres' },
      PATH: `${programs}:${process.env.PATH}`,
    };
    const folder = dirname(server.data);
    const places = {
      '/var/backups/penstock': join(folder, 'backups'),
      '/var/lib/postgresql/17/main': server.data,
      '/var/lib/postgresql/17': folder,
    };
    await execute(server, 'CREATE ROLE penstock LOGIN', 'CREATE DATABASE penstock OWNER penstock');
    const postgres = server.url.replace('postgres@', 'penstock@').replace(/postgres$/, 'penstock');
    await migrateDatabase({ postgres, file: null });
    const payments = await startPayments(t, { postgres });
    return {
      ...payments,
      server,
      places,
      play: (...commands: readonly string[]) => play(commands, places, payments.gateway, variables),
    };
  }

  test('pg_dump: a payment from before is replayed, one that was being sent is in doubt, a later one is paid again', async (t) => {
    const { bank, gateway, pay, newPayment, outcomeOfRepeat, timesPaid, play } = await start(t);
    const [dump = '', restore = ''] = commandsOf('PostgreSQL: pg_dump');
    const before = await newPayment();
    const beingSent = randomUUID();
    bank.injectFault({ name: 'never-answer' }, { times: 1, operation: 'initiatePayment' });
    const answer = pay(beingSent).catch(() => undefined);
    await bank.waitUntil(() => timesPaid(beingSent) === 1);
    await play('sudo -u postgres mkdir /var/backups/penstock', dump);
    const later = await newPayment();

    await gateway.stop('SIGKILL');
    await answer;
    await play(restore);
    await assert.rejects(gateway.start(), /run penstock migrate/);
    await play(migrate);
    await gateway.start();
    assert.match(await play(checks), /sandbox/);
    assert.equal(await outcomeOfRepeat(before), '201 replayed');
    await until(
      20_000,
      'it is in doubt',
      async () => (await outcomeOfRepeat(beingSent)) === '409 DUPLICATE_IN_DOUBT',
    );
    assert.equal(await outcomeOfRepeat(later), '201');
    assert.deepEqual([before, beingSent, later].map(timesPaid), [1, 1, 2]);
    assert.equal(await outcomeOfRepeat(await newPayment()), '201 replayed');
  });

  const section = 'PostgreSQL: point-in-time recovery';

  async function startWithArchive(t: TestContext) {
    const parts = await start(t);
    const [backUp = '', check = '', copy = '', recover = '', target = ''] = commandsOf(section);
    const [, settings = ''] = /```ini\n([\s\S]*?)```/.exec(textOf(page, section)) ?? [];
    const here = settings.replaceAll('/var/backups/penstock', parts.places['/var/backups/penstock']);
    appendFileSync(join(parts.server.data, 'postgresql.conf'), here);
    await parts.server.restart();
    await parts.play(backUp);
    await until(10_000, 'the first segment is archived', async () =>
      /^ +[1-9]\d* .*\| +0$/m.test(await parts.play(check)),
    );
    return { ...parts, copy, recover, target };
  }

  /** Starts the server, and waits until it has recovered. */
  async function recovered(server: PostgresServer): Promise<void> {
    await server.restart();
    await until(20_000, 'PostgreSQL has recovered', async () => {
      const [row] = await execute(server, 'SELECT pg_is_in_recovery() AS "isRecovering"');
      return row?.isRecovering === false;
    });
  }

  test('point-in-time recovery without a target: nothing is lost, although the server was killed', async (t) => {
    const { server, gateway, newPayment, outcomeOfRepeat, timesPaid, play, copy, recover } =
      await startWithArchive(t);
    const sent = [await newPayment(), await newPayment()];
    await server.kill();
    await gateway.stop('SIGKILL');
    await play(copy, recover);
    await recovered(server);
    await play(migrate);
    await gateway.start();
    for (const requestId of sent) assert.equal(await outcomeOfRepeat(requestId), '201 replayed');
    assert.deepEqual(sent.map(timesPaid), [1, 1]);
  });

  test('point-in-time recovery with a target: a payment from before it is replayed, a later one is paid again', async (t) => {
    const { server, gateway, newPayment, outcomeOfRepeat, timesPaid, play, copy, recover, target } =
      await startWithArchive(t);
    const before = await newPayment();
    const [row] = await execute(server, 'SELECT clock_timestamp()::text AS time');
    const later = await newPayment();
    await gateway.stop('SIGKILL');
    await server.kill();
    assert.match(target, /'2026-11-21 14:05:00\+00'/);
    await play(copy, recover, target.replace('2026-11-21 14:05:00+00', String(row?.time)));
    await recovered(server);
    await play(migrate);
    await gateway.start();
    assert.equal(await outcomeOfRepeat(before), '201 replayed');
    assert.equal(await outcomeOfRepeat(later), '201');
    assert.deepEqual([before, later].map(timesPaid), [1, 2]);
  });
});

describe('the page on backup and restore: SQLite', () => {
  test('a copy of a stopped gateway: a payment from before is replayed, a later one is paid again', async (t) => {
    const places = { '/var/lib/penstock': temporaryFolder(t), '/var/backups/penstock': temporaryFolder(t) };
    const [backUp = '', restore = '', shrink = ''] = commandsOf('SQLite');
    const file = join(places['/var/lib/penstock'], 'penstock.db');
    const { gateway, newPayment, outcomeOfRepeat, timesPaid } = await startPayments(t, { file });
    const before = await newPayment();
    if (onPath('sqlite3')) await assert.rejects(play([shrink], places, gateway), /database is locked/);
    await gateway.stop();
    await play([backUp], places, gateway);
    if (onPath('sqlite3')) await play([shrink], places, gateway);
    await gateway.start();
    const later = await newPayment();
    await gateway.stop('SIGKILL');
    await play([restore, migrate], places, gateway);
    await gateway.start();
    assert.match(await play([checks], places, gateway), /sandbox/);
    assert.equal(await outcomeOfRepeat(before), '201 replayed');
    assert.equal(await outcomeOfRepeat(later), '201');
    assert.deepEqual([before, later].map(timesPaid), [1, 2]);
    if (!onPath('sqlite3')) return;

    await gateway.stop();
    const small = join(places['/var/backups/penstock'], 'small.db');
    await play([restore, `cp ${small} ${file}`, `rm -f ${file}-wal`], places, gateway);
    await gateway.start();
    assert.equal(await outcomeOfRepeat(before), '201 replayed');
  });
});

async function execute(
  { url }: PostgresServer,
  ...statements: readonly string[]
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    let rows: Readonly<Record<string, unknown>>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
