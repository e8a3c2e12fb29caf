/** The contract of fenced writes. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EpochMismatchError, type Fence, serializeEpoch } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

export function testFences({ skip, createStore }: StateUnderTest): void {
  describe('fenced writes', { skip }, () => {
    test('take effect, and raise the stored and the known sequence number by one', async (t) => {
      const { keyValues, partitions } = await (await createStore(t)).client();
      const [partition = ''] = partitions;
      const fence = fenceOf(partition, 7);
      await keyValues.write(fence.key, serializeEpoch(fence));
      assert.equal(await keyValues.writeIfAbsent(`${partition}key`, 'one', undefined, fence), true);
      assert.equal(await keyValues.replace(`${partition}key`, 'one', 'two', undefined, { fence }), true);
      assert.equal(await keyValues.read(`${partition}key`), 'two');
      assert.equal(fence.sequence, 9);
      assert.equal(await keyValues.read(fence.key), 'epoch-a 9');
    });

    test('change neither the value nor the sequence number if the current value is another one', async (t) => {
      const { keyValues, partitions } = await (await createStore(t)).client();
      const [partition = ''] = partitions;
      const fence = fenceOf(partition, 7);
      await keyValues.write(fence.key, serializeEpoch(fence));
      await keyValues.write(`${partition}key`, 'other');
      assert.equal(await keyValues.writeIfAbsent(`${partition}key`, 'one', undefined, fence), false);
      assert.equal(await keyValues.replace(`${partition}key`, 'one', 'two', undefined, { fence }), false);
      assert.equal(await keyValues.replace(`${partition}absent`, 'one', 'two', undefined, { fence }), false);
      assert.equal(await keyValues.read(`${partition}key`), 'other');
      assert.equal(await keyValues.read(fence.key), 'epoch-a 7');
    });

    test('take effect if other instances have written since', async (t) => {
      const { keyValues, partitions } = await (await createStore(t)).client();
      const [partition = ''] = partitions;
      const fence = fenceOf(partition, 7);
      await keyValues.write(fence.key, 'epoch-a 12');
      assert.equal(await keyValues.writeIfAbsent(`${partition}key`, 'one', undefined, fence), true);
      assert.equal(fence.sequence, 13);
    });

    test('expire after their time to live, and their epoch does not expire', async (t) => {
      const store = await createStore(t);
      const { keyValues, partitions } = await store.client();
      const [partition = ''] = partitions;
      const fence = fenceOf(partition, 0);
      await keyValues.write(fence.key, serializeEpoch(fence));
      await keyValues.writeIfAbsent(`${partition}key`, 'one', 1, fence);
      assert.equal(await keyValues.writeIfAbsent(`${partition}other`, 'one', undefined, fence), true);
      const isExpired = async () => (await keyValues.read(`${partition}key`)) === undefined;
      await store.until(5_000, 'the value expires', isExpired);
      assert.equal(await keyValues.read(fence.key), 'epoch-a 2');
    });

    const losses = {
      'is gone': undefined,
      'is another one': 'epoch-b 7',
      'has a lower sequence number': 'epoch-a 6',
      'cannot be read': 'epoch-a',
    };
    for (const [what, stored] of Object.entries(losses)) {
      test(`fail and write nothing if the stored epoch ${what}`, async (t) => {
        const { keyValues, partitions } = await (await createStore(t)).client();
        const [partition = ''] = partitions;
        const fence = fenceOf(partition, 7);
        if (stored !== undefined) await keyValues.write(fence.key, stored);
        await keyValues.write(`${partition}present`, 'one');
        await assert.rejects(
          keyValues.writeIfAbsent(`${partition}key`, 'one', undefined, fence),
          EpochMismatchError,
        );
        await assert.rejects(
          keyValues.replace(`${partition}present`, 'one', 'two', undefined, { fence }),
          EpochMismatchError,
        );
        assert.equal(await keyValues.read(`${partition}key`), undefined);
        assert.equal(await keyValues.read(`${partition}present`), 'one');
        assert.equal(await keyValues.read(fence.key), stored);
      });
    }

    test('increment the sequence number once each, even if 200 run at the same time', async (t) => {
      const store = await createStore(t);
      const { keyValues, partitions } = await store.client();
      const [partition = ''] = partitions;
      await keyValues.write(`${partition}epoch`, 'epoch-a 0');
      const fence = fenceOf(partition, 0);
      await Promise.all(
        Array.from({ length: 200 }, (_, index) =>
          keyValues.writeIfAbsent(`${partition}${index}`, 'one', undefined, fence),
        ),
      );
      assert.equal(fence.sequence, 200);
      assert.equal(await keyValues.read(fence.key), 'epoch-a 200');
    });
  });
}

const fenceOf = (partition: string, sequence: number): Fence => ({
  key: `${partition}epoch`,
  epoch: 'epoch-a',
  sequence,
});
