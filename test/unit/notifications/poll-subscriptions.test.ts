import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  createSubscriptionPolls,
  type PollDependencies,
} from '../../../src/notifications/poll-subscriptions.ts';
import type {
  ScaRead,
  StatusReadResult,
  SubscriptionReader,
} from '../../../src/notifications/read-subscription.ts';
import { isFailing, type Subscription, settledForMs } from '../../../src/notifications/subscription.ts';
import {
  createSubscriptionStore,
  otherInstanceDelayMs,
  type SubscriptionStore,
} from '../../../src/notifications/subscription-store.ts';
import type { SubscriptionTable } from '../../../src/store/subscriptions.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { newSubscriptions, unreadable } from '../../kit/subscription-table.ts';
import { until, within } from '../../kit/within.ts';

const hour = 3_600_000;

const now = Date.now();
const subscription = subscriptionSince(now, {
  status: { hash: 'RCVD', code: 'RCVD', finality: 'pending', since: now },
});

const statusOf = (code: string, finality: 'pending' | 'settled' | 'final' = 'pending'): StatusReadResult => ({
  kind: 'status',
  hash: code,
  code,
  finality,
});

async function setUp(
  t: TestContext,
  result: StatusReadResult,
  {
    scaReads = [],
    duringRead = async () => {},
    ...overrides
  }: Partial<PollDependencies> & {
    readonly scaReads?: readonly ScaRead[];
    /** What happens while the status is read. */
    readonly duringRead?: (store: SubscriptionStore, table: SubscriptionTable) => Promise<void>;
  } = {},
) {
  const stored = await newSubscriptions(t);
  const { clock, table, store } = stored;
  const seen = { reads: 0, messages: 0 };
  const failing: boolean[] = [];
  const scaResults = [...scaReads];
  const reader: SubscriptionReader = {
    async readStatus() {
      seen.reads += 1;
      await duringRead(store, table);
      return result;
    },
    readAuthorisation: async () => scaResults.shift() ?? assert.fail('no authorisation is to be read'),
  };
  const polls = createSubscriptionPolls({
    table,
    store,
    queues: () => [{ tenant: 'tenant', environment: 'environment' }],
    isAllowed: () => true,
    reader,
    intervalMs: ({ status }) => (status?.finality === 'final' ? undefined : hour),
    maxIntervalMs: () => hour,
    onBug: assert.ifError,
    onFailing: (changed) => failing.push(isFailing(changed)),
    onMessage() {
      seen.messages += 1;
    },
    ...overrides,
  });
  t.after(() => polls.stop());
  return {
    clock,
    failing,
    countFailing: async () => (await stored.countsOf('tenant')).failing,
    seen,
    polls,
    stored,
    read: () => store.read('key'),
    dueReads: async () => (await stored.workOf('read')).due,
    counts: async () => ({
      polls: (await stored.workOf('read')).all,
      deliveries: (await stored.workOf('delivery')).due,
    }),
    /** @param isEnded whether the read has ended when the instance stops */
    async run(
      first: Subscription = subscription,
      isEnded = async () => (await stored.workOf('read')).leased === 0,
    ) {
      await stored.put(first, { id: 'key', readInMs: 0 });
      await polls.run();
      await until(5_000, 'it is read', isEnded);
      await polls.stop();
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

  test('read once more, at once, after an event that arrives during a read', async (t) => {
    const results = [
      statusOf('ACTC'),
      statusOf('RCVD'),
      { kind: 'known', dueInMs: hour },
      { kind: 'failed' },
      { kind: 'dropped' },
    ] as const;
    for (const result of results) {
      const { run, dueReads } = await setUp(t, result, {
        duringRead: (_store, table) => table.reschedule('read', 'key', { inMs: 0 }),
      });
      await run();
      assert.equal(await dueReads(), 1, result.kind);
      const other = await setUp(t, result);
      await other.run();
      assert.equal(await other.dueReads(), 0, result.kind);
    }
  });

  test('keep what another instance has changed during a read that has shown nothing new', async (t) => {
    const { run, read } = await setUp(
      t,
      { kind: 'known', dueInMs: hour },
      {
        duringRead: (store) =>
          store.change(
            'key',
            (current) => current && { subscription: { ...current, url: 'https://new.example/' } },
          ),
      },
    );
    await run();
    assert.equal((await read())?.url, 'https://new.example/');
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

  test('end a subscription to a payment that had its final status from the start', async (t) => {
    const { run, read, counts, seen } = await setUp(t, statusOf('RJCT', 'final'));
    await run({ ...subscription, status: { hash: '', code: 'RJCT', finality: 'final', since: 0 } });
    assert.equal(await read(), undefined);
    assert.deepEqual([seen.reads, await counts()], [0, { polls: 0, deliveries: 0 }]);
  });

  test('leave a subscription alone that an instance with another encryption key has changed', async (t) => {
    const { run, stored } = await setUp(t, statusOf('ACTC'), {
      reader: {
        async readStatus() {
          await stored.makeUnreadable('key');
          return statusOf('ACTC');
        },
        readAuthorisation: () => assert.fail('no authorisation is to be read'),
      },
    });
    await run(subscription, async () => (await stored.textOf('key')) === unreadable);
    assert.equal(await stored.textOf('key'), unreadable);
  });

  test('are left to an instance with other settings: soon at first, and less often the longer nothing changes', () => {
    const delayAfter = (ms: number) => otherInstanceDelayMs({ changedAtMs: 1_000 }, 1_000 + ms);
    assert.deepEqual([0, hour, 1_000 * hour].map(delayAfter), [5_000, hour / 10, 6 * hour]);
  });

  test('of one environment do not wait for the permits of another one', async (t) => {
    const tenants = Array.from({ length: 10 }, (_, index) => `tenant-${index}`);
    const read = Promise.withResolvers<void>();
    const { stored, polls } = await setUp(t, statusOf('ACTC'), {
      queues: () =>
        ['slow', 'fast'].flatMap((environment) => tenants.map((tenant) => ({ tenant, environment }))),
      reader: {
        readStatus({ environment }, signal) {
          if (environment === 'fast') read.resolve();
          return new Promise((resolve) =>
            signal.addEventListener('abort', () => resolve({ kind: 'dropped' })),
          );
        },
        readAuthorisation: () => assert.fail('no authorisation is to be read'),
      },
    });
    const add = (owner: Pick<Subscription, 'tenant' | 'environment'>, paymentId: string) =>
      stored.put(
        { ...subscription, ...owner, paymentId },
        { id: `${owner.tenant} ${paymentId}`, readInMs: 0 },
      );
    for (const tenant of tenants)
      for (let index = 0; index < 10; index++) await add({ tenant, environment: 'slow' }, `slow-${index}`);
    await polls.run();
    await add({ tenant: 'tenant-0', environment: 'fast' }, 'fast');
    await polls.run();
    await within(5_000, 'the read in the other environment', read.promise);
  });

  for (const kind of ['refused', 'failed'] as const)
    test(`that are ${kind} three times in a row make the subscription failing, until one succeeds`, async (t) => {
      for (const [before, after] of [
        [1, { failing: [], counted: 0 }],
        [2, { failing: [true], counted: 1 }],
        [3, { failing: [], counted: 1 }], // reported once
      ] as const) {
        const { run, read, failing, countFailing } = await setUp(t, { kind, why: 'the bank answered 400' });
        await run({ ...subscription, failedReads: before });
        assert.deepEqual({ failing, counted: await countFailing() }, after);
        const { failedReads, readError } = (await read()) ?? assert.fail();
        assert.deepEqual([failedReads, readError], [before + 1, 'the bank answered 400']);
      }

      const { run, read, failing, countFailing } = await setUp(t, statusOf('RCVD'));
      await run({ ...subscription, failedReads: 3, readError: 'the bank answered 400' });
      assert.deepEqual([failing, await countFailing()], [[false], 0]);
      const { failedReads, readError } = (await read()) ?? assert.fail();
      assert.deepEqual([failedReads, readError], [undefined, undefined]);
    });

  test('leave a failing subscription failing while another poller or a TPP reads the status', async (t) => {
    const { run, read, failing } = await setUp(t, { kind: 'known', dueInMs: hour });
    await run({ ...subscription, failedReads: 3 });
    assert.deepEqual([(await read())?.failedReads, failing], [3, []]);
  });

  test('count failures, for the next interval', async (t) => {
    const { run, read } = await setUp(t, { kind: 'failed' });
    await run({ ...subscription, failedReads: 2 });
    assert.equal((await read())?.failedReads, 3);
    const recovered = await setUp(t, statusOf('RCVD'));
    await recovered.run({ ...subscription, failedReads: 3 });
    assert.equal((await recovered.read())?.failedReads, undefined);
  });

  test('do not ask the bank if the settings do not allow the subscription, and change nothing without a permit', async (t) => {
    const disallowed = await setUp(t, statusOf('ACTC'), { isAllowed: () => false });
    const dropped = await setUp(t, { kind: 'dropped' });
    for (const { run, read, counts } of [disallowed, dropped]) {
      await run();
      assert.deepEqual(await read(), subscription);
      assert.deepEqual(await counts(), { polls: 1, deliveries: 0 });
    }
    assert.equal(disallowed.seen.reads, 0);
  });

  test('change nothing if another poller has read the status', async (t) => {
    const { run, read, clock, dueReads } = await setUp(t, { kind: 'known', dueInMs: 5_000 });
    await run();
    assert.deepEqual(await read(), subscription);
    assert.equal(await dueReads(), 0);
    clock.aheadMs = 5_000;
    assert.equal(await dueReads(), 1);
  });

  test('wait as long as the bank asks for', async (t) => {
    const intervalMs = () => 1_000;
    const { run, clock, dueReads } = await setUp(t, { kind: 'failed', retryAfterMs: 60_000 }, { intervalMs });
    await run();
    const dueAfter = (ms: number) => {
      clock.aheadMs = ms;
      return dueReads();
    };
    assert.deepEqual([await dueAfter(50_000), await dueAfter(60_000)], [0, 1]);
  });

  test('do not delay the end of the instance: another one reads the status', async (t) => {
    const reader: SubscriptionReader = {
      readStatus: () => new Promise(() => {}),
      readAuthorisation: () => assert.fail(),
    };
    const { run, read, counts, dueReads } = await setUp(t, statusOf('ACTC'), { reader });
    await run(subscription, async () => true);
    assert.deepEqual(await read(), subscription);
    assert.equal(await dueReads(), 1);
    assert.deepEqual(await counts(), { polls: 1, deliveries: 0 });
  });

  test('end LAST with a settled status, also when another poller has confirmed it or the bank has refused three reads', async (t) => {
    const since = Date.now() - settledForMs - 1;
    const settled: Subscription = {
      ...subscription,
      content: 'LAST',
      status: { hash: 'ACSC', code: 'ACSC', finality: 'settled', since },
    };
    const results: readonly StatusReadResult[] = [
      statusOf('ACSC', 'settled'),
      { kind: 'known', dueInMs: 1_000 },
      { kind: 'refused' },
    ];
    for (const result of results) {
      const { run, read, counts } = await setUp(t, result);
      await run({ ...settled, ...(result.kind === 'refused' && { failedReads: 2 }) });
      const message = (await read())?.message;
      assert.deepEqual([message?.transactionStatus, message?.final], ['ACSC', true], result.kind);
      assert.deepEqual(await counts(), { polls: 0, deliveries: 1 });
    }
    for (const kind of ['failed', 'refused'] as const) {
      const failed = await setUp(t, { kind });
      await failed.run(settled);
      assert.equal((await failed.read())?.message, undefined);
    }
  });

  test('end LAST with a settled status when its time is over', async (t) => {
    const { run, read, counts } = await setUp(t, statusOf('ACCC', 'final'));
    const status = { hash: 'ACSC', code: 'ACSC', finality: 'settled', since: Date.now() } as const;
    await run({ ...subscription, content: 'LAST', until: Date.now() - 1, status });
    assert.equal((await read())?.message?.transactionStatus, 'ACSC');
    assert.deepEqual(await counts(), { polls: 0, deliveries: 1 });
  });

  test('do not end a subscription that the TPP renews at the end of its time', async (t) => {
    const { polls, read, stored } = await setUp(t, { kind: 'dropped' });
    const { remove } = stored.table;
    stored.table.remove = async (...removed) => {
      stored.table.remove = remove;
      const until = Date.now() + hour;
      await stored.store.change('key', (current) => current && { subscription: { ...current, until } });
      return remove(...removed);
    };
    const store = createSubscriptionStore(stored.table);
    const withRace = await setUp(t, { kind: 'dropped' }, { store, table: stored.table });
    await stored.put({ ...subscription, until: 0 }, { id: 'key', readInMs: 0 });
    await withRace.polls.run();
    await until(5_000, 'its turn ends', async () => (await stored.workOf('read')).leased === 0);
    await polls.stop();
    assert.ok(await read());
    assert.equal((await stored.workOf('read')).all, 1);
  });

  test('report each of several authorisations that end, and end the subscription with the last one', async (t) => {
    const authorisation = (id: string) => ({ type: 'authorisations', id, scaStatus: 'received', since: now });
    const finalised = { kind: 'status', scaStatus: 'finalised' } as const;
    const { run, polls, read, stored } = await setUp(t, statusOf('ACSC', 'final'), {
      scaReads: [finalised, finalised],
    });
    await run({ ...subscription, content: 'SCA', authorisations: [authorisation('a'), authorisation('b')] });
    const first = await read();
    assert.deepEqual([first?.message?.authorisationId, first?.message?.final], ['a', false]);
    const { message, ...delivered } = first ?? assert.fail();
    await stored.put(delivered, { id: 'key', readInMs: 0 });
    const next = await setUp(t, { kind: 'dropped' }, { store: stored.store, table: stored.table });
    await next.polls.run();
    await until(5_000, 'it is read', async () => (await stored.workOf('read')).all === 0);
    await polls.stop();
    const last = (await read())?.message;
    assert.deepEqual([last?.authorisationId, last?.scaStatus, last?.final], ['b', 'finalised', true]);
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
      attempts: 1,
      failedAttempts: 1,
    };
    await undelivered.run({ ...over, message });
    assert.ok(await undelivered.read());
    assert.equal((await undelivered.counts()).polls, 0);
  });
});

describe('the polls of subscriptions with SCA', () => {
  const type = 'authorisations';
  const running = { type, id: 'a', scaStatus: 'received', reported: 'received', since: Date.now() };
  const sca: Subscription = { ...subscription, content: 'SCA', authorisations: [running] };
  const shown = (stored: Subscription | undefined) =>
    stored?.message && [
      stored.message.transactionStatus,
      stored.message.authorisationId,
      stored.message.scaStatus,
    ];

  test('read the authorisations that run, and the status only if one has changed', async (t) => {
    const same = await setUp(t, statusOf('ACTC'), { scaReads: [{ kind: 'status', scaStatus: 'received' }] });
    await same.run(sca);
    assert.deepEqual([same.seen.reads, shown(await same.read())], [0, undefined]);

    const changed = await setUp(t, statusOf('ACTC'), {
      scaReads: [{ kind: 'status', scaStatus: 'finalised' }],
    });
    await changed.run(sca);
    assert.deepEqual(shown(await changed.read()), ['ACTC', 'a', 'finalised']);
    assert.deepEqual([changed.seen.reads, (await changed.counts()).deliveries], [1, 1]);
  });

  test('read nothing when no authorisation runs', async (t) => {
    const { run, read, seen } = await setUp(t, statusOf('ACTC'));
    await run({ ...sca, authorisations: [] });
    assert.deepEqual([seen.reads, shown(await read())], [0, undefined]);
  });

  test('find an authorisation that the bank has started in the list', async (t) => {
    const { run, read } = await setUp(t, statusOf('RCVD'), { scaReads: [{ kind: 'listed', ids: ['b'] }] });
    await run({ ...sca, authorisations: [{ type, since: 0 }] });
    assert.deepEqual(
      (await read())?.authorisations?.map(({ id }) => id),
      ['b'],
    );
  });

  test('drop an authorisation that the bank does not show, and keep it while the credentials are refused', async (t) => {
    const gone = await setUp(t, statusOf('RCVD'), { scaReads: [{ kind: 'gone' }] });
    await gone.run(sca);
    assert.deepEqual((await gone.read())?.authorisations, []);

    const refused = await setUp(t, { kind: 'refused' }, { scaReads: [{ kind: 'refused' }] });
    await refused.run(sca);
    const stored = await refused.read();
    assert.deepEqual([stored?.failedReads, stored?.authorisations], [1, [running]]);
  });

  test('keep an authorisation that starts while they read', async (t) => {
    let startAnother = async () => {};
    const reader: SubscriptionReader = {
      readStatus: async () => statusOf('RCVD'),
      async readAuthorisation() {
        await startAnother();
        return { kind: 'status', scaStatus: 'psuIdentified' };
      },
    };
    const { run, read, stored } = await setUp(t, statusOf('RCVD'), { reader });
    startAnother = async () => {
      const both = { ...sca, authorisations: [running, { ...running, id: 'b' }] };
      await stored.put(both, { id: 'key' });
    };
    await run(sca);
    const authorisations = (await read())?.authorisations?.map(({ id, scaStatus }) => [id, scaStatus]);
    assert.deepEqual(authorisations, [
      ['a', 'psuIdentified'],
      ['b', 'received'],
    ]);
  });
});
