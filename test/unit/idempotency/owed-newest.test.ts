import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createOwed } from '../../../src/idempotency/owed.ts';

describe('what the state has not taken', () => {
  test('is not told again after something newer in its place has been', async () => {
    const owed = createOwed();
    const told: string[] = [];
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    let isOut = true;
    const tell = (what: string, taken?: Promise<void>) => async () => {
      if (isOut) throw new Error('out of reach');
      await taken;
      told.push(what);
    };
    await owed.now('one entry', tell('one in doubt', held));
    await owed.now('another entry', tell('another in doubt'));
    isOut = false;
    const settled = owed.settle();
    await owed.now('another entry', tell('another answered'));
    letGo();
    await settled;
    assert.deepEqual(told, ['another answered', 'one in doubt']);
  });
});
