import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInstanceCounter } from '../../src/services.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { captureLog } from '../kit/log-capture.ts';
import { parsePrometheus } from '../kit/prometheus.ts';

/** A counter that expects two instances. `count` refreshes it until it counts, and returns the gauge of live instances. */
function startCounter() {
  const { log, lines } = captureLog();
  const metrics = createMetrics();
  const instances = { countLive: async () => 1 };
  const counter = createInstanceCounter(
    () => instances.countLive(),
    () => 2,
    { log, metrics },
  );
  const gauge = async (name: string) => parsePrometheus(await metrics.text()).get(name)?.samples[0]?.value;
  const count = async () => {
    for (let refreshes = 0; refreshes < 5; refreshes++) await counter.refresh();
    return gauge('penstock_instances_live');
  };
  return { instances, lines, gauge, count };
}

describe('the counter of live instances', () => {
  test('warns once while there are more instances than expected, and again when that happens again', async () => {
    const { instances, lines, count } = startCounter();
    for (const [live, warnings] of [
      [2, 0],
      [3, 1],
      [4, 1],
      [2, 1],
      [3, 2],
    ] as const) {
      instances.countLive = async () => live;
      assert.deepEqual([await count(), lines.length], [live, warnings]);
    }
    assert.deepEqual(lines[0]?.fields, { live: 3, expected: 2 });
  });

  test('keeps its last count while the state is unavailable', async () => {
    const { instances, count } = startCounter();
    await count();
    instances.countLive = () => Promise.reject(new Error('unavailable'));
    assert.equal(await count(), 1);
  });

  test('exports the expected number of instances', async () => {
    assert.equal(await startCounter().gauge('penstock_instances_expected'), 2);
  });
});
