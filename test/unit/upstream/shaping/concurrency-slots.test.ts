import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lanes } from '../../../../src/pis/operations.ts';
import { createConcurrencySlots } from '../../../../src/upstream/shaping/concurrency-slots.ts';

const slotsOf = (maxConcurrent: number, isShared = true, reserve = 0.1) =>
  createConcurrencySlots({ maxConcurrent, reserve }, isShared);

describe('concurrency slots', () => {
  // maxConcurrent; for all tenants together: payments, reads, status reads; for one tenant: the same
  const table: readonly (readonly [number, readonly number[], readonly number[]])[] = [
    [1, [1, 1, 1], [1, 1, 1]],
    [2, [2, 1, 1], [1, 1, 1]],
    [3, [3, 2, 1], [2, 1, 1]],
    [5, [5, 4, 3], [3, 2, 1]],
    [10, [10, 9, 8], [8, 7, 6]],
    [100, [100, 90, 85], [80, 70, 65]],
  ];
  for (const [maxConcurrent, together, each] of table) {
    test(`of ${maxConcurrent} calls: each lane may use some of them, and leaves the others free`, () => {
      const free = (isShared: boolean, tenant?: string) =>
        lanes.map((lane) => slotsOf(maxConcurrent, isShared).free(lane, tenant));
      assert.deepEqual([free(true), free(true, 'a')], [together, each]);
      assert.deepEqual([free(false), free(false, 'a')], [together, together]);
    });
  }

  test('name a tenant that holds its whole share, until one of its calls ends', () => {
    const slots = slotsOf(10);
    for (let count = 0; count < 8; count++) slots.take('a');
    slots.take('b');
    assert.deepEqual([slots.tenantsAtLimit(), slots.running()], [['a'], 9]);
    slots.release('a');
    assert.deepEqual([slots.tenantsAtLimit(), slots.running()], [[], 8]);
  });

  test('name no tenant if only one may call the environment', () => {
    const slots = slotsOf(1, false);
    slots.take('a');
    assert.deepEqual(slots.tenantsAtLimit(), []);
  });
});

test('one tenant never holds more slots than maxConcurrent without the reserve, and the others can use every lane if the reserve is at least two', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 300 }),
      fc.integer({ min: 1, max: 40 }),
      (maxConcurrent, percent) => {
        const slots = slotsOf(maxConcurrent, true, percent / 100);
        let held = 0;
        for (; slots.free('write', 'a') > 0; held++) slots.take('a');
        const reserved = Math.max(1, Math.round((maxConcurrent * percent) / 100));
        assert.ok(held >= 1 && held <= maxConcurrent - reserved, `${held} of ${maxConcurrent}`);
        assert.ok(slots.free('write', 'b') > 0);
        if (reserved >= 2 && held === maxConcurrent - 2 * reserved)
          for (const lane of lanes) assert.ok(slots.free(lane, 'b') > 0, `no slot for a ${lane}`);
      },
    ),
  );
});
