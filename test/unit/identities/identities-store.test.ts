import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { IdentitiesRecord } from '../../../src/identities/identities-record.ts';
import { createIdentitiesStore } from '../../../src/identities/identities-store.ts';
import { createMemoryState } from '../../../src/state/memory.ts';

const withTenant =
  (name: string) =>
  (record: IdentitiesRecord): IdentitiesRecord => ({
    ...record,
    tenants: [...record.tenants, { ids: [name], names: [name], credentials: [] }],
  });

const stored = async (state: ReturnType<typeof createMemoryState>) =>
  JSON.parse((await state.keyValues.read('identities')) ?? 'null');

describe('the store of identities', () => {
  test('gives each change a version, and reads the changes of other instances', async () => {
    const state = createMemoryState();
    const [one, other] = [createIdentitiesStore(state), createIdentitiesStore(state)];
    await one.update(withTenant('shop'));
    await other.update(withTenant('rival'));
    await one.refresh();
    assert.equal(one.known()?.version, 2);
    assert.deepEqual(
      one.known()?.tenants.map(({ names }) => names[0]),
      ['shop', 'rival'],
    );
  });

  test('keeps the changes of several instances at the same time', async () => {
    const state = createMemoryState();
    const names = Array.from({ length: 10 }, (_, index) => `tenant-${index}`);
    await Promise.all(names.map((name) => createIdentitiesStore(state).update(withTenant(name))));
    const { tenants } = await stored(state);
    assert.deepEqual(tenants.map(({ ids }: { ids: string[] }) => ids[0]).sort(), names);
  });

  test('writes the record again if the state lost it', async () => {
    const state = createMemoryState();
    const store = createIdentitiesStore(state);
    const record = await store.update(withTenant('shop'));
    await state.keyValues.remove('identities');
    await store.refresh();
    assert.deepEqual(await stored(state), record);
  });

  test('replaces a record of a lower version, such as one from a backup', async () => {
    const state = createMemoryState();
    const store = createIdentitiesStore(state);
    await store.update(withTenant('shop'));
    const backup = (await state.keyValues.read('identities')) ?? '';
    const record = await store.update(withTenant('rival'));
    await state.keyValues.write('identities', backup);
    await store.refresh();
    assert.deepEqual(await stored(state), record);
  });

  test('notes whether an earlier release used the state, and keeps that note when it restores the record', async () => {
    const empty = createMemoryState();
    assert.equal((await createIdentitiesStore(empty).update(withTenant('shop'))).earlierRelease, false);

    const used = createMemoryState();
    await used.keyValues.write('environment:active', '{"environment":"sandbox","version":1,"epoch":"e"}');
    const store = createIdentitiesStore(used);
    assert.equal((await store.update(withTenant('shop'))).earlierRelease, true);
    await used.keyValues.remove('identities');
    await used.keyValues.remove('environment:active');
    await store.refresh();
    assert.equal((await stored(used)).earlierRelease, true);
  });

  test('refuses to read a value that is not a record, or of a later version', async () => {
    for (const value of ['garbage', '{"v":2,"version":1}']) {
      const state = createMemoryState();
      await state.keyValues.write('identities', value);
      await assert.rejects(createIdentitiesStore(state).refresh(), { code: 'STATE_UNAVAILABLE' });
      assert.equal(await state.keyValues.read('identities'), value);
    }
  });
});
