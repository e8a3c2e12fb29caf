import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createHoldTable } from '../../../src/store/holds.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createHolds } from '../../../src/upstream/circuit/holds.ts';
import { createAdaptiveRates } from '../../../src/upstream/shaping/adaptive-rate.ts';
import { createPermitSources } from '../../../src/upstream/shaping/permits.ts';
import { createUpstreams } from '../../../src/upstream/upstreams.ts';
import { newMemoryDatabase } from '../../kit/database.ts';
import { configOf, type Sections } from '../../kit/gateway.ts';
import { parsePrometheus } from '../../kit/prometheus.ts';

/** Metrics with the upstreams that `create` adds to them. */
function startMetrics() {
  const state = createMemoryState();
  const metrics = createMetrics();
  const shared = {
    permits: createPermitSources(state.tokenBuckets, {
      instances: () => 1,
      share: () => 1,
      telemetry: { log: () => {}, metrics },
    }),
    adaptiveRates: createAdaptiveRates(state),
    holds: createHolds(createHoldTable(newMemoryDatabase()), state.pubsub),
    timeline: { record: () => {} },
  };
  const create = (...names: readonly string[]) => createWith({}, ...names);
  const createWith = (sections: Sections, ...names: readonly string[]) =>
    createUpstreams(
      configOf({
        ...sections,
        environments: {
          active: names[0],
          ...Object.fromEntries(names.map((name) => [name, { baseUrl: `https://${name}.bank.example` }])),
        },
      }),
      shared,
      { log: () => {}, metrics },
    );
  const { holds } = shared;
  const values = async (name: string) =>
    parsePrometheus(await metrics.text())
      .get(name)
      ?.samples.map(({ labels, value }) => [...Object.values(labels), value]);
  return { metrics, holds, create, createWith, values };
}

describe('the gauges of the upstreams', () => {
  test('show a circuit that has never changed', async () => {
    const { create, values } = startMetrics();
    create('sandbox');
    assert.deepEqual((await values('penstock_circuit_state'))?.slice(0, 4), [
      ['sandbox', 'write', 'closed', 1],
      ['sandbox', 'write', 'open', 0],
      ['sandbox', 'write', 'half-open', 0],
      ['sandbox', 'write', 'probation', 0],
    ]);
  });

  test('show a circuit that operators hold in the state of the hold, and that it is held', async () => {
    const { create, holds, values } = startMetrics();
    create('sandbox');
    const valuesOf = async (name: string, lane: string) =>
      (await values(name))
        ?.filter((sample) => sample[1] === lane && sample.at(-1) === 1)
        .map((sample) => sample[2]);
    const hold = { environment: 'sandbox', reason: 'maintenance', leftMs: 60_000 };
    await holds.hold({ ...hold, lane: 'write', as: 'open' });
    await holds.hold({ ...hold, lane: 'read', as: 'closed' });
    assert.deepEqual(await valuesOf('penstock_circuit_state', 'write'), ['open']);
    assert.deepEqual(await valuesOf('penstock_circuit_held', 'write'), ['open']);
    assert.deepEqual(await valuesOf('penstock_circuit_state', 'read'), ['closed']);
    assert.deepEqual(await valuesOf('penstock_circuit_held', 'read'), ['closed']);
    assert.deepEqual(await valuesOf('penstock_circuit_held', 'status'), []);
    await holds.release({ environment: 'sandbox', lane: 'write' });
    assert.deepEqual(await valuesOf('penstock_circuit_state', 'write'), ['closed']);
    assert.deepEqual(await valuesOf('penstock_circuit_held', 'write'), []);
  });

  test('show queues, running calls, the rate and the pause of each environment', async () => {
    const { create, values } = startMetrics();
    create('sandbox');
    assert.deepEqual(await values('penstock_queue_length'), [
      ['sandbox', 'write', 0],
      ['sandbox', 'read', 0],
      ['sandbox', 'status', 0],
    ]);
    assert.deepEqual(await values('penstock_calls_running'), [['sandbox', 0]]);
    assert.deepEqual(await values('penstock_tenants_at_limit'), [['sandbox', 0]]);
    assert.deepEqual(await values('penstock_shaping_rate'), [['sandbox', 50]]);
    assert.deepEqual(await values('penstock_shaping_pause_seconds'), [['sandbox', 0]]);
  });

  test('count a tenant at its limit, if several tenants may use the environment', async () => {
    const { createWith, values } = startMetrics();
    const clients = [
      { name: 'shop', apiKeySha256: 'a'.repeat(64) },
      { name: 'rival', apiKeySha256: 'b'.repeat(64), environments: ['sandbox'] },
    ];
    const upstreams = createWith({ clients, shaping: { maxConcurrent: 10 } }, 'sandbox', 'production');
    const answer = Promise.withResolvers<{ status: number; headers: [] }>();
    const calls = ['sandbox', 'production'].flatMap((environment) =>
      Array.from({ length: 15 }, () =>
        upstreams
          .of(environment)
          .limiter.run({ lane: 'write', tenant: 'shop', deadlineAtMs: Infinity }, () => answer.promise),
      ),
    );
    await setImmediate();
    assert.deepEqual(await values('penstock_calls_running'), [
      ['sandbox', 8],
      ['production', 10],
    ]);
    assert.deepEqual(await values('penstock_tenants_at_limit'), [
      ['sandbox', 1],
      ['production', 0],
    ]);
    answer.resolve({ status: 200, headers: [] });
    await Promise.all(calls);
  });

  test('do not show an environment that a reload has removed', async () => {
    const { metrics, create } = startMetrics();
    const previous = create('sandbox', 'production');
    assert.match(await metrics.text(), /production/);
    create('sandbox');
    previous.close();
    const text = await metrics.text();
    assert.match(text, /penstock_circuit_state\{environment="sandbox"/);
    assert.doesNotMatch(text, /production/);
  });
});
