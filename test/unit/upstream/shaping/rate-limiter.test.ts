import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Lane } from '../../../../src/pis/operations.ts';
import type { SharedTokenBuckets } from '../../../../src/state/ports.ts';
import { seededRandom } from '../../../kit/random.ts';
import { createSharedBuckets } from '../../../kit/shared-buckets.ts';
import { extremesOf, failingBuckets, startLimiters, worstExcess } from './rate-limiter-fixture.ts';

describe('rate limiters of three instances', () => {
  test('send at the configured rate together, and never more than rate and burst', async (t) => {
    const patient = { write: 60_000, read: 60_000, status: 60_000 };
    const { time, sent, refused, call } = startLimiters(t, { instances: 3, settings: { maxWait: patient } });
    for (let count = 0; count < 1_000; count++) void call({ limiter: count % 3 });
    await time.pass(20_000);

    assert.deepEqual([sent.length, refused.length], [1_000, 0]);
    const atMs = sent.map((call) => call.atMs);
    const { most, fewest } = extremesOf(atMs.slice(50), 5_000);
    assert.ok(most <= 255 && fewest >= 245);
    assert.ok(worstExcess(atMs, 50, 50) <= 1e-6);
  });
});

describe('rate limiters whose shared bucket runs on a clock that is set back by a minute', () => {
  test('neither refuse nor delay payments, and exceed the rate at most by the permits reserved before', async (t) => {
    let offsetMs = 0;
    const buckets = createSharedBuckets(() => Date.now() + offsetMs);
    const { time, sent, refused, call } = startLimiters(t, { instances: 2, bucketsOf: () => buckets });
    for (let count = 0; count < 200; count++) void call({ limiter: count % 2 });
    await time.pass(1_000);
    offsetMs = -60_000;
    for (let count = 0; count < 100; count++) void call({ limiter: count % 2 });
    await time.pass(5_000);

    assert.deepEqual([sent.length, refused.length], [300, 0]);
    assert.ok(
      worstExcess(
        sent.map(({ atMs }) => atMs),
        50,
        50,
      ) <= 4,
    );
  });
});

describe('rate limiters while the state is unavailable', () => {
  test('stay within the configured rate together, and use all of it', async (t) => {
    const state = failingBuckets();
    const settings = { maxWait: { write: 60_000, read: 60_000, status: 60_000 }, expectedInstances: 3 };
    const { time, sent, call } = startLimiters(t, { instances: 3, settings, bucketsOf: state.bucketsOf });
    for (let count = 0; count < 1_000; count++) void call({ limiter: count % 3 });
    await time.pass(2_000);
    state.isBroken = true;
    const brokenAtMs = time.now();
    await time.pass(6_000);

    const atMs = sent.map((call) => call.atMs).filter((at) => at > brokenAtMs);
    // Each instance may still use one permit that it reserved from the shared bucket.
    assert.ok(worstExcess(atMs, 50, 3) <= 1e-6);
    assert.ok(atMs.length >= 285);
  });

  test('share the bucket again within a second after the state is back', async (t) => {
    const state = failingBuckets();
    const settings = { expectedInstances: 5, burst: 5 };
    const { time, sent, call } = startLimiters(t, { settings, bucketsOf: state.bucketsOf });
    state.isBroken = true;
    for (let count = 0; count < 400; count++) void call();
    await time.pass(3_000);
    const alone = sent.length;
    assert.ok(alone >= 28 && alone <= 31, `${alone} calls in 3 s at a fifth of 50/s`);
    state.isBroken = false;
    await time.pass(3_000);
    assert.ok(sent.length - alone >= 100);
  });
});

test('rate limiters never exceed rate and burst in any span of time, for random arrivals', async (t) => {
  const { time, sent, call } = startLimiters(t, { instances: 3, latencyMs: 5, settings: { burst: 10 } });
  const random = seededRandom(11);
  for (let round = 0; round < 120; round++) {
    const calls = random() < 0.3 ? Math.floor(random() * 30) : 1;
    const lane = random() < 0.3 ? 'write' : 'read';
    for (let count = 0; count < calls; count++) void call({ lane, limiter: Math.floor(random() * 3) });
    await time.pass(Math.floor(random() * 150));
  }
  const excess = worstExcess(
    sent.map(({ atMs }) => atMs),
    50,
    10,
  );
  // A permit is used at the next whole millisecond: at 50/s that is a twentieth of a call.
  assert.ok(sent.length > 200 && excess <= 0.05 + 1e-6);
});

test('rate limiters refuse no call and exceed no rate while the state responds slowly, for random arrivals', async (t) => {
  const random = seededRandom(3);
  const delayed = async <Result>(response: Promise<Result>) => {
    const result = await response;
    await new Promise((resolve) => setTimeout(resolve, Math.floor(random() * 40)));
    return result;
  };
  const bucketsOf = (shared: SharedTokenBuckets): SharedTokenBuckets => ({
    ...shared,
    lease: (...all) => delayed(shared.lease(...all)),
  });
  const settings = { rate: 200, burst: 40 };
  const { time, sent, refused, call } = startLimiters(t, { instances: 3, latencyMs: 5, settings, bucketsOf });
  let calls = 0;
  for (let round = 0; round < 200; round++) {
    const lane = (['write', 'read', 'status'] as const)[Math.floor(random() * 3)] ?? 'write';
    for (let more = random() < 0.2 ? 12 : 1; more > 0; more--, calls++)
      void call({ lane, limiter: Math.floor(random() * 3) });
    await time.pass(Math.floor(random() * 60));
  }
  await time.pass(2_000);
  assert.deepEqual([sent.length, refused.length], [calls, 0]);
  const excess = worstExcess(
    sent.map(({ atMs }) => atMs),
    settings.rate,
    settings.burst,
  );
  assert.ok(excess <= 0.04 * settings.rate, 'permits arrive at most 40 ms late');
  const waits = sent.map(({ waitedMs }) => waitedMs).toSorted((one, other) => one - other);
  assert.ok((waits[Math.floor(waits.length * 0.9)] ?? 0) <= 100);
});

describe('rate limiter under ten times its rate, with 5 % payments', () => {
  for (const instances of [1, 3]) {
    test(`sends the payments first and refuses reads in time: ${instances} instances`, async (t) => {
      const { time, sent, refused, call } = startLimiters(t, { instances });
      const random = seededRandom(7);
      for (let ms = 0; ms < 20_000; ms++) {
        const limiter = Math.floor(random() * instances);
        if (random() < 0.5) void call({ lane: laneFor(random()), limiter });
        await time.pass(1);
      }

      const waits = sent.filter(({ lane }) => lane === 'write').map(({ waitedMs }) => waitedMs);
      const slow = waits.filter((waitedMs) => waitedMs > 100);
      assert.ok(waits.length > 400 && slow.length <= waits.length / 100, `${slow.length} of ${waits.length}`);
      assert.deepEqual(
        new Set(refused.map(({ lane, code }) => `${lane} ${code}`)),
        new Set(['status QUEUE_TIMEOUT', 'read QUEUE_TIMEOUT']),
      );
      assert.ok(sent.length >= 20 * 50 * 0.98, `only ${sent.length} calls were sent`);
    });
  }
});

/** 5 % payments, 15 % reads, 80 % status reads. @param random from 0 to 1 */
const laneFor = (random: number): Lane => (random < 0.05 ? 'write' : random < 0.2 ? 'read' : 'status');

describe('tenant that floods the gateway with payments', () => {
  test('hardly delays the payments of another tenant, with several instances', async (t) => {
    const { time, sent, refused, call } = startLimiters(t, { instances: 3 });
    for (let count = 0; count < 3_000; count++) void call({ tenant: 'flood', limiter: count % 3 });
    for (let second = 0; second < 8; second++) {
      void call({ tenant: 'calm', limiter: second % 3 });
      await time.pass(1_000);
    }

    const waits = sent.filter(({ tenant }) => tenant === 'calm').map(({ waitedMs }) => waitedMs);
    assert.equal(waits.length, 8);
    // Each of the three instances has a reserved permit, and serves both tenants in rotation: six permits of 20 ms each.
    assert.ok(Math.max(...waits) <= 140);
    assert.ok(refused.every(({ code }) => code === 'QUEUE_FULL'));
  });

  test('loses its place in a full queue to a tenant with fewer calls in it', async (t) => {
    const { time, sent, refused, call } = startLimiters(t, { settings: { queue: 10, burst: 1, rate: 1 } });
    for (let count = 0; count < 30; count++) void call({ tenant: 'flood' });
    for (let count = 0; count < 3; count++) void call({ tenant: 'calm' });
    await time.pass(8_000);
    assert.equal(sent.filter(({ tenant }) => tenant === 'calm').length, 3);
    assert.ok(refused.every(({ code }) => code === 'QUEUE_FULL'));
  });
});

describe('a refusal of the queue concerns only its tenant', () => {
  async function refusalsOf(t: TestContext, tenants: readonly string[], isShared = true): Promise<string> {
    const { time, refused, call } = startLimiters(t, {
      isShared,
      settings: { queue: 10, burst: 1, rate: 1 },
    });
    for (let count = 0; count < 30; count++) for (const tenant of tenants) void call({ tenant });
    await time.pass(60_000);
    assert.deepEqual(new Set(refused.map(({ code }) => code)), new Set(['QUEUE_FULL', 'QUEUE_TIMEOUT']));
    const ofTenant = refused.filter(({ isOfTenant }) => isOfTenant).length;
    return `${ofTenant} of ${refused.length}`;
  }

  test('if most of the waiting calls are its own', async (t) => {
    assert.equal(await refusalsOf(t, ['flood']), '19 of 20');
  });

  test('and not if several tenants wait equally', async (t) => {
    assert.match(await refusalsOf(t, ['one', 'another']), /^0 of /);
  });

  test('and not if there is one tenant', async (t) => {
    assert.match(await refusalsOf(t, ['shop'], false), /^0 of /);
  });
});

test('a burst of reads leaves half of the token bucket to payments', async (t) => {
  const { time, sent, call } = startLimiters(t, { settings: { rate: 1, burst: 10 } });
  for (let count = 0; count < 20; count++) void call({ lane: 'read' });
  await time.pass(10);
  for (let count = 0; count < 20; count++) void call({ lane: 'write' });
  await time.pass(10);
  const sentIn = (lane: Lane) => sent.filter((call) => call.lane === lane).length;
  assert.deepEqual([sentIn('read'), sentIn('write')], [5, 5]);
});

describe('call that does not wait', () => {
  test('needs no timer and no other turn of the event loop', (t) => {
    const { sent, call } = startLimiters(t, { latencyMs: 0 });
    const timers = t.mock.method(globalThis, 'setTimeout');
    void call();
    void call({ lane: 'status' });
    assert.deepEqual([sent.length, timers.mock.callCount()], [2, 0]);
  });

  test('costs one request to shared buckets if it is the only one', async (t) => {
    const buckets = failingBuckets();
    const { time, sent, call } = startLimiters(t, { bucketsOf: buckets.bucketsOf, latencyMs: 0 });
    await call();
    await time.pass(1_000);
    assert.deepEqual([sent.length, buckets.requests], [1, 1]);
  });

  test('costs hardly a request to shared buckets if there are many', async (t) => {
    const buckets = failingBuckets();
    const { sent, call } = startLimiters(t, { bucketsOf: buckets.bucketsOf, latencyMs: 0 });
    await Promise.all(Array.from({ length: 50 }, () => call()));
    assert.equal(sent.length, 50);
    assert.ok(buckets.requests <= 10, `${buckets.requests} requests`);
  });
});

test('an empty token bucket costs at most two requests per permit, regardless of the queue length', async (t) => {
  const buckets = failingBuckets();
  for (const lane of ['write', 'read'] as const) {
    const settings = { burst: 1, maxWait: { write: 9_000, read: 9_000, status: 9_000 } };
    const { time, sent, call } = startLimiters(t, { bucketsOf: buckets.bucketsOf, settings });
    buckets.requests = 0;
    for (let count = 0; count < 500; count++) void call({ lane });
    await time.pass(5_000);
    assert.ok(sent.length >= 250, `${sent.length} calls`);
    assert.ok(buckets.requests <= 2 * sent.length, `${buckets.requests} requests`);
    t.mock.timers.reset();
  }
});

for (const [lane, burst] of [
  ['write', 1],
  ['read', 1],
  ['read', 2],
] as const)
  test(`an instance that uses a bucket of ${burst} alone reaches its rate, although the state answers after 2 ms: ${lane}`, async (t) => {
    const bucketsOf = (shared: SharedTokenBuckets): SharedTokenBuckets => ({
      ...shared,
      async lease(...all) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        const granted = await shared.lease(...all);
        await new Promise((resolve) => setTimeout(resolve, 1));
        return granted;
      },
    });
    const patient = { write: 1e9, read: 1e9, status: 1e9 };
    const { time, sent, call } = startLimiters(t, { bucketsOf, settings: { burst, maxWait: patient } });
    for (let count = 0; count < 600; count++) void call({ lane });
    await time.pass(10_000);
    assert.ok(sent.length >= 490, `${sent.length} of 500 calls`);
    const times = sent.map(({ atMs }) => atMs);
    assert.ok(worstExcess(times, 50, burst) <= 0.1 + 1e-6, 'permits arrive at most 2 ms late');
  });

describe('call whose permit is requested in advance', () => {
  /** The state answers after this time. */
  const slowBuckets = (answerMs: () => number) => (shared: SharedTokenBuckets) => ({
    ...shared,
    async lease(...all: Parameters<SharedTokenBuckets['lease']>) {
      const granted = await shared.lease(...all);
      await new Promise((resolve) => setTimeout(resolve, answerMs()));
      return granted;
    },
  });

  test('does not wait for the state', async (t) => {
    const { time, sent, call } = startLimiters(t, { bucketsOf: slowBuckets(() => 30) });
    for (const lane of ['write', 'read', 'status'] as const) void call({ lane, prefetchMs: 31 });
    await time.pass(100);
    assert.deepEqual(
      sent.map(({ waitedMs }) => waitedMs),
      [0, 0, 0],
    );
  });

  test('waits behind calls that are queued already', async (t) => {
    const settings = { rate: 1, burst: 2, maxConcurrent: 1, reserve: 0 };
    const { time, sent, call } = startLimiters(t, { bucketsOf: slowBuckets(() => 0), settings });
    void call({ tenant: 'late', prefetchMs: 10 });
    await time.pass(5);
    void call({ tenant: 'first' });
    void call({ tenant: 'second' });
    await time.pass(3_000);
    assert.deepEqual(
      sent.map(({ tenant }) => tenant),
      ['first', 'second', 'late'],
    );
  });

  test('is not requested for a status read if payments have no reserve', async (t) => {
    const buckets = failingBuckets();
    const settings = { rate: 2, burst: 1 };
    const { time, call } = startLimiters(t, { bucketsOf: buckets.bucketsOf, settings });
    void call({ lane: 'status', prefetchMs: 10, givesUp: true });
    await time.pass(5);
    assert.equal(buckets.requests, 0);
  });

  test('exceeds the rate by at most the permits of 60 ms, for random arrivals', async (t) => {
    const random = seededRandom(17);
    const bucketsOf = slowBuckets(() => Math.floor(random() * 10));
    const maxWait = { write: 60_000, read: 60_000, status: 60_000 };
    const settings = { rate: 60, burst: 6, maxWait };
    const { time, sent, refused, call } = startLimiters(t, {
      instances: 3,
      latencyMs: 5,
      settings,
      bucketsOf,
    });
    let calls = 0;
    for (let round = 0; round < 400; round++) {
      const lane = (['write', 'read', 'status'] as const)[Math.floor(random() * 3)] ?? 'write';
      for (let more = random() < 0.2 ? 8 : 1; more > 0; more--) {
        const givesUp = random() < 0.2;
        if (!givesUp) calls += 1;
        const prefetchMs = Math.floor(random() * 80);
        void call({ lane, limiter: Math.floor(random() * 3), prefetchMs, givesUp });
      }
      await time.pass(Math.floor(random() * 90));
    }
    await time.pass(5_000);
    assert.deepEqual([sent.length, refused.length], [calls, 0]);
    const times = sent.map(({ atMs }) => atMs);
    assert.ok(
      worstExcess(times, settings.rate, settings.burst) <= 0.06 * settings.rate,
      'at most 60 ms late',
    );
  });
});

describe('queued call', () => {
  const slow = { rate: 1, burst: 1 };

  test('is refused immediately if the next permit exceeds the longest wait of all lanes', async (t) => {
    const maxWait = { write: 900, read: 500, status: 200 };
    const { time, refused, call } = startLimiters(t, { settings: { rate: 1, burst: 2, maxWait } });
    for (const lane of ['write', 'write', 'write', 'read'] as const) void call({ lane });
    await time.settle();
    assert.deepEqual(refused.map(({ lane, code }) => `${lane} ${code}`).toSorted(), [
      'read QUEUE_TIMEOUT',
      'write QUEUE_TIMEOUT',
    ]);
  });

  test('is refused at the end of the maxWait of its lane', async (t) => {
    const maxWait = { write: 5_000, read: 500, status: 200 };
    const { time, refused, call } = startLimiters(t, { settings: { ...slow, maxWait } });
    void call();
    for (const lane of ['read', 'status'] as const) void call({ lane });
    const codes = () => refused.map(({ lane, code }) => `${lane} ${code}`);
    await time.pass(199);
    assert.deepEqual(codes(), []);
    await time.pass(1);
    assert.deepEqual(codes(), ['status QUEUE_TIMEOUT']);
    await time.pass(300);
    assert.deepEqual(codes(), ['status QUEUE_TIMEOUT', 'read QUEUE_TIMEOUT']);
  });

  test('is refused at the end of its maxWait while requests for permits are always pending', async (t) => {
    const pending = new Promise<never>(() => {});
    const bucketsOf = (shared: SharedTokenBuckets) => ({ ...shared, lease: () => pending });
    const { time, refused, call } = startLimiters(t, { bucketsOf, settings: { queue: 2_000 } });
    void call({ lane: 'status' });
    for (let ms = 0; ms < 1_000; ms += 10) {
      assert.equal(refused.length, 0);
      void call();
      await time.pass(10);
    }
    assert.deepEqual([refused[0]?.code, refused.length], ['QUEUE_TIMEOUT', 1]);
  });

  test('is refused at its deadline', async (t) => {
    const { time, sent, refused, call } = startLimiters(t, { settings: slow });
    void call();
    void call({ deadlineMs: 300 });
    await time.pass(300);
    assert.deepEqual([sent.length, refused[0]?.code], [1, 'QUEUE_TIMEOUT']);
  });

  test('is dropped when its TPP disconnects, and the next call uses the permit', async (t) => {
    const { time, sent, refused, call } = startLimiters(t, { settings: slow });
    const tpp = new AbortController();
    void call();
    void call({ tenant: 'disconnected', signal: tpp.signal });
    void call({ tenant: 'connected' });
    await time.pass(500);
    tpp.abort();
    await time.pass(600);
    assert.deepEqual(
      sent.map(({ tenant }) => tenant),
      ['tenant', 'connected'],
    );
    assert.equal(refused.length, 1);
  });

  test('continues if its TPP disconnects after the call was sent', async (t) => {
    const { time, sent, refused, call } = startLimiters(t, { latencyMs: 100 });
    const tpp = new AbortController();
    const done = call({ signal: tpp.signal });
    await time.pass(50);
    tpp.abort();
    await time.pass(60);
    await done;
    assert.deepEqual([sent.length, refused.length], [1, 0]);
  });

  test('is overtaken by a payment that arrives after the permit was reserved', async (t) => {
    const { time, sent, call } = startLimiters(t, { settings: slow });
    void call();
    void call({ lane: 'status' });
    await time.pass(900);
    void call({ lane: 'write', tenant: 'late' });
    await time.pass(100);
    assert.equal(sent[1]?.tenant, 'late');
  });
});

test('no more than maxConcurrent calls run, and the next one uses a slot as soon as it is free', async (t) => {
  const { time, sent, limiters, call } = startLimiters(t, { settings: { maxConcurrent: 2 }, latencyMs: 100 });
  for (let count = 0; count < 5; count++) void call();
  await time.pass(50);
  assert.deepEqual([sent.length, limiters[0]?.stats().running], [2, 2]);
  await time.pass(60);
  assert.deepEqual([sent.length, limiters[0]?.stats().running], [4, 2]);
});

test('writes without an answer for 8 s are counted until the bank answers one', async (t) => {
  const { time, limiters } = startLimiters(t);
  const [limiter] = limiters;
  assert.ok(limiter);
  const run = (lane: 'write' | 'status') => {
    const { promise, resolve } = Promise.withResolvers<{ status: number; headers: [] }>();
    void limiter.run({ lane, tenant: 'tenant', deadlineAtMs: Number.POSITIVE_INFINITY }, () => promise);
    return () => resolve({ status: 201, headers: [] });
  };
  const answers = [run('write'), run('write'), run('status')];
  await time.pass(7_900);
  assert.equal(limiter.stats().silentWrites, 0);
  await time.pass(200);
  assert.equal(limiter.stats().silentWrites, 2);
  answers[0]?.();
  await time.settle();
  assert.equal(limiter.stats().silentWrites, 0);
});

test('a failed call frees its concurrency slot', async (t) => {
  const { time, limiters } = startLimiters(t, { settings: { maxConcurrent: 1 } });
  const fails = () => Promise.reject(new Error('bank down'));
  const payment = { lane: 'write', tenant: 'tenant', deadlineAtMs: Number.POSITIVE_INFINITY } as const;
  for (let tries = 0; tries < 3; tries++) {
    await assert.rejects(limiters[0]?.run(payment, fails) ?? Promise.resolve(), /bank down/);
  }
  await time.settle();
  assert.equal(limiters[0]?.stats().running, 0);
});

test('a call that exceeds the queue is refused immediately', async (t) => {
  const { time, refused, call } = startLimiters(t, { settings: { rate: 1, burst: 1, queue: 3 } });
  for (let count = 0; count < 6; count++) void call({ lane: 'status' });
  await time.settle();
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['QUEUE_FULL', 'QUEUE_FULL'],
  );
});
