import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Lane } from '../../../../src/pis/operations.ts';
import {
  createFairQueue,
  type FairQueue,
  type FreeSlots,
} from '../../../../src/upstream/shaping/fair-queue.ts';

interface Item {
  readonly lane: Lane;
  readonly tenant: string;
  readonly number: number;
}

const lanes = ['write', 'read', 'status'] as const satisfies readonly Lane[];

const unlimited: FreeSlots = { free: () => 100 };

/** Items such as `write a` (lane and tenant), numbered by arrival. */
const itemsFrom = (...calls: readonly string[]): readonly Item[] =>
  calls.map((call, number) => {
    const [lane, tenant = 'a'] = call.split(' ');
    return { lane: lane as Lane, tenant, number };
  });

function queueOf(limit: number, items: readonly Item[]): FairQueue<Item> {
  const queue = createFairQueue<Item>(limit);
  for (const item of items) queue.enqueue(item);
  return queue;
}

function drain(queue: FairQueue<Item>): readonly number[] {
  const numbers: number[] = [];
  for (let item = queue.dequeue(unlimited); item; item = queue.dequeue(unlimited)) numbers.push(item.number);
  return numbers;
}

describe('fair queue', () => {
  test('serves payments before reads, and reads before status reads', () => {
    const queue = queueOf(9, itemsFrom('status', 'read', 'write', 'status', 'read', 'write'));
    assert.deepEqual(drain(queue), [2, 5, 1, 4, 0, 3]);
  });

  test('serves tenants round-robin, and each tenant by arrival', () => {
    const queue = queueOf(9, itemsFrom('write a', 'write a', 'write a', 'write b', 'write c', 'write b'));
    assert.deepEqual(drain(queue), [0, 3, 4, 1, 5, 2]);
  });

  test('serves the other tenants before one that was just served', () => {
    const queue = queueOf(9, itemsFrom('write a', 'write b'));
    assert.equal(queue.dequeue(unlimited)?.number, 0);
    queue.enqueue({ lane: 'write', tenant: 'a', number: 2 });
    assert.deepEqual(drain(queue), [1, 2]);
  });

  test('removes an item from any position', () => {
    const items = itemsFrom('write a', 'write b', 'read a');
    const queue = queueOf(9, items);
    for (const item of items.slice(1)) assert.equal(queue.remove(item), true);
    assert.equal(queue.remove(items[1] as Item), false);
    assert.deepEqual([queue.size(), queue.size('read')], [1, 0]);
    assert.deepEqual(drain(queue), [0]);
  });
});

describe('fair queue with limited slots', () => {
  /** Free slots such as `{ write: 2, 'write a': 0 }`; others are unlimited. */
  const slotsOf = (free: Readonly<Record<string, number>>): FreeSlots => ({
    free: (lane, tenant) => free[tenant === undefined ? lane : `${lane} ${tenant}`] ?? 100,
  });

  test('passes over a tenant without a free slot, which keeps its place in the rotation', () => {
    const queue = queueOf(9, itemsFrom('write a', 'write b', 'write b'));
    assert.equal(queue.dequeue(slotsOf({ 'write a': 0 }))?.number, 1);
    assert.deepEqual(drain(queue), [0, 2]);
  });

  test('serves a read while no waiting payment has a free slot', () => {
    const queue = queueOf(9, itemsFrom('write a', 'read b'));
    assert.equal(queue.dequeue(slotsOf({ 'write a': 0 }))?.number, 1);
    assert.equal(queue.dequeue(slotsOf({ 'write a': 0 })), undefined);
  });

  test('counts the items with a free slot, together at most as many as the lane has', () => {
    const queue = queueOf(9, itemsFrom('write a', 'write a', 'write a', 'write b', 'read b'));
    const countOf = (free: Readonly<Record<string, number>>) => queue.servable('write', slotsOf(free));
    assert.deepEqual(
      [{}, { 'write a': 2 }, { 'write a': -1 }, { write: 2 }, { write: -1 }].map(countOf),
      [4, 3, 1, 2, 0],
    );
  });
});

describe('full fair queue', () => {
  const droppedFrom = (calls: readonly string[], newest: string) => {
    const items = itemsFrom(...calls, newest);
    return queueOf(calls.length, items.slice(0, -1)).enqueue(items.at(-1) as Item)?.number;
  };

  test('drops the newest status read for a payment, and then the newest read', () => {
    assert.equal(droppedFrom(['status', 'status', 'read', 'read'], 'write'), 1);
    assert.equal(droppedFrom(['write', 'read', 'read'], 'write'), 2);
    assert.equal(droppedFrom(['write', 'status', 'read'], 'read'), 1);
  });

  test('never drops a more urgent item', () => {
    assert.equal(droppedFrom(['write', 'write'], 'read'), 2);
    assert.equal(droppedFrom(['write', 'read'], 'status'), 2);
  });

  test('drops an item of a tenant with more items, and never of one with as many', () => {
    assert.equal(droppedFrom(['write a', 'write a', 'write b'], 'write c'), 1);
    assert.equal(droppedFrom(['write a', 'write b'], 'write c'), 2);
    assert.equal(droppedFrom(['write a', 'write a', 'write b'], 'write b'), 3);
    assert.equal(droppedFrom(['write a', 'write a'], 'write a'), 2);
  });
});

const calls = fc.array(
  fc.record({ lane: fc.constantFrom(...lanes), tenant: fc.constantFrom('a', 'b', 'c') }),
  { maxLength: 60 },
);

test('a fair queue loses and repeats no item and never exceeds its limit, for random arrivals', () => {
  fc.assert(
    fc.property(calls, fc.integer({ min: 1, max: 20 }), (arrivals, limit) => {
      const queue = createFairQueue<Item>(limit);
      const dropped = arrivals.flatMap((arrival, number) => {
        const item = queue.enqueue({ ...arrival, number });
        assert.ok(queue.size() <= limit);
        return item ? [item.number] : [];
      });
      const all = [...dropped, ...drain(queue)].toSorted((a, b) => a - b);
      assert.deepEqual(all, [...arrivals.keys()]);
    }),
  );
});

test('a fair queue serves a tenant after at most one item of each other tenant, for random arrivals', () => {
  fc.assert(
    fc.property(calls, (arrivals) => {
      const queue = queueOf(
        100,
        arrivals.map((arrival, number) => ({ ...arrival, lane: 'write', number })),
      );
      const order = drain(queue).map((number) => arrivals[number]?.tenant);
      for (const tenant of ['a', 'b', 'c']) {
        const places = order.flatMap((served, place) => (served === tenant ? [place] : []));
        for (const [index, place] of places.entries()) {
          assert.ok(place - (places[index - 1] ?? -1) <= 3, `${tenant} waited at ${place} of ${order}`);
        }
      }
    }),
  );
});
