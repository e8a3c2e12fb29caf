/** Connections to PostgreSQL: several hosts, TLS by the parameters of libpq, and commits that no standby has. */

import assert from 'node:assert/strict';
import { chmodSync, chownSync, statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { DatabaseError, hasNoEffect } from '../../src/store/database.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { postgresWarnings } from '../../src/store/postgres-settings.ts';
import { answer, claimKinds, mark, newClaim, send, sentTo } from '../kit/ledger-claims.ts';
import { createAuthority } from '../kit/openssl.ts';
import { freePort } from '../kit/ports.ts';
import { administrate, promote, skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { ask, startReplicatedPostgres } from '../kit/replicated-postgres.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

function connect(t: TestScope, url: string, connections?: number) {
  const database = connectPostgres(url, { connections });
  t.after(() => database.close());
  return database;
}

const isReadOnly = `SELECT current_setting('transaction_read_only') AS value`;

describe('several hosts of PostgreSQL', { skip: skipWithoutPostgres, concurrency: 2 }, () => {
  test('are tried in their order, until one accepts writes', async (t) => {
    const { primary, standby } = await startReplicatedPostgres(t, '');
    const [own, other] = [new URL(primary.url).host, new URL(standby.url).host];
    const nobody = `127.0.0.1:${await freePort()}`;
    const database = connect(t, primary.url.replace(own, `${nobody},${other},${own}`));
    assert.deepEqual(await database.query(isReadOnly), [{ value: 'off' }]);
    await primary.kill();
    await assert.rejects(database.query(isReadOnly), DatabaseError);
    await assert.rejects(database.query(isReadOnly), (thrown: Error & { reason?: string }) => {
      for (const host of [nobody, other, own]) assert.match(String(thrown.reason), new RegExp(`${host}: `));
      assert.match(String(thrown.reason), /read-only, as a standby is/);
      return true;
    });
    await promote(standby);
    await until(20_000, 'the new primary server is used', () =>
      database.query(isReadOnly).then(
        ([row]) => row?.value === 'off',
        () => false,
      ),
    );
  });

  test('a server that becomes read-only is left with the next statement, also by connections that were open', async (t) => {
    const { primary, standby, url } = await startReplicatedPostgres(t, '');
    const database = connect(t, url, 1);
    await database.query('SELECT 1');
    await promote(standby);
    // As some operators of PostgreSQL do with a full disk.
    await database.query('SET default_transaction_read_only = on');
    await administrate(
      primary.url,
      'ALTER SYSTEM SET default_transaction_read_only = on',
      'SELECT pg_reload_conf()',
    );
    const write = () => database.query('DELETE FROM hold');
    await assert.rejects(write(), (thrown) => hasNoEffect(thrown));
    await write();
    const [row] = await database.query('SELECT inet_server_port() AS port');
    assert.equal(row?.port, Number(new URL(standby.url).port));
  });
});

test('TLS of PostgreSQL follows sslmode, sslrootcert, sslcert and sslkey', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const authority = createAuthority(t);
  const server = authority.issue('server', { extensions: 'subjectAltName = IP:127.0.0.1' });
  const role = authority.issue('postgres');
  const stranger = createAuthority(t, 'stranger');
  const postgres = await startPostgres(t);
  const { uid, gid } = statSync(postgres.data);
  for (const file of [server.keyFile, server.certFile, authority.certFile]) chownSync(file, uid, gid);
  chmodSync(authority.folder, 0o755);
  await administrate(
    postgres.url,
    `ALTER SYSTEM SET ssl_cert_file = '${server.certFile}'`,
    `ALTER SYSTEM SET ssl_key_file = '${server.keyFile}'`,
    `ALTER SYSTEM SET ssl_ca_file = '${authority.certFile}'`,
    'ALTER SYSTEM SET ssl = on',
    'SELECT pg_reload_conf()',
  );
  const usesTls = async (parameters: string): Promise<unknown> => {
    const database = connect(t, `${postgres.url}?${parameters}`, 1);
    const [row] = await database.query('SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
    await database.close();
    return row;
  };
  await until(10_000, 'the server has TLS', () =>
    usesTls('sslmode=require').then(
      () => true,
      () => false,
    ),
  );
  const [trusted, foreign] = [`sslrootcert=${authority.certFile}`, `sslrootcert=${stranger.certFile}`];
  assert.deepEqual(await usesTls('sslmode=disable'), { ssl: false, client_dn: null });
  assert.deepEqual(await usesTls('sslmode=require'), { ssl: true, client_dn: null });
  assert.deepEqual(await usesTls(`sslmode=verify-ca&${trusted}`), { ssl: true, client_dn: null });
  assert.deepEqual(
    await usesTls(`sslmode=verify-full&${trusted}&sslcert=${role.certFile}&sslkey=${role.keyFile}`),
    { ssl: true, client_dn: '/CN=postgres' },
  );
  for (const refused of [
    `sslmode=require&${foreign}`,
    `sslmode=verify-ca&${foreign}`,
    `sslmode=verify-full&${foreign}`,
    'sslmode=verify-full',
    'sslmode=verify-full&sslrootcert=system',
  ])
    await assert.rejects(usesTls(refused), /unavailable/, refused);
  const byName = postgres.url.replace('127.0.0.1', 'localhost');
  const wrongName = connect(t, `${byName}?sslmode=verify-full&${trusted}`, 1);
  await assert.rejects(wrongName.query('SELECT 1'), /unavailable/);
});

describe('a commit that waits for a standby', { skip: skipWithoutPostgres }, () => {
  const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;

  test('is not confirmed if its wait is cancelled', async (t) => {
    const { primary, standby } = await startReplicatedPostgres(t, 'standby');
    const database = connect(t, primary.url);
    const ledger = createLedgerTable(database);
    const [first, second] = [newClaim(), newClaim()];
    await send(ledger, first);
    assert.deepEqual(await claimKinds(ledger, [second]), ['claimed']);
    await standby.kill();
    await until(10_000, 'the standby is gone', async () => {
      const warnings = await postgresWarnings(database);
      return warnings.some(({ kind }) => kind === 'standby-missing');
    });
    const cancelled = async (waits: Promise<unknown>) => {
      const rejected = assert.rejects(waits, (thrown) => !hasNoEffect(thrown));
      await until(1_900, 'the commit waits', async () => (await ask(primary.url, waiting)).length > 0);
      for (const { pid } of await ask(primary.url, waiting))
        await ask(primary.url, `SELECT pg_cancel_backend(${Number(pid)})`);
      await rejected;
    };
    await cancelled(ledger.mark(mark(second)));
    const [row] = await ask(primary.url, `SELECT step FROM ledger WHERE attempt = '${second.attempt}'`);
    assert.equal(row?.step, 'sending', 'the server has it, and the gateway does not count on it');
    await cancelled(ledger.recordAnswer(sentTo(first), answer));
    // The row has the answer: only another commit shows that the standby has it.
    await cancelled(ledger.recordAnswer(sentTo(first), answer));
    await standby.restart();
    await until(20_000, 'the answer is confirmed', () =>
      ledger.recordAnswer(sentTo(first), answer).then(
        (outcome) => outcome === 'recorded',
        () => false,
      ),
    );
    const stored = async (url: string) =>
      (await ask(url, `SELECT step FROM ledger WHERE attempt = '${first.attempt}'`))[0]?.step;
    assert.equal(await stored(standby.url), 'answered');
  });
});
