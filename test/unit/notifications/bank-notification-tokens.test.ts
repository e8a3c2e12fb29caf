import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import type { EncryptionKeys } from '../../../src/config/encryption-keys.ts';
import { createBankNotificationTokens } from '../../../src/notifications/bank-notification-tokens.ts';
import { createTextEncryption } from '../../../src/state/encryption.ts';
import {
  type BankNotificationTable,
  createBankNotificationTable,
} from '../../../src/store/bank-notifications.ts';
import { newMemoryDatabase } from '../../kit/database.ts';

const hour = 3_600_000;

const newTable = () => createBankNotificationTable(newMemoryDatabase());

function createInstance(
  table: Pick<BankNotificationTable, 'readSecret' | 'writeSecret'>,
  keys: readonly [] | EncryptionKeys = [],
) {
  const time = { nowMs: 1_790_000_000_000 };
  const encryption = createTextEncryption(keys);
  return {
    tokens: createBankNotificationTokens({
      table,
      encryption,
      keepForMs: () => hour,
      now: () => time.nowMs,
    }),
    time,
  };
}

async function issued(environment = 'production', keys: readonly [] | EncryptionKeys = []) {
  const table = newTable();
  const { tokens, time } = createInstance(table, keys);
  await tokens.refresh();
  const token = tokens.create(environment);
  assert.ok(token);
  return { table, tokens, time, token };
}

describe('the token of a notification', () => {
  test('is verified by every instance, also after a restart', async () => {
    const { table, token } = await issued();
    const other = createInstance(table).tokens;
    assert.equal(other.verify(token.text, ['production']), 'unavailable');
    await other.refresh();
    assert.deepEqual(other.verify(token.text, ['sandbox', 'production']), {
      id: token.id,
      environmentId: 'production',
    });
  });

  test('is unknown if any part of it was changed, and if it is shorter or longer', async () => {
    const { tokens, token } = await issued();
    const { text } = token;
    const changed = Array.from(text, (character, at) => {
      return text.slice(0, at) + (character === 'A' ? 'B' : 'A') + text.slice(at + 1);
    });
    for (const forged of [...changed, text.slice(1), text.slice(0, -1), `${text}A`, '', 'x', `${text}=`])
      assert.equal(tokens.verify(forged, ['production']), undefined);
  });

  test('is unknown in another environment and in another installation', async () => {
    const { tokens, token } = await issued();
    assert.equal(tokens.verify(token.text, ['sandbox']), undefined);
    assert.equal(tokens.verify(token.text, []), undefined);
    assert.equal((await issued()).tokens.verify(token.text, ['production']), undefined);
  });

  test('is valid for a limited time', async () => {
    const { tokens, token, time } = await issued();
    time.nowMs += hour;
    assert.ok(tokens.verify(token.text, ['production']));
    time.nowMs += 1_000;
    assert.equal(tokens.verify(token.text, ['production']), undefined);
  });

  test('is different for each request, and its id is in no other one', async () => {
    const { tokens } = await issued();
    const ids = Array.from({ length: 100 }, () => tokens.create('production')?.id);
    assert.equal(new Set(ids).size, 100);
  });

  test('is verified without the database', async () => {
    const { table, token } = await issued();
    let reads = 0;
    const { tokens } = createInstance({
      ...table,
      readSecret() {
        reads += 1;
        return table.readSecret();
      },
    });
    await tokens.refresh();
    const before = reads;
    tokens.verify(token.text, ['production']);
    tokens.verify(`A${token.text.slice(1)}`, ['production']);
    assert.equal(reads, before);
  });
});

describe('the secret of the tokens', () => {
  test('is the same for instances that generate it at the same time', async () => {
    const table = newTable();
    const [one, other] = [createInstance(table).tokens, createInstance(table).tokens];
    await Promise.all([one.refresh(), other.refresh()]);
    const token = one.create('production');
    assert.ok(token && other.verify(token.text, ['production']));
  });

  test('is not known before the database was read: no token is created', () => {
    assert.equal(createInstance(newTable()).tokens.create('production'), undefined);
  });

  test('survives the rotation of the encryption key', async () => {
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const { table, token } = await issued('production', [older]);
    await createInstance(table, [newer, older]).tokens.refresh();

    const last = createInstance(table, [newer]).tokens;
    await last.refresh();
    assert.ok(last.verify(token.text, ['production']));
  });

  test('is kept by an instance that knows it, after another instance has encrypted it with a key that this one lacks', async () => {
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const { table, tokens: first, token } = await issued('production', [older]);
    const second = createInstance(table, [newer, older]).tokens;
    await second.refresh();

    await first.refresh();
    await second.refresh();
    assert.ok(first.verify(token.text, ['production']));
    assert.ok(second.verify(token.text, ['production']));
  });

  test('is replaced if it cannot be decrypted any more', async () => {
    const table = newTable();
    await createInstance(table, [randomBytes(32)]).tokens.refresh();
    const key = randomBytes(32);
    const [one, other] = [createInstance(table, [key]).tokens, createInstance(table, [key]).tokens];
    await one.refresh();
    await other.refresh();
    const token = one.create('production');
    assert.ok(token && other.verify(token.text, ['production']));
  });
});
