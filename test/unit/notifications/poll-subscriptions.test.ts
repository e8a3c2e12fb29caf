import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  createSubscriptionPolls,
  type PollDependencies,
  type StatusRead,
} from '../../../src/notifications/poll-subscriptions.ts';
import { type Subscription, serializeSubscription } from '../../../src/notifications/subscription.ts';
import { createSubscriptionStore, queueNames } from '../../../src/notifications/subscription-store.ts';
import { createMemorySchedules } from '../../../src/state/memory-schedules.ts';

const hour = 3_600_000;

const subscription: Subscription = {
  v: 1,
  id: 'subscription',
  tenant: 'tenant',
  environment: 'environment',
  client: 'client',
  paymentService: 'payments',
  paymentProduct: 'sepa-credit-transfers',
  paymentId: 'payment',
  url: 'https://tpp.example/hooks',
  content: 'PROCESS',
  since: Date.now(),
  until: Date.now() + hour,
  headers: [],
  sequence: 0,
  status: { hash: 'RCVD', code: 'RCVD', finality: 'pending', since: Date.now() },
};

const statusOf = (code: string, finality: 'pending' | 'final' = 'pending'): StatusRead => ({
  kind: 'status',
  hash: code,
  code,
  finality,
});

async function setUp(t: TestContext, result: StatusRead, overrides: Partial<PollDependencies> = {}) {
  const clock = { aheadMs: 0 };
  const schedules = createMemorySchedules(() => performance.now() + clock.aheadMs);
  const store = createSubscriptionStore(schedules);
  const seen = { reads: 0, messages: 0 };
  const polls = createSubscriptionPolls({
    schedules,
    store,
    owners: () => [{ tenant: 'tenant', environment: 'environment' }],
    isAllowed: () => true,
    takePermit: async () => true,
    async read() {
      seen.reads += 1;
      return result;
    },
    intervalMs: ({ status }) => (status?.finality === 'final' ? undefined : hour),
    onBug: assert.ifError,
    onMessage() {
      seen.messages += 1;
    },
    ...overrides,
  });
  t.after(() => polls.stop());
  return {
    clock,
    seen,
    polls,
    read: () => store.read('key'),
    counts: async () => ({
      polls: (await schedules.count(queueNames.poll(subscription))).all,
      deliveries: (await schedules.count(queueNames.delivery('tenant'))).due,
    }),
    async run(stored: Subscription = subscription) {
      const queue = queueNames.poll(stored);
      await schedules.write('key', 0, serializeSubscription(stored), [{ queue, inMs: 0 }]);
      await polls.run();
      await polls.stop(); // waits for the poll
    },
  };
}

describe('the polls of subscriptions', () => {
  test('store a message for a changed status, which is due at once, and continue', async (t) => {
    const { run, read, counts, seen } = await setUp(t, statusOf('ACTC'));
    await run();
    assert.equal((await read())?.message?.transactionStatus, 'ACTC');
    assert.deepEqual(await counts(), { polls: 1, deliveries: 1 });
    assert.deepEqual(seen, { reads: 1, messages: 1 });
  });

  test('store no message for the same status', async (t) => {
    const { run, read, counts, seen } = await setUp(t, statusOf('RCVD'));
    await run();
    assert.equal((await read())?.message, undefined);
    assert.deepEqual(await counts(), { polls: 1, deliveries: 0 });
    assert.equal(seen.messages, 0);
  });

  test('end with a final status, after its message', async (t) => {
    const { run, read, counts } = await setUp(t, statusOf('RJCT', 'final'));
    await run();
    assert.equal((await read())?.message?.final, true);
    assert.deepEqual(await counts(), { polls: 0, deliveries: 1 });
  });

  test('end with a final status that the TPP knows already', async (t) => {
    const { run, read, counts } = await setUp(t, {
      kind: 'status',
      hash: 'another',
      code: 'RCVD',
      finality: 'final',
    });
    await run();
    assert.equal(await read(), undefined);
    assert.deepEqual(await counts(), { polls: 0, deliveries: 0 });
  });

  test('stop while the bank refuses the credentials', async (t) => {
    const { run, read, counts } = await setUp(t, { kind: 'refused' });
    await run();
    assert.equal((await read())?.suspended, true);
    assert.deepEqual(await counts(), { polls: 1, deliveries: 0 });

    const again = await setUp(t, statusOf('ACTC'));
    await again.run({ ...subscription, suspended: true });
    assert.equal(again.seen.reads, 0);
  });

  test('count failures, for the next interval', async (t) => {
    const { run, read } = await setUp(t, { kind: 'failed' });
    await run({ ...subscription, failedReads: 2 });
    assert.equal((await read())?.failedReads, 3);
    const recovered = await setUp(t, statusOf('RCVD'));
    await recovered.run({ ...subscription, failedReads: 3 });
    assert.equal((await recovered.read())?.failedReads, undefined);
  });

  test('do not ask the bank without a permit, or if the settings do not allow the subscription', async (t) => {
    for (const overrides of [{ takePermit: async () => false }, { isAllowed: () => false }]) {
      const { run, read, counts, seen } = await setUp(t, statusOf('ACTC'), overrides);
      await run();
      assert.equal(seen.reads, 0);
      assert.deepEqual(await read(), subscription);
      assert.deepEqual(await counts(), { polls: 1, deliveries: 0 });
    }
  });

  test('do not delay the end of the instance: another one reads the status', async (t) => {
    const { run, read, counts } = await setUp(t, statusOf('ACTC'), { read: () => new Promise(() => {}) });
    await run();
    assert.deepEqual(await read(), subscription);
    assert.deepEqual(await counts(), { polls: 1, deliveries: 0 });
  });

  test('end a subscription when its time is over, unless a message is undelivered', async (t) => {
    const over = { ...subscription, until: Date.now() - 1 };
    const { run, read, counts, seen } = await setUp(t, statusOf('ACTC'));
    await run(over);
    assert.equal(await read(), undefined);
    assert.deepEqual([seen.reads, (await counts()).polls], [0, 0]);

    const undelivered = await setUp(t, statusOf('ACTC'));
    const message = {
      id: '1',
      sequence: 1,
      transactionStatus: 'ACTC',
      final: false,
      since: 0,
      failedAttempts: 1,
    };
    await undelivered.run({ ...over, message });
    assert.ok(await undelivered.read());
    assert.equal((await undelivered.counts()).polls, 0);
  });
});
