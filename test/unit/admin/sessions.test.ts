import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSessions } from '../../../src/admin/sessions.ts';
import { encryptKeyValues } from '../../../src/state/encryption.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { until } from '../../kit/within.ts';

const source = {
  method: 'oidc',
  issuer: 'https://login.example',
  clientId: 'penstock',
  groups: ['x'],
} as const;
const recordUntil = (expiresAtMs: number) => ({ name: 'Ann', expiresAtMs, source });
const inAnHour = () => Date.now() + 3_600_000;

/** A state that shows what is written to it. */
function observedState() {
  const { keyValues, pubsub } = createMemoryState();
  const written = new Map<string, string>();
  const observed = {
    ...keyValues,
    write(key: string, value: string, ttlMs?: number) {
      written.set(key, value);
      return keyValues.write(key, value, ttlMs);
    },
  };
  return { keyValues: observed, pubsub, written };
}

describe('a session', () => {
  test('is found by its id until it is ended, on every instance', async () => {
    const { keyValues, pubsub } = createMemoryState();
    const [one, other] = [createSessions(keyValues, pubsub), createSessions(keyValues, pubsub)];
    const ended: string[] = [];
    other.onEnd((key) => ended.push(key));
    const id = await one.start(recordUntil(inAnHour()));
    const session = await other.find(id);
    assert.ok(session);
    assert.equal(session.name, 'Ann');
    assert.ok(await one.exists(session));
    await one.end(session);
    assert.equal(await other.find(id), undefined);
    assert.equal(await other.exists(session), false);
    await until(5_000, 'the message has arrived', () => ended.length > 0);
    assert.deepEqual(ended, [session.key]);
  });

  test('is not found once it has expired, under another id, or if its record is damaged', async () => {
    const { keyValues, pubsub } = createMemoryState();
    const sessions = createSessions(keyValues, pubsub);
    const record = recordUntil(inAnHour());
    const id = await sessions.start(record);
    const { key = '' } = (await sessions.find(id)) ?? {};
    await keyValues.write(key, JSON.stringify({ ...record, expiresAtMs: Date.now() }));
    assert.equal(await sessions.find(id), undefined);
    await keyValues.write(key, '{"name":"Ann"}');
    assert.equal(await sessions.find(id), undefined);
    assert.equal(await sessions.find(`${id}x`), undefined);
    assert.equal(await sessions.find(key), undefined);
  });

  test('leaves neither its id nor, where a key is configured, its content in the state', async () => {
    const { keyValues, pubsub, written } = observedState();
    const plain = createSessions(keyValues, pubsub);
    const encrypted = createSessions(encryptKeyValues(keyValues, [Buffer.alloc(32, 7)]), pubsub);
    const ids = [await plain.start(recordUntil(inAnHour())), await encrypted.start(recordUntil(inAnHour()))];
    assert.notEqual(ids[0], ids[1]);
    const [[, inPlain] = [], [, hidden] = []] = [...written];
    for (const [key, value] of written)
      for (const id of ids) assert.ok(!key.includes(id) && !value.includes(id));
    assert.match(String(inPlain), /Ann/);
    assert.doesNotMatch(String(hidden), /Ann/);
    assert.equal((await encrypted.find(ids[1] ?? ''))?.name, 'Ann');
  });
});
