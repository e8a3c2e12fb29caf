import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createQuotaCheck, createTakeQuota } from '../../../src/http/quota.ts';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';
import { createSharedBuckets } from '../../kit/shared-buckets.ts';

const shop = { name: 'shop', tenant: 'shop', environments: ['sandbox'] };

function startQuotas(rate: number, burst: number) {
  const world = { nowMs: 0 };
  const check = createQuotaCheck(
    [{ name: 'shop', quota: { rate, burst } }, { name: 'rival' }],
    createTakeQuota(
      createMemoryTokenBuckets(() => world.nowMs),
      () => 1,
    ),
  );
  const send = async (client = shop) => {
    const fields = new Map<string, string>();
    let refusal: unknown;
    try {
      await check(client, ([name, value]) => fields.set(name, value))?.result;
    } catch (thrown) {
      refusal = thrown;
    }
    return { refusal, policy: fields.get('RateLimit-Policy'), limit: fields.get('RateLimit') };
  };
  return { world, send };
}

describe('a client with a quota', () => {
  test('gets RateLimit fields with its quota, the remaining requests, and the time until the quota is full again', async () => {
    const { world, send } = startQuotas(20, 40);
    assert.deepEqual(await send(), {
      refusal: undefined,
      policy: '"default";q=40;w=2',
      limit: '"default";r=39;t=1',
    });
    for (let one = 0; one < 29; one++) await send();
    assert.equal((await send()).limit, '"default";r=9;t=2');
    world.nowMs = 2_000;
    assert.equal((await send()).limit, '"default";r=39;t=1');
  });

  test('is refused with Retry-After when its quota is used up, and accepted after that time', async () => {
    const { world, send } = startQuotas(0.5, 2);
    await send();
    await send();
    const { refusal, limit } = await send();
    assert.ok(refusal instanceof Error && 'code' in refusal && 'headers' in refusal);
    assert.deepEqual([refusal.code, refusal.headers], ['QUOTA_EXCEEDED', [['Retry-After', '2']]]);
    assert.equal(limit, '"default";r=0;t=4');
    world.nowMs = 2_000;
    assert.equal((await send()).refusal, undefined);
  });
});

test('a client without a quota is never refused and gets no RateLimit fields', async () => {
  const { send } = startQuotas(1, 1);
  for (let one = 0; one < 100; one++) {
    const { refusal, policy, limit } = await send({ ...shop, name: 'rival' });
    assert.deepEqual([refusal, policy, limit], [undefined, undefined, undefined]);
  }
});

describe('the quotas on buckets that instances share', () => {
  const rate = { perSecond: 1, burst: 3 };

  /** The buckets of two instances, of which the first loses its connection while `isDown`. */
  function startShared() {
    const world = { nowMs: 0, isDown: false, requests: 0 };
    const now = () => world.nowMs;
    const shared = createSharedBuckets(now);
    const take = (bucket: string, of: typeof rate) => {
      world.requests += 1;
      return world.isDown ? Promise.reject(stateUnavailable()) : shared.take(bucket, of);
    };
    const takes = [
      createTakeQuota({ ...shared, take }, () => 1, now),
      createTakeQuota(shared, () => 1, now),
    ] as const;
    return { world, takes };
  }

  test('are counted together, and never exceed the burst', async () => {
    const { takes } = startShared();
    const results = [];
    for (let one = 0; one < 5; one++) results.push(await takes[one % 2 === 0 ? 0 : 1]('bucket', rate));
    assert.deepEqual(
      results.map(({ taken, remaining }) => [taken, remaining]),
      [
        [true, 2],
        [true, 1],
        [true, 0],
        [false, 0],
        [false, 0],
      ],
    );
  });

  test('are counted by the instance while the state is unavailable, which is tried again once per second', async () => {
    const { world, takes } = startShared();
    await takes[0]('bucket', rate);
    world.isDown = true;
    world.requests = 0;
    const remaining = [];
    for (; world.nowMs < 3_000; world.nowMs += 500)
      remaining.push((await takes[0]('bucket', rate)).remaining);
    assert.deepEqual([remaining, world.requests], [[2, 1, 1, 0, 0, 0], 3]);
    world.isDown = false;
    world.nowMs = 5_000;
    assert.equal((await takes[0]('bucket', rate)).remaining, 2);
  });

  test('let a request continue before the result only if the last answer left more permits than were requested since', async () => {
    const { world, takes } = startShared();
    const check = createQuotaCheck([{ name: 'shop', quota: { rate: 1, burst: 3 } }], takes[0]);
    const startCheck = () => check(shop, () => {}) ?? assert.fail('the state is not asked');
    const first = startCheck();
    assert.equal(first.isLikely, false, 'nothing is known of the bucket');
    await first.result;
    const [second, third, fourth] = [startCheck(), startCheck(), startCheck()];
    assert.deepEqual([second.isLikely, third.isLikely, fourth.isLikely], [true, true, false]);
    await Promise.all([second.result, third.result]);
    await assert.rejects(fourth.result);
    const refused = startCheck();
    assert.equal(refused.isLikely, false, 'a refusal costs nothing more');
    await assert.rejects(refused.result);
    world.nowMs = 2_000;
    await startCheck().result;
    assert.equal(startCheck().isLikely, true, 'the bucket has been filled again');
  });

  test('let at most one request of each instance continue before it is refused, although another instance used the last permit', async () => {
    const { takes } = startShared();
    const quota = { rate: 1, burst: 3 };
    const checks = takes.map((take) => createQuotaCheck([{ name: 'shop', quota }], take));
    const outcomes = [];
    for (let one = 0; one < 8; one++) {
      const pending = checks[one % 2]?.(shop, () => {});
      const isAdmitted = await pending?.result.then(
        () => true,
        () => false,
      );
      outcomes.push([pending?.isLikely, isAdmitted]);
    }
    assert.equal(outcomes.filter(([, isAdmitted]) => isAdmitted).length, 3);
    const early = outcomes.filter(([isLikely, isAdmitted]) => isLikely && !isAdmitted);
    assert.ok(early.length <= 2, `${early.length} requests`);
  });

  test('pass any other error on', async () => {
    const buckets = {
      ...createSharedBuckets(() => 0),
      take: () => Promise.reject(new TypeError('a bug')),
    };
    const take = createTakeQuota(buckets, () => 1);
    await assert.rejects(async () => take('bucket', rate), TypeError);
  });
});
