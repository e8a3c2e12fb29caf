import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createPollBudget, type Urgency } from '../../../src/notifications/poll-budget.ts';
import type { LocalTokenBuckets, SharedTokenBuckets, TakeResult } from '../../../src/state/ports.ts';
import { until } from '../../kit/within.ts';

/** A budget whose permits the test grants one by one. */
function startBudget() {
  let permits = 0;
  let asks = 0;
  let isBusy = false;
  let isFailing = false;
  const rates: unknown[] = [];
  const buckets: LocalTokenBuckets = {
    isShared: false,
    reserve: () => assert.fail('a poll never reserves a permit'),
    take(bucket, rate) {
      asks += 1;
      rates.push([bucket, rate]);
      if (isFailing) throw new Error('no state');
      const taken = permits > 0;
      if (taken) permits -= 1;
      return { taken, remaining: permits, nextPermitMs: 1, fullInMs: 1 };
    },
  };
  const perSecond = () => 10;
  const budget = createPollBudget({ buckets, perSecond, isBusy: () => isBusy });
  const granted: string[] = [];
  const refused: string[] = [];
  return {
    budget,
    granted,
    refused,
    rates,
    poll(name: string, tenantId: string, urgency: Urgency = 'listener', isWanted = () => true) {
      const due = { environment: 'sandbox', tenantId, urgency };
      void budget.take(due, isWanted).then((isGranted) => (isGranted ? granted : refused).push(name));
    },
    async grant(count: number) {
      permits = count;
      while (permits > 0) await setImmediate();
      const before = asks;
      while (budget.overdue().some(({ count: left }) => left > 0) && asks === before) await setImmediate();
      await setImmediate();
    },
    overload(value: boolean) {
      isBusy = value;
    },
    fail() {
      isFailing = true;
    },
  };
}

/** A budget on a store that answers when the test says so. */
function startSlowBudget(left: { permits: number }) {
  const asked: (() => void)[] = [];
  const buckets = {
    isShared: true,
    reserve: () => assert.fail('a poll never reserves a permit'),
    lease: () => assert.fail('a poll never leases permits'),
    giveBack: () => assert.fail('a poll gives its permit to another one'),
    take: () =>
      new Promise<TakeResult>((resolve) =>
        asked.push(() => {
          const taken = left.permits > 0;
          if (taken) left.permits -= 1;
          resolve({ taken, remaining: left.permits, nextPermitMs: 1, fullInMs: 1 });
        }),
      ),
  } as const satisfies SharedTokenBuckets;
  return {
    budget: createPollBudget({ buckets, perSecond: () => 10, isBusy: () => false }),
    /** That wait for an answer. */
    requests: () => asked.length,
    async answer() {
      for (const one of asked.splice(0)) one();
      await setImmediate();
    },
  };
}

describe('the budget of polls', () => {
  test('grants permits of the share to waiting TPPs first, and to tenants in turn', async () => {
    const { budget, poll, grant, granted, rates } = startBudget();
    poll('webhook of shop', 'shop', 'subscription');
    poll('first of shop', 'shop');
    poll('second of shop', 'shop');
    poll('third of shop', 'shop');
    poll('first of rival', 'rival');
    poll('webhook of rival', 'rival', 'subscription');
    assert.deepEqual(budget.overdue(), [{ environment: 'sandbox', count: 6 }]);

    await grant(2);
    assert.deepEqual(granted, ['first of shop', 'first of rival']);
    poll('second of rival', 'rival');
    await grant(5);

    assert.deepEqual(granted.slice(2), [
      'second of shop',
      'second of rival',
      'third of shop',
      'webhook of shop',
      'webhook of rival',
    ]);
    assert.deepEqual(budget.overdue(), [{ environment: 'sandbox', count: 0 }]);
    assert.deepEqual(rates[0], ['bucket:polls:sandbox', { perSecond: 10, burst: 10 }]);
  });

  test('gives no permit to a poll that nobody waits for any more', async () => {
    const { poll, grant, granted, refused } = startBudget();
    poll('unwanted', 'shop', 'listener', () => false);
    poll('wanted', 'shop');
    await grant(1);
    assert.deepEqual([granted, refused], [['wanted'], ['unwanted']]);
  });

  test('grants permits for a changed status first, also while the gateway is overloaded', async () => {
    const { poll, grant, granted, refused, overload } = startBudget();
    poll('listener', 'shop');
    poll('changed', 'shop', 'changed');
    await grant(1);
    assert.deepEqual(granted, ['changed']);
    overload(true);
    poll('another change', 'shop', 'changed');
    await grant(1);
    assert.deepEqual([granted, refused], [['changed', 'another change'], ['listener']]);
  });

  test('passes a permit that is given back on to the next poll, and keeps none', async () => {
    const { budget, poll, grant, granted } = startBudget();
    poll('first', 'shop');
    poll('second', 'shop');
    await grant(1);
    assert.deepEqual(granted, ['first']);
    budget.giveBack('sandbox');
    await until(5_000, 'the second poll has the permit', () => granted.length === 2);
    budget.giveBack('sandbox');
    poll('third', 'shop');
    await setImmediate();
    assert.deepEqual(granted, ['first', 'second']);
    await grant(1);
    assert.deepEqual(granted, ['first', 'second', 'third']);
  });

  test('requests more permits at once while all of them are granted, and fewer again when one is not', async () => {
    const left = { permits: 40 };
    const { budget, requests, answer } = startSlowBudget(left);
    const polls = Array.from({ length: 60 }, () =>
      budget.take({ environment: 'sandbox', tenantId: 'shop', urgency: 'subscription' }, () => true),
    );
    const counts: number[] = [];
    while (counts.length < 7) {
      counts.push(requests());
      await answer();
    }
    assert.deepEqual(counts, [1, 2, 4, 8, 16, 16, 9], 'of the last 16 requests, 9 were granted');
    left.permits = 60;
    while (budget.overdue().some(({ count }) => count > 0)) await answer();
    assert.deepEqual(new Set(await Promise.all(polls)), new Set([true]));
  });

  test('refuses all polls while the gateway is overloaded, and while the shared state is unavailable', async () => {
    const { poll, grant, overload, fail, granted, refused } = startBudget();
    poll('queued', 'shop');
    overload(true);
    poll('new', 'shop');
    await grant(1);
    assert.deepEqual(refused.toSorted(), ['new', 'queued']);

    overload(false);
    fail();
    poll('without state', 'shop');
    await setImmediate();
    assert.deepEqual([granted, refused.at(-1)], [[], 'without state']);
  });
});
