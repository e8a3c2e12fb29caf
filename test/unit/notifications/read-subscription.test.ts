/** The reads of a subscription beside other pollers of the same payment, which the test plays. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createSubscriptionReader } from '../../../src/notifications/read-subscription.ts';
import type { JsonResult, PollPipeline, PollResult } from '../../../src/notifications/status-reads.ts';
import type { Subscription } from '../../../src/notifications/subscription.ts';
import { stateUnavailable } from '../../../src/request/errors.ts';
import type { RecordedStatus, StatusEvent } from '../../../src/request/statuses.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { pollsOf } from '../../kit/payment-polls.ts';
import { simulateTime } from '../../kit/simulated-time.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { operation } from './status-read.ts';

const second = 1_000;
const signal = new AbortController().signal;
const payment = { tenantId: 'tenant', paymentKey: 'status:payment' };

function start(
  t: TestContext,
  overrides: Partial<Subscription> = {},
  intervalMs: (subscription: Subscription, readAtMs: number) => number = () => 5 * second,
) {
  const time = simulateTime(t);
  const { keyValues } = createMemoryState(time.now);
  const subscription = subscriptionSince(time.now(), {
    headers: [['Authorization', 'Bearer token']],
    status: { hash: 'ACTC', code: 'ACTC', finality: 'pending', since: time.now() },
    ...overrides,
  });
  const bank: { result: PollResult; json: JsonResult } = {
    result: { kind: 'failed' },
    json: { kind: 'json', json: { scaStatus: 'finalised' } },
  };
  const reads: {
    readonly path: string;
    readonly lane: string;
    readonly maxCachedAgeMs: number | undefined;
  }[] = [];
  const events: StatusEvent[] = [];
  let recorded: RecordedStatus | undefined = {
    generation: '1',
    hash: 'ACTC',
    sinceMs: time.now(),
    readAtMs: time.now(),
  };
  let beforePermit = async () => {};
  const permits = { taken: 0, givenBack: 0 };
  const never = () => assert.fail();
  const current: PollPipeline = {
    handle: never,
    schedule: { pendingTtl: second, settledTtl: second, maxInterval: second },
    perSecond: never,
    statuses: {
      enabled: true,
      cacheUseOf: never,
      keyOf: never,
      shownBy: never,
      expire: never,
      isCurrent: never,
      recorded: async () => recorded,
    },
  };
  const reader = createSubscriptionReader({
    polls: pollsOf(keyValues, {
      events: { publish: (event) => void events.push(event) },
      reads: {
        async read({ operation: { path, lane } }, maxCachedAgeMs) {
          reads.push({ path, lane, maxCachedAgeMs });
          return bank.result;
        },
      },
    }),
    reads: {
      current,
      async readJson({ operation: { path, lane } }) {
        reads.push({ path, lane, maxCachedAgeMs: undefined });
        return bank.json;
      },
    },
    budget: {
      async take() {
        await beforePermit();
        permits.taken += 1;
        return true;
      },
      giveBack() {
        permits.givenBack += 1;
      },
    },
    readableOf: () => ({
      client: { name: 'client', tenant: 'tenant', environments: ['sandbox'] },
      operation,
      environment: 'sandbox',
      payment,
    }),
    authorisationReadOf: (_, { type, id }) => ({ ...operation, lane: 'read', path: `/${type}/${id ?? ''}` }),
    intervalMs,
    now: time.now,
  });
  const shows = (code: string): PollResult => ({
    kind: 'status',
    shown: { hash: code, code, finality: 'pending' },
    response: { status: 200, headers: [], body: Buffer.alloc(0), environment: 'sandbox', servedFrom: 'bank' },
  });
  return {
    time,
    keyValues,
    bank,
    reads,
    events,
    permits,
    shows,
    record(next: Partial<RecordedStatus> | undefined) {
      recorded = next && recorded ? { ...recorded, ...next } : undefined;
    },
    onPermit(action: () => Promise<void>) {
      beforePermit = action;
    },
    readStatus: () => reader.readStatus(subscription, signal),
    readAuthorisation: (id?: string) =>
      reader.readAuthorisation(
        subscription,
        { type: 'authorisations', since: 0, ...(id !== undefined && { id }) },
        signal,
      ),
  };
}

describe('the read of a subscribed status', () => {
  test('asks nobody while another poller has read the same status within the interval', async (t) => {
    const { time, bank, reads, permits, shows, readStatus } = start(t);
    await time.pass(2 * second, 500);
    assert.deepEqual(await readStatus(), { kind: 'known', dueInMs: 3 * second });
    assert.deepEqual([reads.length, permits.taken], [0, 0]);
    await time.pass(3 * second, 500);
    bank.result = shows('ACTC');
    assert.equal((await readStatus()).kind, 'status');
    assert.equal(reads.length, 1);
  });

  test('asks with its own credentials when another poller has seen another status', async (t) => {
    const { bank, reads, shows, record, readStatus } = start(t);
    record({ generation: '2', hash: 'ACSP' });
    bank.result = shows('ACSP');
    const read = await readStatus();
    assert.deepEqual([read.kind, reads.length], ['status', 1]);
  });

  test('leaves the payment to a poller that holds its lease, and keeps the lease for the interval itself', async (t) => {
    const { time, keyValues, bank, reads, permits, shows, record, readStatus } = start(t);
    record({ readAtMs: 0 }); // the bank forbids to store its responses
    const other = await pollsOf(keyValues).takeLease(payment, { generation: '1' });
    assert.deepEqual(await readStatus(), { kind: 'known', dueInMs: 2 * second });
    assert.deepEqual([reads.length, permits], [0, { taken: 1, givenBack: 1 }]);

    await other?.release();
    bank.result = shows('ACTC');
    assert.equal((await readStatus()).kind, 'status');
    await time.pass(4 * second, 500);
    assert.equal(await pollsOf(keyValues).takeLease(payment, { generation: '1' }), undefined);
    await time.pass(second, 500);
    assert.ok(await pollsOf(keyValues).takeLease(payment, { generation: '1' }));
  });

  test('keeps the lease for a moment if the subscription does not know the status yet, whose interval is another one', async (t) => {
    const longSince = (_: Subscription, atMs: number) => Math.max(5 * second, atMs / 10);
    const { time, keyValues, bank, shows, record, readStatus } = start(t, {}, longSince);
    record({ hash: 'ACSP' });
    bank.result = shows('ACSP');
    assert.equal((await readStatus()).kind, 'status');
    await time.pass(2 * second, 500);
    assert.ok(await pollsOf(keyValues).takeLease(payment, { generation: '1' }));
  });

  test('keeps the lease for the interval without the failures before it, when a read succeeds', async (t) => {
    const byFailures = ({ failedReads = 0 }: Subscription) => (failedReads > 0 ? 3_600 * second : 5 * second);
    const { time, keyValues, bank, shows, record, readStatus } = start(t, { failedReads: 9 }, byFailures);
    record({ readAtMs: 0 });
    bank.result = shows('ACTC');
    assert.equal((await readStatus()).kind, 'status');
    await time.pass(5 * second, 500);
    assert.ok(await pollsOf(keyValues).takeLease(payment, { generation: '1' }));
  });

  test('gives its permit back and reads later if Redis does not answer', async (t) => {
    const { keyValues, permits, record, readStatus } = start(t);
    record({ hash: undefined });
    keyValues.writeIfAbsent = () => Promise.reject(stateUnavailable(new Error('the test')));
    assert.deepEqual(await readStatus(), { kind: 'dropped' });
    assert.deepEqual(permits, { taken: 1, givenBack: 1 });
  });

  test('gives its permit back if the status was read while it waited for it', async (t) => {
    const { time, reads, permits, record, onPermit, readStatus } = start(t);
    record({ readAtMs: time.now() - 60 * second });
    onPermit(async () => record({ readAtMs: time.now() }));
    assert.deepEqual(await readStatus(), { kind: 'known', dueInMs: 5 * second });
    assert.deepEqual([reads.length, permits], [0, { taken: 1, givenBack: 1 }]);
  });

  test('does not hold the lease while it waits for its permit, so that a read that somebody waits for comes first', async (t) => {
    const { keyValues, bank, record, shows, onPermit, readStatus } = start(t);
    record({ hash: undefined });
    bank.result = shows('ACTC');
    let isFree: boolean | undefined;
    onPermit(async () => {
      const lease = await pollsOf(keyValues).takeLease(payment, { generation: '1' });
      isFree = lease !== undefined;
      await lease?.release();
    });
    await readStatus();
    assert.equal(isFree, true);
  });

  test('notifies those that wait of a status that the cache did not know', async (t) => {
    const { bank, events, record, shows, readStatus } = start(t);
    record({ hash: undefined });
    bank.result = shows('ACSP');
    await readStatus();
    assert.deepEqual(events, [{ what: 'changed', ...payment }]);
  });

  test('asks nobody while the shared state is unavailable', async (t) => {
    const { reads, record, readStatus } = start(t);
    record(undefined);
    assert.deepEqual([await readStatus(), reads.length], [{ kind: 'dropped' }, 0]);
  });

  test('reads past the cache for an instant payment only', async (t) => {
    const instant = start(t, { paymentProduct: 'instant-sepa-credit-transfers' });
    instant.record({ hash: undefined });
    await instant.readStatus();
    assert.equal(instant.reads[0]?.maxCachedAgeMs, 4.5 * second);
    t.mock.timers.reset();
    const other = start(t);
    other.record({ hash: undefined });
    await other.readStatus();
    assert.equal(other.reads[0]?.maxCachedAgeMs, undefined);
  });

  test('passes on how long the bank asks to wait', async (t) => {
    const { bank, record, readStatus } = start(t);
    record({ hash: undefined });
    bank.result = { kind: 'failed', retryAfterMs: 7 * second };
    assert.deepEqual(await readStatus(), { kind: 'failed', retryAfterMs: 7 * second });
  });
});

describe('the read of an authorisation', () => {
  test('uses the status lane and a permit of the polls', async (t) => {
    const { reads, permits, readAuthorisation } = start(t);
    assert.deepEqual(await readAuthorisation('a'), { kind: 'status', scaStatus: 'finalised' });
    assert.deepEqual(
      [reads, permits.taken],
      [[{ path: '/authorisations/a', lane: 'status', maxCachedAgeMs: undefined }], 1],
    );
  });

  test('is that of the list if its id is not known', async (t) => {
    const { bank, readAuthorisation } = start(t);
    bank.json = { kind: 'json', json: { authorisationIds: ['a'] } };
    assert.deepEqual(await readAuthorisation(), { kind: 'listed', ids: ['a'] });
  });

  test('fails if the response shows no status, and the authorisation is gone if the bank rejects the read', async (t) => {
    const { bank, readAuthorisation } = start(t);
    bank.json = { kind: 'json', json: {} };
    assert.deepEqual(await readAuthorisation('a'), { kind: 'failed' });
    bank.json = { kind: 'rejected' };
    assert.deepEqual(await readAuthorisation('a'), { kind: 'gone' });
    bank.json = { kind: 'refused' };
    assert.deepEqual(await readAuthorisation('a'), { kind: 'refused' });
  });
});
