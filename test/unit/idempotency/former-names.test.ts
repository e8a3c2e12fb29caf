import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEntryStore } from '../../../src/idempotency/former-names.ts';
import {
  type ClaimedEntry,
  claimedEntry,
  type SendingEntry,
  serialized,
} from '../../../src/idempotency/ledger-entry.ts';
import { createLedgerStore } from '../../../src/idempotency/ledger-store.ts';
import { identityOf } from '../../../src/idempotency/request-identity.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { type Fence, serializeEpoch } from '../../../src/state/ports.ts';
import { initiation } from './requests.ts';

const partitions = ['{A}', '{B}'];

async function createStores() {
  const { keyValues } = createMemoryState();
  const fence: Fence = { key: 'epoch', epoch: 'first', sequence: 0 };
  await keyValues.write(fence.key, serializeEpoch(fence));
  return {
    fence,
    keyValues,
    store: createEntryStore(keyValues, partitions),
    present: createLedgerStore(keyValues, partitions),
    former: createLedgerStore(keyValues),
  };
}

const request = initiation();

const claimedBy = (attempt: string): ClaimedEntry => ({
  ...claimedEntry(request, identityOf(request), { attempt, holder: `holder of ${attempt}` }),
  since: 0,
});

const sentBy = (attempt: string): SendingEntry => ({
  ...claimedBy(attempt),
  step: 'sending',
  environment: 'sandbox',
  listenedUntil: 0,
});

const claimOf = (attempt: string) => serialized(claimedBy(attempt));
const sendingOf = (attempt: string) => serialized(sentBy(attempt));
const inDoubtOf = (attempt: string, why: string) => serialized({ ...sentBy(attempt), step: 'in-doubt', why });

const ttlMs = 60_000;

describe('an entry with two names', () => {
  test('is claimed only if neither name is taken, and a claim that fails leaves nothing behind', async () => {
    const { store, present, former, fence } = await createStores();
    await former.create('taken', claimOf('other'), ttlMs);
    assert.equal(await store.create('taken', claimOf('own'), ttlMs, fence), false);
    assert.equal(await present.read('taken'), undefined);

    await present.create('id', claimOf('other'), ttlMs);
    assert.equal(await store.create('id', claimOf('own'), ttlMs, fence), false);
    assert.equal(await former.read('id'), undefined);

    const lost = { ...fence, epoch: 'another' };
    await assert.rejects(store.create('lost', claimOf('own'), ttlMs, lost));
    assert.equal(await former.read('lost'), undefined);
  });

  test('is sent only if both names still belong to the attempt', async () => {
    for (const name of ['present', 'former'] as const) {
      const { store, fence, ...stores } = await createStores();
      const own = claimOf('own');
      assert.ok(await store.create('id', own, ttlMs, fence));
      assert.ok(await stores[name].replace('id', own.raw, claimOf('other'), ttlMs));
      const marked = await store.replaceConfirmed('id', own.raw, sendingOf('own'), fence);
      assert.equal(marked, false, `another attempt has the ${name} name`);
    }
  });

  test('is released under both names, also if a former release has put it in doubt', async () => {
    const { store, former, fence } = await createStores();
    const own = claimOf('own');
    await store.create('id', own, ttlMs, fence);
    const { raw } = sendingOf('own');
    assert.ok(await store.replaceConfirmed('id', own.raw, sendingOf('own'), fence));
    await former.replace('id', raw, inDoubtOf('own', 'its instance is gone'));
    assert.ok(await store.release('id', raw));
    assert.ok(await store.replaceReleased('id', claimOf('next'), ttlMs, fence));
    assert.equal((await former.read('id'))?.entry?.attempt, 'next');
  });

  test('lets the attempt of a former release appear that took over an abandoned claim', async () => {
    const { store, former, fence } = await createStores();
    const abandoned = claimOf('abandoned');
    await store.create('id', abandoned, ttlMs, fence);
    await former.replace('id', abandoned.raw, sendingOf('of the former release'));
    const takenOver = await store.replace('id', abandoned.raw, claimOf('own'), ttlMs, { fence });
    assert.equal(takenOver, false);
    assert.equal((await store.read('id'))?.entry?.attempt, 'of the former release');
  });

  test('is stored again under both names after either of them was lost', async () => {
    for (const lost of ['ledger:entry:id', 'ledger:{A}entry:id']) {
      const { store, keyValues, fence, ...stores } = await createStores();
      const own = claimOf('own');
      await store.create('id', own, ttlMs, fence);
      await store.replaceConfirmed('id', own.raw, sendingOf('own'), fence);
      await keyValues.remove(lost);
      await store.create('id', sendingOf('own'));
      const [present, former] = [await stores.present.read('id'), await stores.former.read('id')];
      assert.deepEqual(present?.entry, sentBy('own'), lost);
      assert.deepEqual(former?.raw, present?.raw, lost);
    }
  });

  test('changes under both names when an earlier try changed only one', async () => {
    const { store, present, former, fence } = await createStores();
    const own = claimOf('own');
    await store.create('id', own, ttlMs, fence);
    const { raw } = sendingOf('own');
    assert.ok(await store.replaceConfirmed('id', own.raw, sendingOf('own'), fence));
    const inDoubt = inDoubtOf('own', 'the connection was reset');
    await present.replace('id', raw, inDoubt);
    assert.ok(await store.replace('id', raw, inDoubt));
    assert.equal((await former.read('id'))?.raw, inDoubt.raw);
  });
});
