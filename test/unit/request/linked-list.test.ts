import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLinkedList } from '../../../src/request/linked-list.ts';

test('a linked list keeps insertion order through any sequence of appends and removals', () => {
  const steps = fc.array(fc.oneof(fc.constant('append' as const), fc.nat({ max: 20 })), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const list = createLinkedList<number>();
      const removals: (() => boolean)[] = [];
      let expected: readonly number[] = [];
      for (const step of all) {
        if (step === 'append') {
          expected = [...expected, removals.length];
          removals.push(list.append(removals.length));
        } else {
          const wasPresent = expected.includes(step);
          expected = expected.filter((value) => value !== step);
          assert.equal(removals[step]?.() ?? false, wasPresent);
        }
        assert.deepEqual(list.toArray(), expected);
        assert.equal(
          list.find((value) => value % 2 === 1),
          expected.find((value) => value % 2 === 1),
        );
        assert.deepEqual(
          [list.first(), list.last(), list.size()],
          [expected[0], expected.at(-1), expected.length],
        );
      }
    }),
  );
});
