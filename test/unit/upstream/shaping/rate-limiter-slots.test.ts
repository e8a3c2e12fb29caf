import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Lane } from '../../../../src/pis/operations.ts';
import { seededRandom } from '../../../kit/random.ts';
import { type LimiterFixture, startLimiters } from './rate-limiter-fixture.ts';

/** The rate does not limit these tests. */
const fast = { rate: 100_000, burst: 100_000 };

/** A call to a bank that answers when the test says so, or never. */
interface HeldCall {
  readonly lane: Lane;
  readonly tenant: string;
  state: 'waiting' | 'running' | 'answered' | 'refused';
  answer: () => void;
}

function startHeldCall(
  { limiters, time }: LimiterFixture,
  lane: Lane,
  tenant: string,
  onStart: (call: HeldCall) => void = () => {},
): HeldCall {
  const call: HeldCall = { lane, tenant, state: 'waiting', answer: () => {} };
  const send = () => {
    call.state = 'running';
    onStart(call);
    return new Promise<{ status: number; headers: [] }>((resolve) => {
      call.answer = () => {
        call.state = 'answered';
        resolve({ status: 200, headers: [] });
      };
    });
  };
  limiters[0]?.run({ lane, tenant, deadlineAtMs: time.now() + 600_000 }, send).catch(() => {
    call.state = 'refused';
  });
  return call;
}

const countOf = (calls: readonly HeldCall[], state: HeldCall['state']) =>
  calls.filter((call) => call.state === state).length;

const many = (count: number, start: (index: number) => HeldCall) =>
  Array.from({ length: count }, (_, index) => start(index));

describe('a tenant whose 120 payments hang', () => {
  for (const tenants of [2, 3, 10]) {
    test(`leaves slots for the payments of the others at once: ${tenants} tenants`, async (t) => {
      const limiter = startLimiters(t, { isShared: true, settings: fast });
      const hanging = many(120, () => startHeldCall(limiter, 'write', 'hanging'));
      await limiter.time.settle();
      for (let round = 0; round < 20; round++) {
        const payments = many(tenants - 1, (index) => startHeldCall(limiter, 'write', `tenant ${index}`));
        await limiter.time.settle();
        assert.equal(countOf(payments, 'running'), tenants - 1);
        for (const { answer } of payments) answer();
        await limiter.time.settle();
      }
      assert.deepEqual([countOf(hanging, 'running'), countOf(hanging, 'waiting')], [80, 40]);
      assert.deepEqual(limiter.limiters[0]?.stats().tenantsAtLimit, ['hanging']);
    });
  }

  test('leaves slots for the reads and status reads of the others, too', async (t) => {
    const limiter = startLimiters(t, { isShared: true, settings: fast });
    many(120, () => startHeldCall(limiter, 'write', 'hanging'));
    await limiter.time.settle();
    const others = [startHeldCall(limiter, 'read', 'calm'), startHeldCall(limiter, 'status', 'calm')];
    await limiter.time.settle();
    assert.equal(countOf(others, 'running'), 2);
  });

  test('gets QUEUE_TIMEOUT with the reason after maxWait, while the others keep the state busy', async (t) => {
    const limiter = startLimiters(t, { isShared: true, settings: fast, latencyMs: 0 });
    many(80, () => startHeldCall(limiter, 'write', 'hanging'));
    await limiter.time.settle();
    void limiter.call({ tenant: 'hanging' });
    for (let ms = 0; ms < 10_000; ms += 10) {
      void limiter.call({ tenant: 'calm' });
      await limiter.time.pass(10);
    }
    assert.deepEqual(
      limiter.refused.map(({ code }) => code),
      ['QUEUE_TIMEOUT'],
    );
    assert.match(limiter.refused[0]?.message ?? '', /use all concurrency slots of this tenant/);
  });

  test('uses all slots if no other tenant is configured', async (t) => {
    const limiter = startLimiters(t, { settings: fast });
    const hanging = many(120, () => startHeldCall(limiter, 'write', 'only'));
    await limiter.time.settle();
    assert.equal(countOf(hanging, 'running'), 100);
  });
});

describe('300 slow reads and 300 slow status reads', () => {
  for (const maxConcurrent of [2, 3, 10, 100]) {
    for (const isShared of [true, false]) {
      const tenants = isShared ? 'two tenants' : 'one tenant';
      test(`leave a slot for a payment at once: ${maxConcurrent} slots, ${tenants}`, async (t) => {
        const limiter = startLimiters(t, { isShared, settings: { ...fast, maxConcurrent } });
        const reader = isShared && maxConcurrent === 2 ? 'reader' : 'payer'; // its share of two slots is one
        const reads = many(600, (index) => startHeldCall(limiter, index % 2 ? 'read' : 'status', reader));
        await limiter.time.settle();
        const payment = startHeldCall(limiter, 'write', 'payer');
        await limiter.time.settle();
        assert.equal(payment.state, 'running');
        assert.ok(countOf(reads, 'running') >= 1);
      });
    }
  }

  test('do not delay payments when the calls of a lane never end and new ones keep arriving', async (t) => {
    const limiter = startLimiters(t, { isShared: true, settings: fast });
    for (let round = 0; round < 60; round++) {
      many(10, (index) => startHeldCall(limiter, index % 2 ? 'read' : 'status', `tenant ${index % 3}`));
      const payment = startHeldCall(limiter, 'write', 'tenant 0');
      await limiter.time.pass(10);
      assert.equal(payment.state, 'running');
      payment.answer();
    }
  });

  test('that wait for a permit do not delay a payment that finds one', async (t) => {
    const settings = { rate: 1, burst: 4, maxConcurrent: 1 };
    const limiter = startLimiters(t, { isShared: true, settings });
    const reads = many(3, () => startHeldCall(limiter, 'read', 'reader'));
    await limiter.time.settle();
    reads[0]?.answer();
    await limiter.time.settle();
    reads[1]?.answer();
    await limiter.time.settle();
    assert.deepEqual([countOf(reads, 'answered'), countOf(reads, 'waiting')], [2, 1]);
    const payment = startHeldCall(limiter, 'write', 'payer');
    await limiter.time.settle();
    assert.equal(payment.state, 'running');
  });
});

describe('concurrency slots of random calls', () => {
  for (const maxConcurrent of [2, 3, 5, 20])
    test(`keep every share and reserve, and pass over no payment that has a free slot: ${maxConcurrent} slots`, (t) =>
      runRandomCalls(t, maxConcurrent));
});

async function runRandomCalls(t: TestContext, maxConcurrent: number): Promise<void> {
  const random = seededRandom(maxConcurrent);
  const limiter = startLimiters(t, { isShared: true, settings: { ...fast, maxConcurrent } });
  const reserved = Math.max(1, Math.round(maxConcurrent / 10));
  const calls: HeldCall[] = [];
  const runningOf = (tenant?: string) =>
    calls.filter((call) => call.state === 'running' && (tenant ?? call.tenant) === call.tenant).length;
  let reads = 0;

  function check({ lane, tenant }: HeldCall): void {
    const free = maxConcurrent - runningOf();
    assert.ok(free >= 0);
    assert.ok(runningOf(tenant) <= maxConcurrent - reserved, `${tenant} exceeds its share`);
    if (lane === 'write') return;
    assert.ok(free >= reserved, `a ${lane} leaves ${free} of ${maxConcurrent} slots free`);
    if (lane === 'status' && maxConcurrent > 2) assert.ok(free > reserved);
    // A share is at least maxConcurrent without twice the reserve: below it, a payment has a free slot.
    const passedOver = calls.find(
      (call) =>
        call.lane === 'write' &&
        call.state === 'waiting' &&
        runningOf(call.tenant) < maxConcurrent - 2 * reserved,
    );
    assert.equal(passedOver, undefined);
    reads += 1;
  }

  for (let round = 0; round < 300; round++) {
    const payments = round % 30 < 10 ? 0.8 : 0.1;
    const burst = Math.floor(random() * (maxConcurrent + 1));
    for (let count = 0; count < burst; count++) {
      const lane = random() < payments ? 'write' : random() < 0.5 ? 'read' : 'status';
      calls.push(startHeldCall(limiter, lane, `tenant ${Math.floor(random() * 3)}`, check));
    }
    const running = calls.filter(({ state }) => state === 'running');
    for (const call of running) if (random() < 0.5) call.answer();
    await limiter.time.pass(1);
  }
  assert.ok(reads > 20, `only ${reads} reads were sent`);
  assert.ok(calls.some(({ state }) => state === 'waiting'));
}
