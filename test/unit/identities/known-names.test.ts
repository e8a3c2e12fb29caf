import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createKnownNames, logWithNames } from '../../../src/identities/known-names.ts';
import type { StoredNames } from '../../../src/store/identities.ts';

const stored: StoredNames = {
  revision: 0,
  tenants: [
    { name: 'shop', id: 'shop' },
    { name: 'rival', id: 'rival' },
    { name: 'store', id: 'shop' },
    { name: 'market', id: 'shop' },
  ],
  environments: [
    { name: 'sandbox', id: 'sandbox' },
    { name: 'bank-a', id: 'sandbox' },
  ],
};

async function known() {
  const names = createKnownNames({ readNames: async () => structuredClone(stored) });
  await names.refresh();
  return names;
}

describe('the names in the database', () => {
  test('are the same object until they change', async () => {
    const names = await known();
    const before = names.known();
    assert.equal(await names.refresh(), before);
  });

  test('are those of the read that began last, in whatever order the answers arrive', async () => {
    const answers: ((names: StoredNames) => void)[] = [];
    const readNames = () => new Promise<StoredNames>((resolve) => answers.push(resolve));
    const names = createKnownNames({ readNames });
    const reads = [names.refresh()];
    await setTimeout(1); // a read that begins in the same tick is as good
    reads.push(names.refresh());
    const newer = { ...stored, revision: 1 };
    answers[1]?.(newer);
    assert.deepEqual(await reads[1], newer);
    answers[0]?.(stored);
    assert.deepEqual(await reads[0], newer);
    assert.deepEqual(names.known(), newer);
  });

  test('find the records of a tenant under each of its names', async () => {
    const { recordedAs } = await known();
    assert.deepEqual(recordedAs('market'), ['shop', 'market#?']);
    assert.deepEqual(recordedAs('shop'), ['shop', 'shop#?']);
    assert.deepEqual(recordedAs('nobody'), ['nobody', 'nobody#?']);
  });

  test('replace ids by the newest name', async () => {
    const { nameOf, withNames } = await known();
    const recorded = ['shop', 'rival', 'nobody', 'store#?'];
    assert.deepEqual(recorded.map(nameOf), ['market', 'rival', 'nobody', 'store']);
    const fields = { tenant: 'shop', environment: 'sandbox', other: 1 };
    assert.deepEqual(withNames(fields), { tenant: 'market', environment: 'bank-a', other: 1 });
    assert.deepEqual(withNames({ environment: undefined }), { environment: undefined });
  });

  test('replace ids in log lines', async () => {
    const logged: unknown[] = [];
    logWithNames((...line) => void logged.push(line), await known())('warn', 'text', { tenant: 'shop' });
    assert.deepEqual(logged, [['warn', 'text', { tenant: 'market' }]]);
  });

  test('are the ids until they have been read', () => {
    const names = createKnownNames({ readNames: async () => stored });
    assert.deepEqual(names.recordedAs('shop'), ['shop', 'shop#?']);
    assert.equal(names.nameOf('shop'), 'shop');
    assert.deepEqual(names.withNames({ tenant: 'shop' }), { tenant: 'shop' });
  });
});
