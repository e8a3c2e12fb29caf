/** The database that is configured: an empty one, a newer one, one that cannot be reached, and its migration. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { assembleGateway } from '../../src/gateway.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { Database } from '../../src/store/database.ts';
import { migrateDatabase, openGatewayDatabase } from '../../src/store/gateway-database.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { call } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { configOf, readTestCredentials } from '../kit/gateway.ts';
import { newPostgresDatabase, skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { initiation } from '../kit/request.ts';
import { endWith } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

type Settings = { readonly postgres: string | null; readonly file: string | null };

const kinds = {
  'a SQLite file': {
    skip: false,
    settings: async (t: TestContext) => ({ postgres: null, file: join(temporaryFolder(t), 'penstock.db') }),
    name: 'state.file',
  },
  PostgreSQL: {
    skip: skipWithoutPostgres,
    settings: async () => ({ postgres: await newPostgresDatabase(), file: null }),
    name: 'state.postgres',
  },
} as const;

/** A gateway that is not started. */
function assembled(t: TestContext, { postgres, file }: Settings) {
  const config = configOf(
    {
      environments: { sandbox: { baseUrl: 'http://127.0.0.1:9' } },
      listen: { port: 0 },
      admin: { port: 0 },
      state: { file },
    },
    postgres === null
      ? {}
      : { PENSTOCK_STATE_POSTGRES: postgres, PENSTOCK_STATE_REDIS: 'redis://127.0.0.1:1' },
  );
  // Nothing here is about Redis, which is required beside PostgreSQL.
  const withoutRedis = postgres === null ? {} : { state: createMemoryState() };
  const gateway = assembleGateway(config, () => {}, readTestCredentials, withoutRedis);
  endWith(t, () => gateway.stop());
  return gateway;
}

async function withDatabase<Result>(settings: Settings, use: (database: Database) => Promise<Result>) {
  const { database, heartbeatDatabase } = openGatewayDatabase(settings);
  try {
    return await use(database);
  } finally {
    await Promise.all([database.close(), heartbeatDatabase.close()]);
  }
}

const instancesIn = (settings: Settings) =>
  withDatabase(settings, async (database) => (await database.query('SELECT id FROM instance')).length);

const readiness = async (adminPort: number) => {
  const { status, text } = await call(`http://127.0.0.1:${adminPort}`, {
    path: '/health/ready',
    method: 'GET',
  });
  return { status, text };
};

for (const [kind, { skip, settings: newSettings, name }] of Object.entries(kinds))
  describe(`the database of the gateway: ${kind}`, { skip }, () => {
    test('refuses the start with an empty database, and names the command that creates its tables', async (t) => {
      const settings = await newSettings(t);
      await assert.rejects(assembled(t, settings).start(), (error: Error) => {
        assert.ok(error.message.startsWith(`${name}: `), error.message);
        assert.match(error.message, /penstock migrate/);
        return true;
      });
      if (settings.file) assert.ok(!existsSync(settings.file), 'a refused start creates no file');
    });

    test('starts after the migration, reports that it lives, and reports no more after it has stopped', async (t) => {
      const settings = await newSettings(t);
      assert.deepEqual(await migrateDatabase(settings), { from: 0, to: 1 });
      assert.deepEqual(await migrateDatabase(settings), { from: 1, to: 1 });
      const gateway = assembled(t, settings);
      const { adminPort } = await gateway.start();
      assert.equal((await readiness(adminPort)).status, 200);
      if (settings.postgres) assert.equal(await instancesIn(settings), 1);
      await gateway.stop();
      assert.equal(await instancesIn(settings), settings.postgres ? 0 : 1);
    });

    test('starts with a newer database that this version can use, and refuses one that it cannot use', async (t) => {
      const settings = await newSettings(t);
      await migrateDatabase(settings);
      const migrated = (version: number, oldest: number) =>
        withDatabase(settings, (database) =>
          database.query('INSERT INTO penstock_schema (version, oldest) VALUES ($1, $2)', [version, oldest]),
        );
      await migrated(999, 1);
      const gateway = assembled(t, settings);
      assert.equal((await readiness((await gateway.start()).adminPort)).status, 200);
      await gateway.stop();
      assert.deepEqual(await migrateDatabase(settings), { from: 999, to: 999 });
      await migrated(1000, 2);
      await assert.rejects(assembled(t, settings).start(), (error: Error) => {
        assert.ok(error.message.startsWith(`${name}: `), error.message);
        assert.match(
          error.message,
          /has schema version 1000, which only versions of Penstock that know 2 or a later one can use; this one knows 1: start a newer version$/,
        );
        return true;
      });
    });
  });

test('a gateway without a configured database creates one in memory', async (t) => {
  const { adminPort } = await assembled(t, { postgres: null, file: null }).start();
  assert.equal((await readiness(adminPort)).status, 200);
});

test('a SQLite file is refused while another process uses it, and in a folder that does not exist', async (t) => {
  const settings = { postgres: null, file: join(temporaryFolder(t), 'penstock.db') };
  await migrateDatabase(settings);
  const first = assembled(t, settings);
  await first.start();
  await assert.rejects(
    assembled(t, settings).start(),
    /^Error: state\.file: .* is in use by another process; stop/,
  );
  await first.stop();
  await assembled(t, settings).start();
  const missing = { postgres: null, file: join(temporaryFolder(t), 'none', 'penstock.db') };
  await assert.rejects(
    assembled(t, missing).start(),
    /^Error: state\.file: .* the directory .* does not exist/,
  );
});

describe('a PostgreSQL that cannot be reached', { skip: skipWithoutPostgres }, () => {
  test('does not prevent the start: the instance is not ready until it answers', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    const settings = { postgres: server.url, file: null };
    await migrateDatabase(settings);
    await server.kill();
    const { adminPort } = await assembled(t, settings).start();
    const { status, text } = await readiness(adminPort);
    assert.equal(status, 503);
    assert.match(text, /PostgreSQL cannot be used: .*ECONNREFUSED/);
    await server.restart();
    await until(10_000, 'it is ready', async () => (await readiness(adminPort)).status === 200);
    assert.equal(await instancesIn(settings), 1);
  });

  test('is checked when it answers: an instance with an empty one stays unready, and says why', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    await server.kill();
    const { adminPort } = await assembled(t, { postgres: server.url, file: null }).start();
    await server.restart();
    await until(10_000, 'it says what to do', async () =>
      /penstock migrate/.test((await readiness(adminPort)).text),
    );
    assert.equal((await readiness(adminPort)).status, 503);
    await migrateDatabase({ postgres: server.url, file: null });
    await until(10_000, 'it is ready', async () => (await readiness(adminPort)).status === 200);
  });

  test('gets no payments until it has been checked: its commits could be lost', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    const settings = { postgres: server.url, file: null };
    await migrateDatabase(settings);
    const confirmCommits = (value: string) =>
      withDatabase(settings, (database) =>
        database.execute(`DO $$ BEGIN EXECUTE format(
          'ALTER ROLE CURRENT_USER IN DATABASE %I SET synchronous_commit = ${value}', current_database()); END $$`),
      );
    await confirmCommits('off');
    await server.kill();
    const { adminPort, tppPort } = await assembled(t, settings).start();
    const pay = () => call(`http://127.0.0.1:${tppPort}`, initiation);
    await server.restart();
    await until(10_000, 'it says what is wrong', async () =>
      /synchronous_commit is off/.test((await readiness(adminPort)).text),
    );
    const refused = await pay();
    assert.deepEqual([refused.status, refused.header('Penstock-Error')], [503, 'STATE_UNAVAILABLE']);
    await confirmCommits('on');
    await until(10_000, 'it is ready', async () => (await readiness(adminPort)).status === 200);
    const sent = await pay();
    assert.equal(sent.header('Penstock-Error'), 'UPSTREAM_UNREACHED', 'nothing listens at this address');
  });
});

describe('a PostgreSQL that the gateway cannot use', { skip: skipWithoutPostgres }, () => {
  /** The address for another role. */
  function as(url: string, role: string): string {
    const other = new URL(url);
    other.username = role;
    return other.href;
  }

  async function runAll(url: string, ...statements: readonly string[]): Promise<void> {
    const database = connectPostgres(url, { connections: 1 });
    try {
      for (const statement of statements) await database.query(statement);
    } finally {
      await database.close();
    }
  }

  test('because of its encoding is refused before a table is created, with the statement that creates another one', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    await runAll(server.url, `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    const postgres = server.url.replace(/postgres$/, 'latin');
    await assert.rejects(
      migrateDatabase({ postgres, file: null }),
      /^Error: state\.postgres: the database has the encoding LATIN1, .*: create another one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0, and name it/,
    );
    await assert.rejects(assembled(t, { postgres, file: null }).start(), /is empty/);
  });

  test('because of the isolation of its role is refused, until penstock migrate has set it', async (t) => {
    const server = await startPostgres(t, 'fsync=off', 'default_transaction_isolation=serializable');
    const settings = { postgres: server.url, file: null };
    await migrateDatabase(settings);
    await runAll(
      server.url,
      'ALTER ROLE CURRENT_USER IN DATABASE postgres RESET default_transaction_isolation',
    );
    await assert.rejects(
      assembled(t, settings).start(),
      /default_transaction_isolation is serializable, and must be read committed: run penstock migrate as this role$/,
    );
    await migrateDatabase(settings);
    await assembled(t, settings).start();
  });

  test('with its role is refused at the start, and not retried as an outage', async (t) => {
    const server = await startPostgres(t, 'fsync=off');
    await migrateDatabase({ postgres: server.url, file: null });
    await runAll(server.url, 'CREATE ROLE guest LOGIN', 'CREATE ROLE locked NOLOGIN');
    const remedies = {
      guest:
        /^Error: state\.postgres: PostgreSQL: permission denied .*; make this role the owner of the database and of its tables$/,
      locked:
        /^Error: state\.postgres: PostgreSQL: role "locked" is not permitted to log in; check the role and the password in state\.postgres/,
      nobody: /^Error: state\.postgres: PostgreSQL: role "nobody" does not exist; check the role/,
    };
    for (const [role, remedy] of Object.entries(remedies)) {
      const settings = { postgres: as(server.url, role), file: null };
      await assert.rejects(assembled(t, settings).start(), remedy);
      await assert.rejects(migrateDatabase(settings), remedy);
    }
    // With the rights to read the schema only, the report of the instance is the first statement that is refused.
    await runAll(server.url, 'GRANT SELECT ON penstock_schema TO guest');
    await migrateDatabase({ postgres: as(server.url, 'guest'), file: null });
    await assert.rejects(
      assembled(t, { postgres: as(server.url, 'guest'), file: null }).start(),
      remedies.guest,
    );
    const missing = server.url.replace(/postgres$/, 'nowhere');
    await assert.rejects(
      assembled(t, { postgres: missing, file: null }).start(),
      /database "nowhere" does not exist; create it, or check the address in state\.postgres$/,
    );
  });
});

test('a certificate of PostgreSQL that cannot be read is named, and does not prevent the start', async (t) => {
  const postgres = 'postgres://penstock@127.0.0.1:1/penstock?sslmode=verify-full&sslrootcert=/nowhere.pem';
  const { adminPort } = await assembled(t, { postgres, file: null }).start();
  const { status, text } = await readiness(adminPort);
  assert.equal(status, 503);
  assert.match(text, /PostgreSQL cannot be used: .*ENOENT.*nowhere\.pem/);
});

test('several instances migrate one empty PostgreSQL database at the same time', {
  skip: skipWithoutPostgres,
}, async () => {
  const settings = { postgres: await newPostgresDatabase(), file: null };
  await Promise.all([migrateDatabase(settings), migrateDatabase(settings), migrateDatabase(settings)]);
  assert.deepEqual(await migrateDatabase(settings), { from: 1, to: 1 });
  await newMigratedPostgres();
});
