import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createReadPace } from '../../../src/notifications/pace-reads.ts';

/** A budget whose permits the test grants. */
function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked: { readonly isWanted: () => boolean; readonly grant: (isGranted: boolean) => void }[] = [];
  const pace = createReadPace({
    take(_, isWanted) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      asked.push({ isWanted, grant: resolve });
      return promise;
    },
  });
  const take = (key: string) => pace.take(key, { environment: 'sandbox', tenantId: 'shop' }, 5_000);
  return { asked, take };
}

describe('the pace of the reads after a change', () => {
  test('needs one permit for all reads of a cache key, and one for each key', async (t) => {
    const { asked, take } = start(t);
    const [one, same, other] = [take('a'), take('a'), take('b')];
    await setImmediate();
    assert.equal(asked.length, 2);
    asked[0]?.grant(true);
    const grantedAtMs = await one;
    assert.ok(grantedAtMs !== undefined);
    assert.equal(await same, grantedAtMs);
    asked[1]?.grant(false);
    assert.equal(await other, undefined);
  });

  test('asks again for a read that comes later', async (t) => {
    const { asked, take } = start(t);
    const first = take('a');
    asked[0]?.grant(true);
    await first;
    void take('a');
    assert.equal(asked.length, 2);
  });

  test('ends for a read whose time is over, and wants no permit when none waits', async (t) => {
    const { asked, take } = start(t);
    const read = take('a');
    assert.equal(asked[0]?.isWanted(), true);
    t.mock.timers.tick(5_000);
    assert.equal(await read, undefined);
    assert.equal(asked[0]?.isWanted(), false);
  });
});
