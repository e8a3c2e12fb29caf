/** Changes that come at the same time are one transaction: all of them, or none. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createChanges } from '../../../src/state/file-changes.ts';

/** A disk that counts transactions, and fails while it is told to. */
function createDisk() {
  const disk = { transactions: 0, isFull: false };
  const change = createChanges((work) => {
    work();
    if (disk.isFull) throw new Error('full');
    disk.transactions += 1;
  });
  return { disk, change };
}

describe('changes', () => {
  test('of one moment are made in their order, in one transaction; each hears its own answer', async () => {
    const { disk, change } = createDisk();
    let count = 0;
    const answers = await Promise.all(Array.from({ length: 100 }, () => change(() => ++count)));
    assert.deepEqual(
      answers,
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    assert.equal(disk.transactions, 1);
    assert.equal(await change(() => 'later'), 'later');
    assert.equal(disk.transactions, 2);
  });

  test('are not answered before they are on the disk', async () => {
    const { disk, change } = createDisk();
    assert.equal(await change(() => disk.transactions).then(() => disk.transactions), 1);
  });

  test('that went together fail together, and later ones are made', async () => {
    const { disk, change } = createDisk();
    disk.isFull = true;
    const settled = await Promise.allSettled([change(() => 1), change(() => 2)]);
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    disk.isFull = false;
    assert.equal(await change(() => 3), 3);
  });

  test('that came with one that throws are not made either', async () => {
    const { disk, change } = createDisk();
    const bad = change(() => {
      throw new Error('bad');
    });
    await assert.rejects(Promise.all([change(() => 1), bad]), /bad/);
    assert.equal(disk.transactions, 0);
  });
});
