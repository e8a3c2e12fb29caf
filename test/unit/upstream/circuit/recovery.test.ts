import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../../src/request/errors.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import { createProbe } from '../../../../src/upstream/circuit/recovery.ts';
import { createAdaptiveRate, type ThrottleResponse } from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { createRateLimiter, type RateLimiter } from '../../../../src/upstream/shaping/rate-limiter.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';
import { startCircuit } from './circuit-fixture.ts';

describe('recovery of a circuit', () => {
  test('probes the bank after the pause without any traffic, and then resumes all reads', async (t) => {
    const { time, circuit, reached, call, fail } = startCircuit(t, 'read');
    await fail();
    await time.pass(9_999);
    assert.equal(circuit.view().state, 'open');
    await time.pass(1);
    assert.deepEqual([reached.slice(10), circuit.view().state], [['probe'], 'closed']);
    assert.deepEqual(await Promise.all([call(), call()]), ['200', '200']);
  });

  test('refuses calls until a probe could be sent, and retries the probe every second', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    fixture.probeOutcome = 'neutral'; // it could not be sent
    await fixture.time.pass(15_000);
    assert.equal(fixture.circuit.view().state, 'half-open');
    assert.equal(await fixture.call(), 'CIRCUIT_OPEN 1');
    fixture.probeOutcome = 'success';
    await fixture.time.pass(1_000);
    assert.equal(fixture.circuit.view().state, 'probation');
  });

  test('doubles the pause after each failed probe, up to two minutes', async (t) => {
    const fixture = startCircuit(t, 'read');
    await fixture.fail();
    fixture.probeOutcome = 'failure';
    const probes: number[] = [];
    let last = fixture.time.now();
    for (let count = 0; probes.length < 6; ) {
      await fixture.time.pass(1_000, 1_000);
      const now = fixture.reached.filter((kind) => kind === 'probe').length;
      if (now === count) continue;
      count = now;
      probes.push(fixture.time.now() - last);
      last = fixture.time.now();
    }
    assert.deepEqual(probes, [10_000, 20_000, 40_000, 80_000, 120_000, 120_000]);
  });

  test('ignores the outcome of calls that were sent before the circuit opened', async (t) => {
    const fixture = startCircuit(t, 'read');
    const slow = Array.from({ length: 12 }, () => fixture.begin());
    await fixture.fail();
    for (const call of slow.slice(0, 2)) call.end(200);
    await fixture.time.settle();
    assert.equal(fixture.circuit.view().state, 'open');
    await fixture.time.pass(10_000);
    for (const call of slow) call.end('OUTCOME_UNKNOWN');
    await fixture.time.settle();
    assert.equal(fixture.circuit.view().state, 'closed');
  });

  test('starts with an empty failure window', async (t) => {
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

describe('payments while the circuit recovers', () => {
  test('are never sent while the circuit is open; only probes are', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    fixture.probeOutcome = 'failure';
    for (let second = 0; second < 300; second++) {
      assert.match(await fixture.call(), /^CIRCUIT_OPEN \d+$/);
      await fixture.time.pass(1_000, 1_000);
    }
    assert.deepEqual(new Set(fixture.reached.slice(10)), new Set(['probe']));
  });

  test('are sent one at a time until one has succeeded', async (t) => {
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

  test('are tried again after a trial that the bank refused or that was not sent', async (t) => {
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

  // A proxy in front of the bank may answer the probe, with 404 for example, while the bank itself still fails.
  test('fail at most once per probation, with growing pauses, while only the probes succeed', async (t) => {
    const { time, reached, circuit, call, fail } = startCircuit(t, 'write');
    await fail();
    const pauses: number[] = [];
    let last = time.now();
    while (pauses.length < 6) {
      await time.pass(1_000, 1_000);
      if (circuit.view().state === 'open') continue;
      pauses.push(time.now() - last);
      last = time.now();
      for (let count = 0; count < 20; count++) await call(503);
    }
    assert.deepEqual(pauses, [10_000, 20_000, 40_000, 80_000, 120_000, 120_000]);
    assert.equal(reached.filter((kind) => kind === 'write').length, 10 + 6);
  });

  test('reset the pause to its first length when one succeeds', async (t) => {
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

test('the pause keeps doubling while reads fail after a successful probe, and resets when one succeeds', async (t) => {
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

/** Admits every call immediately. */
const unlimited: Pick<RateLimiter, 'run'> = { run: (_call, send) => send() };
const respondWith = (status: number) => async (): Promise<ThrottleResponse> => ({ status, headers: [] });

describe('probe', () => {
  for (const [status, outcome] of [
    [200, 'success'],
    [302, 'success'],
    [404, 'success'],
    [429, 'success'],
    [500, 'failure'],
    [503, 'failure'],
  ] as const) {
    test(`is a ${outcome} after status ${status}`, async () => {
      assert.equal(
        await createProbe({ limiter: unlimited, get: respondWith(status), timeoutMs: 100 })('read'),
        outcome,
      );
    });
  }

  for (const [code, outcome] of [
    ['UPSTREAM_UNREACHED', 'failure'],
    ['OUTCOME_UNKNOWN', 'failure'],
    ['QUEUE_TIMEOUT', 'neutral'],
    ['QUEUE_FULL', 'neutral'],
  ] as const) {
    test(`is a ${outcome} after the error ${code}`, async () => {
      const get = () => Promise.reject(new GatewayError(code, 'simulated'));
      assert.equal(await createProbe({ limiter: unlimited, get, timeoutMs: 100 })('read'), outcome);
    });
  }

  test('is neutral if it got no permit in time', async (t) => {
    const time = simulateTime(t);
    const permits = { take: () => Number.POSITIVE_INFINITY };
    const state = createMemoryState();
    const adaptiveRate = createAdaptiveRate('sandbox', { perSecond: 50, burst: 50 }, state);
    const maxWait = { write: 10_000, read: 10_000, status: 10_000 };
    const settings = {
      rate: 50,
      burst: 50,
      maxConcurrent: 100,
      reserve: 0.1,
      queue: 1_000,
      maxWait,
      expectedInstances: 1,
    };
    const limiter = createRateLimiter(settings, { permits, adaptiveRate, now: time.now });
    const result = createProbe({ limiter, get: respondWith(200), timeoutMs: 10_000, now: time.now })('write');
    await time.pass(10_001);
    assert.equal(await result, 'neutral');
  });

  test('takes a permit in the lane of its circuit and has a deadline', async (t) => {
    const time = simulateTime(t);
    const received: unknown[] = [];
    const limiter: Pick<RateLimiter, 'run'> = {
      run(call, send) {
        received.push(call);
        return send();
      },
    };
    const get = async (deadlineAtMs: number) => {
      received.push(deadlineAtMs);
      return { status: 200, headers: [] };
    };
    await createProbe({ limiter, get, timeoutMs: 5_000, now: time.now })('write');
    const deadlineAtMs = time.now() + 5_000;
    assert.deepEqual(received, [{ lane: 'write', tenant: '', deadlineAtMs }, deadlineAtMs]);
  });
});
