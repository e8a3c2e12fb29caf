/** The time of a state in a file, whatever becomes of the machine's clock. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLastingClock } from '../../../src/state/lasting-clock.ts';

test('H11: it begins with the wall clock, and goes on steadily, whoever sets the clock meanwhile', () => {
  let [wallMs, steadyMs] = [5_000, 100];
  const now = createLastingClock({ wall: () => wallMs, steady: () => steadyMs }, 0);
  assert.equal(now(), 5_000);
  [wallMs, steadyMs] = [1, 130];
  assert.equal(now(), 5_030);
  [wallMs, steadyMs] = [9_000_000, 131];
  assert.equal(now(), 5_031);
});

test('H11: it goes on from the last time that is known, if the clock was set back before the start', () => {
  const now = createLastingClock({ wall: () => 5_000, steady: () => 100 }, 7_000);
  assert.equal(now(), 7_000);
});
