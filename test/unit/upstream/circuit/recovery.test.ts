/** How a circuit finds out that the bank is back, and that no payment is ever used for it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../../src/request/errors.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import { createProbe } from '../../../../src/upstream/circuit/recovery.ts';
import { createAdaptiveRate, type ThrottleResponse } from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { createRateLimiter, type RateLimiter } from '../../../../src/upstream/shaping/rate-limiter.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';
import { startCircuit } from './circuit-fixture.ts';

describe('an open circuit', () => {
  test('asks the bank by itself when the pause is over, without traffic; reads go on at once then', async (t) => {
    const { time, circuit, reached, call, fail } = startCircuit(t, 'read');
    await fail();
    await time.pass(9_999);
    assert.equal(circuit.view().state, 'open');
    await time.pass(1);
    assert.deepEqual([reached.slice(10), circuit.view().state], [['probe'], 'closed']);
    assert.deepEqual(await Promise.all([call(), call()]), ['200', '200']);
  });

  test('refuses while the bank is being asked, however long that takes', async (t) => {
    const world = startCircuit(t, 'write');
    await world.fail();
    world.probeOutcome = 'nothing'; // it could not be asked
    await world.time.pass(15_000);
    assert.equal(world.circuit.view().state, 'half-open');
    assert.equal(await world.call(), 'CIRCUIT_OPEN 1');
    world.probeOutcome = 'well';
    await world.time.pass(1_000);
    assert.equal(world.circuit.view().state, 'probation');
  });

  test('waits twice as long after each probe in vain, two minutes at most', async (t) => {
    const world = startCircuit(t, 'read');
    await world.fail();
    world.probeOutcome = 'failing';
    const probes: number[] = [];
    let last = world.time.now();
    for (let count = 0; probes.length < 6; ) {
      await world.time.pass(1_000, 1_000);
      const now = world.reached.filter((one) => one === 'probe').length;
      if (now === count) continue;
      count = now;
      probes.push(world.time.now() - last);
      last = world.time.now();
    }
    assert.deepEqual(probes, [10_000, 20_000, 40_000, 80_000, 120_000, 120_000]);
  });

  test('is not closed, nor opened again, by calls that were sent before it opened', async (t) => {
    const world = startCircuit(t, 'read');
    const slow = Array.from({ length: 12 }, () => world.begin());
    await world.fail();
    for (const one of slow.slice(0, 2)) one.end(200);
    await world.time.settle();
    assert.equal(world.circuit.view().state, 'open');
    await world.time.pass(10_000);
    for (const one of slow) one.end('OUTCOME_UNKNOWN');
    await world.time.settle();
    assert.equal(world.circuit.view().state, 'closed');
  });

  test('has forgotten the old failures when it closes', async (t) => {
    const { time, circuit, call, fail } = startCircuit(t, 'read');
    await fail();
    await time.pass(10_000);
    await fail(9);
    assert.equal(circuit.view().state, 'closed');
    await call(500);
    await time.settle();
    assert.equal(circuit.view().state, 'open');
  });
});

describe('payments after a pause', () => {
  test('none is sent while the circuit is open, whatever the traffic: only probes', async (t) => {
    const world = startCircuit(t, 'write');
    await world.fail();
    world.probeOutcome = 'failing';
    for (let second = 0; second < 300; second++) {
      assert.match(await world.call(), /^CIRCUIT_OPEN \d+$/);
      await world.time.pass(1_000, 1_000);
    }
    assert.deepEqual(new Set(world.reached.slice(10)), new Set(['probe']));
  });

  test('go one at a time until one has succeeded', async (t) => {
    const { time, circuit, begin, call, fail } = startCircuit(t, 'write');
    await fail();
    await time.pass(10_000);
    assert.equal(circuit.view().state, 'probation');
    const first = begin();
    assert.equal(await call(), 'CIRCUIT_OPEN 1');
    first.end(201);
    assert.equal(await first.result, '201');
    assert.equal(circuit.view().state, 'closed');
    assert.deepEqual(await Promise.all([call(), call()]), ['200', '200']);
  });

  test('one that the bank refuses, or that never went, proves nothing: the next one may try', async (t) => {
    const { time, circuit, call, fail } = startCircuit(t, 'write');
    await fail();
    await time.pass(10_000);
    for (const outcome of [400, 429, 'QUEUE_TIMEOUT', 'STATE_UNAVAILABLE'] as const) {
      await call(outcome);
      assert.equal(circuit.view().state, 'probation');
    }
    await call(201);
    assert.equal(circuit.view().state, 'closed');
  });

  // The bank's front answers the probe, with 404 perhaps, while what is behind it is still down.
  test('cost one payment a probation, and the pauses grow, if the probe says well and payments fail', async (t) => {
    const { time, reached, circuit, call, fail } = startCircuit(t, 'write');
    await fail();
    const tries: number[] = [];
    let last = time.now();
    while (tries.length < 6) {
      await time.pass(1_000, 1_000);
      if (circuit.view().state === 'open') continue;
      tries.push(time.now() - last);
      last = time.now();
      for (let one = 0; one < 20; one++) await call(503);
    }
    assert.deepEqual(tries, [10_000, 20_000, 40_000, 80_000, 120_000, 120_000]);
    assert.equal(reached.filter((one) => one === 'write').length, 10 + 6);
  });

  test('that succeed make the next pause the first again', async (t) => {
    const { time, circuit, call, fail } = startCircuit(t, 'write');
    await fail();
    await time.pass(10_000);
    await call(503);
    await time.pass(20_000);
    await call(201);
    await fail();
    assert.equal(await call(), 'CIRCUIT_OPEN 10');
    assert.equal(circuit.view().state, 'open');
  });
});

test('reads that fail again after the probe make the next pause longer, until one succeeds', async (t) => {
  const { time, call, fail } = startCircuit(t, 'status');
  await fail();
  await time.pass(10_000);
  await fail();
  assert.equal(await call(), 'CIRCUIT_OPEN 20');
  await time.pass(20_000);
  await call(200);
  await fail();
  assert.equal(await call(), 'CIRCUIT_OPEN 10');
});

/** A shaper that gives a turn at once. */
const open: Pick<RateLimiter, 'run'> = { run: (_call, send) => send() };
const answers = (status: number) => async (): Promise<ThrottleResponse> => ({ status, headers: [] });

describe('a probe', () => {
  for (const [status, verdict] of [
    [200, 'well'],
    [302, 'well'],
    [404, 'well'],
    [429, 'well'],
    [500, 'failing'],
    [503, 'failing'],
  ] as const) {
    test(`that is answered ${status} finds the bank ${verdict}`, async () => {
      assert.equal(
        await createProbe({ limiter: open, get: answers(status), timeoutMs: 100 })('read'),
        verdict,
      );
    });
  }

  for (const [code, verdict] of [
    ['UPSTREAM_UNREACHED', 'failing'],
    ['OUTCOME_UNKNOWN', 'failing'],
    ['QUEUE_TIMEOUT', 'nothing'],
    ['QUEUE_FULL', 'nothing'],
  ] as const) {
    test(`that ends in ${code} finds the bank ${verdict}`, async () => {
      const get = () => Promise.reject(new GatewayError(code, 'as the test says'));
      assert.equal(await createProbe({ limiter: open, get, timeoutMs: 100 })('read'), verdict);
    });
  }

  test('that never left the line says nothing of the bank', async (t) => {
    const time = simulateTime(t);
    const permits = { reserve: async () => 60_000 };
    const state = createMemoryState();
    const adaptiveRate = createAdaptiveRate('sandbox', { perSecond: 50, burst: 50 }, state);
    const maxWait = { write: 10_000, read: 10_000, status: 10_000 };
    const settings = { rate: 50, burst: 50, maxConcurrent: 100, queue: 1_000, maxWait, expectedInstances: 1 };
    const limiter = createRateLimiter('sandbox', settings, { permits, adaptiveRate, now: time.now });
    const asked = createProbe({ limiter, get: answers(200), timeoutMs: 10_000, now: time.now })('write');
    await time.pass(10_001);
    assert.equal(await asked, 'nothing');
  });

  test('takes a turn in its lane, and must be over in time', async (t) => {
    const time = simulateTime(t);
    const seen: unknown[] = [];
    const limiter: Pick<RateLimiter, 'run'> = {
      run(call, send) {
        seen.push(call);
        return send();
      },
    };
    const get = async (deadlineAtMs: number) => {
      seen.push(deadlineAtMs);
      return { status: 200, headers: [] };
    };
    await createProbe({ limiter, get, timeoutMs: 5_000, now: time.now })('write');
    const deadlineAtMs = time.now() + 5_000;
    assert.deepEqual(seen, [{ lane: 'write', tenant: '', deadlineAtMs }, deadlineAtMs]);
  });
});
