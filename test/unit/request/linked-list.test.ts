import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLinkedList } from '../../../src/request/linked-list.ts';

test('who comes and goes is known in the order in which they came, as of a list', () => {
  const steps = fc.array(fc.oneof(fc.constant('enter' as const), fc.nat({ max: 20 })), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const roll = createLinkedList<number>();
      const leaves: (() => boolean)[] = [];
      let present: readonly number[] = [];
      for (const step of all) {
        if (step === 'enter') {
          present = [...present, leaves.length];
          leaves.push(roll.append(leaves.length));
        } else {
          const wasThere = present.includes(step);
          present = present.filter((one) => one !== step);
          assert.equal(leaves[step]?.() ?? false, wasThere);
        }
        assert.deepEqual(roll.toArray(), present);
        assert.deepEqual(
          [roll.first(), roll.last(), roll.size()],
          [present[0], present.at(-1), present.length],
        );
      }
    }),
  );
});
