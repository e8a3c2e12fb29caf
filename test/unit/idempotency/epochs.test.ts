import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEpochs, epochKey, hasLostWrites, type StoredEpoch } from '../../../src/idempotency/epochs.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { serializeEpoch } from '../../../src/state/ports.ts';

/** One partition, and the steps that the instances take after a loss. */
function createPartition() {
  const { keyValues } = createMemoryState();
  const epochs = createEpochs(keyValues, ['']);
  const read = async (): Promise<StoredEpoch> => (await epochs.readAll()).get('') ?? assert.fail();
  return {
    read,
    async create(): Promise<StoredEpoch> {
      await epochs.create('');
      return read();
    },
    /** @param known the epoch that the instance knew which finds the loss */
    async closeAndOpen(known: StoredEpoch): Promise<StoredEpoch> {
      await epochs.close('', (await epochs.readAll()).get(''), known);
      await epochs.open('', await read());
      return read();
    },
    lose: () => keyValues.remove(epochKey('')),
    restore: (snapshot: StoredEpoch) => keyValues.write(epochKey(''), serializeEpoch(snapshot)),
  };
}

describe('the epoch of a partition', () => {
  test('shows that a snapshot from before the last loss was restored', async () => {
    const partition = createPartition();
    const snapshot = await partition.closeAndOpen(await partition.create());
    await partition.lose();
    const later = await partition.closeAndOpen(snapshot);
    await partition.restore(snapshot);
    assert.ok(hasLostWrites(await partition.read(), later));
    const latest = await partition.closeAndOpen(later);
    assert.ok(!hasLostWrites(latest, later), 'the instances have stored their writes again');
    assert.ok(!hasLostWrites(latest, snapshot), 'an instance that was suspended since then');
  });
});
