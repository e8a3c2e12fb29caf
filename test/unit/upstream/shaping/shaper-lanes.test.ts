/** The bank's capacity goes to payments first, and to no tenant alone. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Lane } from '../../../../src/pis/operations.ts';
import { percentile } from '../../../kit/percentile.ts';
import { seededRandom } from '../../../kit/random.ts';
import { startWorld } from './shapers.ts';

const laneOf = (part: number): Lane => (part < 0.05 ? 'write' : part < 0.2 ? 'read' : 'status');

describe('ten times the rate, one in twenty a payment', () => {
  for (const instances of [1, 3]) {
    test(`payments wait for 100 ms at most, status reads are refused in time: ${instances} instances`, async (t) => {
      const { time, seen, refused, call } = startWorld(t, { instances });
      const random = seededRandom(7);
      for (let ms = 0; ms < 20_000; ms++) {
        const shaper = Math.floor(random() * instances);
        if (random() < 0.5) void call({ lane: laneOf(random()), shaper });
        await time.pass(1);
      }

      const waits = seen.filter(({ lane }) => lane === 'write').map(({ waitedMs }) => waitedMs);
      t.diagnostic(`payments: p50 ${percentile(waits, 0.5)} ms, p99 ${percentile(waits, 0.99)} ms`);
      assert.ok(waits.length > 400 && percentile(waits, 0.99) <= 100);
      assert.deepEqual(new Set(refused.map(({ lane, code }) => `${lane} ${code}`)), new Set(late));
      assert.ok(seen.length >= 20 * 50 * 0.98, `the bank's capacity is used: ${seen.length} calls`);
    });
  }
});

const late = ['status QUEUE_TIMEOUT', 'read QUEUE_TIMEOUT'];

describe('a tenant that floods the gateway with payments', () => {
  test("does not push another's payments back, though they are many instances", async (t) => {
    const { time, seen, refused, call } = startWorld(t, { instances: 3 });
    for (let one = 0; one < 3_000; one++) void call({ tenant: 'flood', shaper: one % 3 });
    for (let second = 0; second < 8; second++) {
      void call({ tenant: 'calm', shaper: second % 3 });
      await time.pass(1_000);
    }

    const waits = seen.filter(({ tenant }) => tenant === 'calm').map(({ waitedMs }) => waitedMs);
    t.diagnostic(`the other tenant's payments waited ${waits} ms`);
    assert.equal(waits.length, 8);
    // Each instance has a turn booked and one for each tenant in rotation: twice three turns of 20 ms.
    assert.ok(Math.max(...waits) <= 140);
    assert.ok(refused.every(({ code }) => code === 'QUEUE_FULL'));
  });

  test('makes room in a full line for those that have less in it', async (t) => {
    const { time, seen, refused, call } = startWorld(t, { settings: { queue: 10, burst: 1, rate: 1 } });
    for (let one = 0; one < 30; one++) void call({ tenant: 'flood' });
    for (let one = 0; one < 3; one++) void call({ tenant: 'calm' });
    await time.pass(8_000);
    assert.equal(seen.filter(({ tenant }) => tenant === 'calm').length, 3);
    assert.ok(refused.every(({ code }) => code === 'QUEUE_FULL'));
  });
});

test('a burst of reads leaves half of the bucket to payments', async (t) => {
  const { time, seen, call } = startWorld(t, { settings: { rate: 1, burst: 10 } });
  for (let one = 0; one < 20; one++) void call({ lane: 'read' });
  await time.pass(10);
  for (let one = 0; one < 20; one++) void call({ lane: 'write' });
  await time.pass(10);
  const at = (lane: Lane) => seen.filter((one) => one.lane === lane).length;
  assert.deepEqual([at('read'), at('write')], [5, 4]); // the tenth turn is booked for a read
});
