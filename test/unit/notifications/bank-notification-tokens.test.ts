import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { createBankNotificationTokens } from '../../../src/notifications/bank-notification-tokens.ts';
import { encryptKeyValues } from '../../../src/state/encryption.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { KeyValues } from '../../../src/state/ports.ts';

const hour = 3_600_000;

function createInstance(keyValues: Parameters<typeof createBankNotificationTokens>[0]['keyValues']) {
  const time = { nowMs: 1_790_000_000_000 };
  return {
    tokens: createBankNotificationTokens({ keyValues, keepForMs: () => hour, now: () => time.nowMs }),
    time,
  };
}

async function issued(
  environment = 'production',
  { keyValues }: { keyValues: KeyValues } = createMemoryState(),
) {
  const { tokens, time } = createInstance(keyValues);
  await tokens.refresh();
  const token = tokens.create(environment);
  assert.ok(token);
  return { keyValues, tokens, time, token };
}

describe('the token of a notification', () => {
  test('is verified by every instance, also after a restart', async () => {
    const { keyValues, token } = await issued();
    const other = createInstance(keyValues).tokens;
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

  test('is verified without the shared state', async () => {
    const { keyValues, token } = await issued();
    const read: KeyValues['read'] = (key) => keyValues.read(key);
    const calls: string[] = [];
    const { tokens } = createInstance({
      ...keyValues,
      read(key) {
        calls.push(key);
        return read(key);
      },
    });
    await tokens.refresh();
    const before = calls.length;
    tokens.verify(token.text, ['production']);
    tokens.verify(`A${token.text.slice(1)}`, ['production']);
    assert.equal(calls.length, before);
  });
});

describe('the secret of the tokens', () => {
  test('is the same for instances that generate it at the same time', async () => {
    const { keyValues } = createMemoryState();
    const [one, other] = [createInstance(keyValues).tokens, createInstance(keyValues).tokens];
    await Promise.all([one.refresh(), other.refresh()]);
    const token = one.create('production');
    assert.ok(token && other.verify(token.text, ['production']));
  });

  test('is not known before the shared state was read: no token is created', () => {
    const { keyValues } = createMemoryState();
    assert.equal(createInstance(keyValues).tokens.create('production'), undefined);
  });

  test('survives the rotation of the encryption key', async () => {
    const { keyValues } = createMemoryState();
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const { token } = await issued('production', { keyValues: encryptKeyValues(keyValues, [older]) });
    await createInstance(encryptKeyValues(keyValues, [newer, older])).tokens.refresh();

    const last = createInstance(encryptKeyValues(keyValues, [newer])).tokens;
    await last.refresh();
    assert.ok(last.verify(token.text, ['production']));
  });

  test('is kept by an instance that knows it, after another instance has encrypted it with a key that this one lacks', async () => {
    const { keyValues } = createMemoryState();
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const { tokens: first, token } = await issued('production', {
      keyValues: encryptKeyValues(keyValues, [older]),
    });
    const second = createInstance(encryptKeyValues(keyValues, [newer, older])).tokens;
    await second.refresh();

    await first.refresh();
    await second.refresh();
    assert.ok(first.verify(token.text, ['production']));
    assert.ok(second.verify(token.text, ['production']));
  });

  test('is replaced if it cannot be decrypted any more', async () => {
    const { keyValues } = createMemoryState();
    await createInstance(encryptKeyValues(keyValues, [randomBytes(32)])).tokens.refresh();
    const encrypted = encryptKeyValues(keyValues, [randomBytes(32)]);
    const [one, other] = [createInstance(encrypted).tokens, createInstance(encrypted).tokens];
    await one.refresh();
    await other.refresh();
    const token = one.create('production');
    assert.ok(token && other.verify(token.text, ['production']));
  });
});
