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
  const world = { isDown: false, requests: 0, notifications: 0, givenBack: 0 };
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
    giveBack: (...all) =>
      request(async () => {
        const isReturned = await shared.giveBack(...all);
        world.givenBack += Number(isReturned);
        return isReturned;
      }),
  };
  const logged: string[] = [];
  const permits = createPermitSources(buckets, {
    instances: () => instances,
    share: () => 1 / instances,
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
  const prefetch = (isPayment = false) => permits.prefetch?.(rates, isPayment);
  return { time, world, shared, rates, take, takeAll, takeOne, startWait, prefetch, logged };
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

describe('a permit that is requested in advance', () => {
  const scarce = { perSecond: 2, burst: 2, instances: 5 };

  test('is granted before the call needs it, and no other call gets it', async (t) => {
    const { time, world, take, prefetch } = startPermits(t, scarce);
    const permit = prefetch(true);
    await time.settle();
    assert.equal(world.requests, 1);
    assert.equal(take(), Number.POSITIVE_INFINITY, 'a read must request its own');
    assert.equal(permit?.take(), true);
    assert.equal(permit?.take(), false, 'only once');
  });

  for (const isAnswered of [true, false])
    test(`goes back to the bucket if the call does not need it, ${isAnswered ? 'after' : 'before'} the bucket has answered`, async (t) => {
      const { time, world, shared, rates, prefetch } = startPermits(t, scarce);
      const permit = prefetch(true);
      if (isAnswered) await time.settle();
      permit?.release();
      permit?.release();
      await time.settle();
      assert.equal(world.givenBack, 1);
      assert.equal(permit?.take(), false);
      const { granted } = await shared.lease('bucket:sandbox', rates.payments, { wanted: 9, maxWaitMs: 0 });
      assert.equal(granted, 2);
    });

  test('is lost instead of given back if another instance has used the bucket since', async (t) => {
    const { time, world, shared, rates, prefetch } = startPermits(t, scarce);
    const permit = prefetch(true);
    await time.settle();
    const { waitMs } = await shared.lease('bucket:sandbox', rates.payments, { wanted: 1, maxWaitMs: 0 });
    assert.equal(waitMs, 0);
    permit?.release();
    await time.settle();
    assert.equal(world.givenBack, 0);
    const next = await shared.lease('bucket:sandbox', rates.payments, { wanted: 1, maxWaitMs: 0 });
    assert.deepEqual([next.granted, next.waitMs], [0, 500]);
  });

  test('goes to a call that waits if its own call does not need it', async (t) => {
    const { time, world, prefetch, startWait } = startPermits(t, { ...scarce, burst: 1 });
    const permit = prefetch(true);
    const wait = startWait(true);
    permit?.release();
    await time.settle();
    assert.equal(wait.isOver, true);
    assert.equal(world.givenBack, 0);
  });

  test('is awaited by a call that needs it before the bucket has answered', async (t) => {
    const { time, world, prefetch, startWait } = startPermits(t, scarce);
    const permit = prefetch(true);
    assert.equal(permit?.take(), false);
    const wait = startWait(true);
    await time.settle();
    assert.equal(wait.isOver, true);
    assert.equal(world.requests, 1, 'one permit was requested, not two');
  });

  test('goes back if its call needs it only after 50 ms, so that late use does not exceed the rate', async (t) => {
    const { time, world, prefetch } = startPermits(t, scarce);
    const permit = prefetch(true);
    await time.pass(51);
    assert.equal(permit?.take(), false);
    await time.settle();
    assert.equal(world.givenBack, 1);
  });

  test('is not requested if one is in memory', async (t) => {
    const { prefetch, takeOne, take, time } = startPermits(t);
    for (let one = 0; one < 3; one++) await takeOne();
    assert.equal(take(), 0, 'there is a block');
    await time.settle();
    assert.equal(prefetch(), undefined);
  });

  test('is not requested for a read while the bucket is known to be empty', async (t) => {
    const { time, prefetch, takeOne } = startPermits(t, { ...scarce, burst: 1 });
    await takeOne(true);
    assert.ok(prefetch(), 'only the bucket knows that it is empty');
    await time.settle();
    assert.equal(prefetch(), undefined);
    await time.pass(600);
    assert.ok(prefetch());
  });

  test('is not taken from the reserve of payments', async (t) => {
    const { time, shared, rates, prefetch } = startPermits(t, { perSecond: 2, burst: 4, instances: 5 });
    await shared.lease('bucket:sandbox', rates.payments, { wanted: 2, maxWaitMs: 0 });
    const read = prefetch(false);
    await time.settle();
    assert.equal(read?.take(), false);
    const payment = prefetch(true);
    await time.settle();
    assert.equal(payment?.take(), true);
  });
});

describe('the permits while the shared bucket cannot be reached', () => {
  test('are not leased again, although a block is in use', async (t) => {
    const { time, world, take, takeOne } = startPermits(t, { perSecond: 1_000, burst: 1_000 });
    for (let one = 0; one < 20; one++) await takeOne();
    world.isDown = true;
    for (let requests = world.requests; world.requests === requests; ) assert.equal(take(), 0);
    await time.settle();
    world.requests = 0;
    let taken = 0;
    for (; take() === 0; taken++) await time.settle();
    assert.ok(taken > 1, 'the rest of the block is used');
    assert.equal(world.requests, 0);
  });

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
