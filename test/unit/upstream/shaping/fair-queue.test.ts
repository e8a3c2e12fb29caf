import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Lane } from '../../../../src/pis/operations.ts';
import { createFairQueue, type FairQueue } from '../../../../src/upstream/shaping/fair-queue.ts';

interface One {
  readonly lane: Lane;
  readonly tenant: string;
  readonly number: number;
}

const lanes = ['write', 'read', 'status'] as const satisfies readonly Lane[];

/** Calls such as `write a`, numbered by arrival. */
const arriving = (...calls: readonly string[]): readonly One[] =>
  calls.map((call, number) => {
    const [lane, tenant = 'a'] = call.split(' ');
    return { lane: lane as Lane, tenant, number };
  });

function lineOf(limit: number, ones: readonly One[]): FairQueue<One> {
  const line = createFairQueue<One>(limit);
  for (const one of ones) line.enqueue(one);
  return line;
}

function emptied(line: FairQueue<One>): readonly number[] {
  const numbers: number[] = [];
  for (let one = line.dequeue(); one; one = line.dequeue()) numbers.push(one.number);
  return numbers;
}

describe('the line', () => {
  test('lets payments go before reads, and reads before status reads', () => {
    const line = lineOf(9, arriving('status', 'read', 'write', 'status', 'read', 'write'));
    assert.deepEqual(emptied(line), [2, 5, 1, 4, 0, 3]);
  });

  test('serves tenants in rotation, and each by arrival', () => {
    const line = lineOf(9, arriving('write a', 'write a', 'write a', 'write b', 'write c', 'write b'));
    assert.deepEqual(emptied(line), [0, 3, 4, 1, 5, 2]);
  });

  test('lets a tenant that has just been served wait for the others before its turn comes again', () => {
    const line = lineOf(9, arriving('write a', 'write b'));
    assert.equal(line.dequeue()?.number, 0);
    line.enqueue({ lane: 'write', tenant: 'a', number: 2 });
    assert.deepEqual(emptied(line), [1, 2]);
  });

  test('forgets who leaves, wherever it stood', () => {
    const ones = arriving('write a', 'write b', 'read a');
    const line = lineOf(9, ones);
    for (const one of ones.slice(1)) assert.equal(line.remove(one), true);
    assert.equal(line.remove(ones[1] as One), false);
    assert.deepEqual([line.size(), line.size('read')], [1, 0]);
    assert.deepEqual(emptied(line), [0]);
  });
});

describe('in a full line', () => {
  const outOf = (calls: readonly string[], newest: string) => {
    const ones = arriving(...calls, newest);
    return lineOf(calls.length, ones.slice(0, -1)).enqueue(ones.at(-1) as One)?.number;
  };

  test('a payment takes the place of the newest status read, then of the newest read', () => {
    assert.equal(outOf(['status', 'status', 'read', 'read'], 'write'), 1);
    assert.equal(outOf(['write', 'read', 'read'], 'write'), 2);
    assert.equal(outOf(['write', 'status', 'read'], 'read'), 1);
  });

  test('nothing takes the place of what is more urgent', () => {
    assert.equal(outOf(['write', 'write'], 'read'), 2);
    assert.equal(outOf(['write', 'read'], 'status'), 2);
  });

  test('a tenant makes room for one that has less waiting, and never for one that has as much', () => {
    assert.equal(outOf(['write a', 'write a', 'write b'], 'write c'), 1);
    assert.equal(outOf(['write a', 'write b'], 'write c'), 2);
    assert.equal(outOf(['write a', 'write a', 'write b'], 'write b'), 3);
    assert.equal(outOf(['write a', 'write a'], 'write a'), 2);
  });
});

const calls = fc.array(
  fc.record({ lane: fc.constantFrom(...lanes), tenant: fc.constantFrom('a', 'b', 'c') }),
  { maxLength: 60 },
);

test('whatever arrives: nobody is lost, nobody comes twice, and the line is never longer than it may be', () => {
  fc.assert(
    fc.property(calls, fc.integer({ min: 1, max: 20 }), (arrivals, limit) => {
      const line = createFairQueue<One>(limit);
      const out = arrivals.flatMap((arrival, number) => {
        const gone = line.enqueue({ ...arrival, number });
        assert.ok(line.size() <= limit);
        return gone ? [gone.number] : [];
      });
      const all = [...out, ...emptied(line)].toSorted((one, other) => one - other);
      assert.deepEqual(all, [...arrivals.keys()]);
    }),
  );
});

test('whatever waits: a tenant is served no later than after one of each other tenant', () => {
  fc.assert(
    fc.property(calls, (arrivals) => {
      const line = lineOf(
        100,
        arrivals.map((arrival, number) => ({ ...arrival, lane: 'write', number })),
      );
      const order = emptied(line).map((number) => arrivals[number]?.tenant);
      for (const tenant of ['a', 'b', 'c']) {
        const places = order.flatMap((one, place) => (one === tenant ? [place] : []));
        for (const [index, place] of places.entries()) {
          assert.ok(place - (places[index - 1] ?? -1) <= 3, `${tenant} waited at ${place} of ${order}`);
        }
      }
    }),
  );
});
