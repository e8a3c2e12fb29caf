import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { stateUnavailable } from '../../../../src/request/errors.ts';
import type { SharedTokenBuckets } from '../../../../src/state/ports.ts';
import { createMetrics } from '../../../../src/telemetry/metrics.ts';
import { createPermitSources } from '../../../../src/upstream/shaping/permits.ts';
import { createSharedBuckets } from '../../../kit/shared-buckets.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

interface Options {
  readonly perSecond?: number;
  readonly burst?: number;
  readonly instances?: number;
}

/** The permits of one instance; the rest of the bucket belongs to the test. */
function startPermits(t: TestContext, { perSecond = 100, burst = 100, instances = 1 }: Options = {}) {
  const time = simulateTime(t);
  const world = { isDown: false, requests: 0, notifications: 0 };
  const shared = createSharedBuckets(time.now);
  const request = <Result>(send: () => Promise<Result>) => {
    world.requests += 1;
    return world.isDown ? Promise.reject(stateUnavailable()) : send();
  };
  const buckets: SharedTokenBuckets = {
    isShared: true,
    reserve: (...all) => request(() => shared.reserve(...all)),
    take: (...all) => request(() => shared.take(...all)),
    lease: (...all) => request(() => shared.lease(...all)),
  };
  const logged: string[] = [];
  const permits = createPermitSources(buckets, {
    instances: () => instances,
    expectedInstances: () => instances,
    telemetry: { log: (_level, message) => void logged.push(message), metrics: createMetrics() },
    now: time.now,
  }).of('sandbox');
  const rate = { perSecond, burst };
  const rates = { payments: rate, others: { ...rate, burst: burst / 2 }, maxWaitMs: 60_000 };
  const take = (isPayment = false, tryAgain = () => {}) => permits.take(rates, isPayment, 1, tryAgain);
  /** Takes permits until none is available. @returns their number */
  const takeAll = (isPayment = false) => {
    for (let count = 0; ; count++) if (take(isPayment) > 0) return count;
  };
  /** Waits for a permit as a queued call does. */
  const startWait = (isPayment = false) => {
    const wait = { isOver: false };
    const tryTake = () => {
      if (wait.isOver) return;
      const waitMs = take(isPayment, tryTake);
      wait.isOver = waitMs === 0;
      if (waitMs > 0 && waitMs < Number.POSITIVE_INFINITY) setTimeout(tryTake, Math.ceil(waitMs));
    };
    tryTake();
    return wait;
  };
  const takeOne = async (isPayment = false) => {
    const wait = startWait(isPayment);
    await time.settle();
    assert.ok(wait.isOver, 'a permit is available');
  };
  return { time, world, shared, rates, take, takeAll, takeOne, startWait, logged };
}

describe('the permits of a shared bucket', () => {
  test('are requested one by one without a block while there is little use', async (t) => {
    const { time, world, takeOne } = startPermits(t);
    for (let one = 0; one < 3; one++) {
      await takeOne();
      await time.pass(400);
    }
    assert.equal(world.requests, 3);
  });

  for (const isPayment of [true, false]) {
    test(`are taken from a block as large as the use in the last 100 ms: ${isPayment ? 'payments' : 'reads'}`, async (t) => {
      const { time, world, take, takeOne } = startPermits(t, { perSecond: 1_000, burst: 1_000 });
      for (let one = 0; one < 3; one++) await takeOne(isPayment);
      let missed = 0;
      world.requests = 0;
      for (let ms = 0; ms < 1_000; ms += 5) {
        if (take(isPayment) > 0 || take(isPayment) > 0) missed += 1;
        await time.pass(5);
      }
      assert.ok(missed <= 2, `${missed} calls found no permit`);
      assert.ok(world.requests <= 45, `${world.requests} requests for 400 permits`);
    });
  }

  test('are returned within 200 ms after their last use', async (t) => {
    const { time, shared, rates, takeAll, take, takeOne, world } = startPermits(t, {
      perSecond: 20,
      burst: 40,
    });
    for (let one = 0; one < 3; one++) await takeOne();
    assert.equal(take(), 0, 'there is a block');
    await time.settle();
    await time.pass(200);
    const { granted } = await shared.lease('bucket:sandbox', rates.payments, { wanted: 99, maxWaitMs: 0 });
    assert.ok(granted >= 40, `${granted} permits: all are back, and 4 have been added`);
    world.requests = 0;
    await time.pass(1_000);
    assert.deepEqual([takeAll(), world.requests], [0, 1], 'no request without use');
  });

  test('are not leased if the rate gives each instance fewer than two in 100 ms', async (t) => {
    const { time, world, takeOne } = startPermits(t, { perSecond: 50, burst: 50, instances: 3 });
    for (let one = 0; one < 10; one++) await takeOne();
    await time.pass(1_000);
    assert.equal(world.requests, 10);
  });

  test('are not used if the lease could have ended, as after a stall of the process', async (t) => {
    const { time, take, takeOne } = startPermits(t);
    for (let one = 0; one < 3; one++) await takeOne();
    assert.equal(take(), 0);
    await time.settle();
    t.mock.timers.setTime(time.now() + 600);
    assert.equal(take(), Number.POSITIVE_INFINITY);
  });

  test('are left to a payment that waits on another instance', async (t) => {
    const { time, shared, rates, startWait } = startPermits(t, { perSecond: 10, burst: 4 });
    const payment = { wanted: 1, maxWaitMs: 60_000 };
    for (let one = 0; one < 6; one++) await shared.lease('bucket:sandbox', rates.payments, payment);
    const poll = startWait();
    for (let one = 0; one < 10; one++) {
      await time.pass(100);
      assert.equal(poll.isOver, false);
      await shared.lease('bucket:sandbox', rates.payments, payment);
    }
    await time.pass(1_000);
    assert.equal(poll.isOver, true, 'after the last payment');
  });

  test('are reserved for a payment although they lie in the future, and never used early', async (t) => {
    const { time, takeOne, startWait } = startPermits(t, { perSecond: 3, burst: 1 });
    await takeOne(true);
    const wait = startWait(true);
    await time.pass(333);
    assert.equal(wait.isOver, false);
    await time.pass(1);
    assert.equal(wait.isOver, true);
  });
});

describe('the permits while the shared bucket cannot be reached', () => {
  test('come from an empty bucket with a share of the rate, and each start and end is logged once', async (t) => {
    const { time, world, takeOne, startWait, logged } = startPermits(t, {
      perSecond: 2,
      burst: 4,
      instances: 2,
    });
    world.isDown = true;
    const wait = startWait(true);
    await time.pass(999);
    assert.equal(wait.isOver, false);
    await time.pass(2);
    assert.equal(wait.isOver, true);
    await time.pass(5_000);
    assert.equal(logged.length, 1);
    world.isDown = false;
    await takeOne(true);
    assert.deepEqual(logged, [
      'rate limiting: this instance uses only its own share of shaping.rate',
      'rate limiting: this instance uses the shared rate again',
    ]);
  });

  test('are taken from the shared bucket afterwards, unless the local one has been filled again', async (t) => {
    const { time, world, take, takeAll, shared, rates } = startPermits(t, {
      perSecond: 2,
      burst: 4,
      instances: 2,
    });
    world.isDown = true;
    take(true);
    await time.pass(900);
    take(true);
    await time.pass(4_000);
    take(true); // tries the state
    await time.pass(10);
    assert.equal(takeAll(true), 2);
    world.isDown = false;
    await time.pass(1_000);
    take(true);
    await time.settle();
    const { granted } = await shared.lease('bucket:sandbox', rates.payments, { wanted: 9, maxWaitMs: 0 });
    assert.equal(granted, 3, 'one of the two permits has been added again');
  });

  test('are requested from the state once per second', async (t) => {
    const { time, world, take } = startPermits(t, { instances: 2 });
    world.isDown = true;
    for (let ms = 0; ms < 3_000; ms += 10) {
      take();
      await time.pass(10);
    }
    assert.equal(world.requests, 3);
  });
});
