import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSessions } from '../../../src/admin/sessions.ts';
import { DatabaseError } from '../../../src/store/database.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { skipWithoutPostgres } from '../../kit/postgres.ts';

const source = {
  method: 'oidc',
  issuer: 'https://login.example',
  clientId: 'penstock',
  groups: ['x'],
} as const;
const hourMs = 3_600_000;
const recordFor = (ttlMs: number) => ({ name: 'Ann', expiresAtMs: Date.now() + ttlMs, source });
const attempt = { state: 'a state', nonce: 'a nonce', codeVerifier: 'a verifier', page: '/' };

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`a session: ${dialect}`, { skip: dialect === 'postgres' && skipWithoutPostgres }, () => {
    test('is found by its id until it is ended, on every instance', async (t) => {
      const database = await newGatewayDatabase(t, dialect);
      const [one, other] = [createSessions(database), createSessions(database)];
      const id = await one.start(recordFor(hourMs));
      const session = await other.find(id);
      const kept = await other.find(await one.start(recordFor(hourMs)));
      assert.ok(session && kept);
      assert.equal(session.name, 'Ann');
      assert.deepEqual(await other.endedOf([session, kept]), []);
      await one.end(session);
      assert.equal(await other.find(id), undefined);
      assert.deepEqual(await other.endedOf([session, kept]), [session]);
    });

    test('is not found once it has expired, under another id, or if its record is damaged', async (t) => {
      const database = await newGatewayDatabase(t, dialect);
      const sessions = createSessions(database);
      const id = await sessions.start(recordFor(hourMs));
      const { key = '' } = (await sessions.find(id)) ?? {};
      assert.equal(await sessions.find(`${id}x`), undefined);
      assert.equal(await sessions.find(key), undefined);
      await database.query('UPDATE operator_session SET expires_at = now_ms()');
      assert.equal(await sessions.find(id), undefined);
      await database.query('UPDATE operator_session SET expires_at = now_ms() + 60000, record = $1', [
        '{"name":"Ann"}',
      ]);
      assert.equal(await sessions.find(id), undefined);
    });

    test('is deleted after its end, and not before', async (t) => {
      const database = await newGatewayDatabase(t, dialect);
      const sessions = createSessions(database);
      const id = await sessions.start(recordFor(hourMs));
      await sessions.start(recordFor(-1));
      await sessions.deleteExpired();
      assert.ok(await sessions.find(id));
      const [row] = await database.query('SELECT count(*) AS rows FROM operator_session');
      assert.equal(row?.rows, 1);
    });

    test('has not ended because the database does not answer', async (t) => {
      const database = createFaultyDatabase(await newGatewayDatabase(t, dialect));
      const sessions = createSessions(database);
      const session = await sessions.find(await sessions.start(recordFor(hourMs)));
      assert.ok(session);
      database.fail('before');
      await assert.rejects(sessions.endedOf([session]), DatabaseError);
      database.recover();
      const refused = new Map([[0, new DatabaseError('a lock', 'none')]]);
      const locked = createSessions({ ...database, batch: async () => ({ rows: [], refused }) });
      await assert.rejects(locked.endedOf([session]), DatabaseError);
    });

    test('leaves neither its id nor, where a key is configured, its content in the database', async (t) => {
      const database = await newGatewayDatabase(t, dialect);
      const plain = createSessions(database);
      const encrypted = createSessions(database, [Buffer.alloc(32, 7)]);
      const ids = [await plain.start(recordFor(hourMs)), await encrypted.start(recordFor(2 * hourMs))];
      assert.notEqual(ids[0], ids[1]);
      const rows = await database.query('SELECT * FROM operator_session ORDER BY expires_at');
      for (const id of ids) assert.ok(!JSON.stringify(rows).includes(id));
      assert.match(String(rows[0]?.record), /Ann/);
      assert.doesNotMatch(String(rows[1]?.record), /Ann/);
      assert.equal((await encrypted.find(ids[1] ?? ''))?.name, 'Ann');
      assert.equal(await plain.find(ids[1] ?? ''), undefined);
    });

    test('a sign-in that has begun can be finished once, on any instance, with its own state, and in time', async (t) => {
      const database = await newGatewayDatabase(t, dialect);
      const [one, other] = [createSessions(database), createSessions(database)];
      await one.storeAttempt('id', attempt, hourMs);
      assert.equal(await other.takeAttempt('id', 'another state'), undefined);
      assert.equal(await other.find('id'), undefined);
      assert.deepEqual(await other.takeAttempt('id', 'a state'), attempt);
      assert.equal(await one.takeAttempt('id', 'a state'), undefined);
      await one.storeAttempt('id', attempt, 0);
      assert.equal(await one.takeAttempt('id', 'a state'), undefined);
    });
  });
