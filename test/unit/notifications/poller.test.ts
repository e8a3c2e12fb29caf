import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { PollTarget } from '../../../src/notifications/poll-target.ts';
import { createPoller, type StatusListener } from '../../../src/notifications/poller.ts';
import type { PollPipeline, PollResult, StatusReads } from '../../../src/notifications/status-reads.ts';
import { stateUnavailable } from '../../../src/request/errors.ts';
import type { RecordedStatus, ShownStatus, StatusEvent } from '../../../src/request/statuses.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { pollsOf } from '../../kit/payment-polls.ts';
import { simulateTime } from '../../kit/simulated-time.ts';
import { operation } from './status-read.ts';

const second = 1_000;
const target = (token: string, tenantId = 'shop'): PollTarget => ({
  tenantId,
  paymentKey: 'status:payment',
  client: { name: tenantId, tenant: tenantId, environments: ['sandbox'] },
  operation,
  environment: 'sandbox',
  headers: [['Authorization', token]],
});
const shownAs = (code: string, finality: ShownStatus['finality'] = 'pending'): ShownStatus => ({
  hash: `hash of ${code}`,
  code,
  finality,
});

/** Instances that share a state, in front of a bank; the cached payment is what the last poll has shown. */
function startInstances(t: TestContext, count = 1, pendingTtlMs = second) {
  const time = simulateTime(t);
  const { keyValues: stored } = createMemoryState(time.now);
  const hooks = { beforeLease() {} };
  const keyValues: typeof stored = {
    ...stored,
    writeIfAbsent(...parameters) {
      hooks.beforeLease();
      return stored.writeIfAbsent(...parameters);
    },
  };
  const bank = { shown: shownAs('ACTC'), fails: false, refused: '', stores: true, retryAfterMs: 0 };
  /** The polls get their permits when it resolves. */
  const budget = { permit: Promise.resolve(), givenBack: 0 };
  let recorded: RecordedStatus | undefined = {
    generation: '1',
    hash: bank.shown.hash,
    sinceMs: time.now(),
    readAtMs: time.now(),
  };
  const polls: {
    readonly atMs: number;
    readonly token: string;
    readonly instance: number;
    readonly maxCachedAgeMs: number | undefined;
  }[] = [];
  const subscribers: ((event: StatusEvent) => void)[] = [];
  const events = {
    publish: (event: StatusEvent) => subscribers.forEach((notify) => void notify(event)),
    subscribe(notify: (event: StatusEvent) => void) {
      subscribers.push(notify);
      return () => {};
    },
  };
  const startedAtMs = time.now();

  const pollers = Array.from({ length: count }, (_, instance) => {
    const current: PollPipeline = {
      handle: () => assert.fail('the test reads'),
      schedule: { pendingTtl: pendingTtlMs, settledTtl: 60 * second, maxInterval: 3_600 * second },
      perSecond: () => 1_000,
      statuses: {
        enabled: true,
        cacheUseOf: () => assert.fail(),
        keyOf: () => assert.fail(),
        shownBy: () => assert.fail(),
        isCurrent: () => assert.fail(),
        expire: () => assert.fail(),
        recorded: async () => recorded,
      },
    };
    const reads: StatusReads = {
      current,
      async read({ headers }, maxCachedAgeMs): Promise<PollResult> {
        const token = headers[0]?.[1] ?? '';
        polls.push({ atMs: time.now() - startedAtMs, token, instance, maxCachedAgeMs });
        if (bank.fails) return { kind: 'failed', retryAfterMs: bank.retryAfterMs };
        if (token === bank.refused) return { kind: 'refused' };
        const isSame = recorded?.hash === bank.shown.hash;
        if (bank.stores && recorded)
          recorded = {
            generation: isSame ? recorded.generation : `${recorded.generation}1`,
            hash: bank.shown.hash,
            sinceMs: isSame ? recorded.sinceMs : time.now(),
            readAtMs: time.now(),
          };
        const response = { status: 200, headers: [], body: Buffer.alloc(0), environment: 'sandbox' } as const;
        return { kind: 'status', shown: bank.shown, response: { ...response, servedFrom: 'bank' } };
      },
    };
    const permits = {
      take: () => budget.permit.then(() => true),
      giveBack() {
        budget.givenBack += 1;
      },
    };
    return createPoller({
      polls: pollsOf(keyValues, { events, reads }),
      events,
      reads,
      budget: permits,
      metrics: { increment() {} },
      now: time.now,
    });
  });

  return {
    time,
    bank,
    budget,
    polls,
    events,
    hooks,
    keyValues,
    setRecorded(next: RecordedStatus | undefined) {
      recorded = next;
    },
    recorded: () => recorded,
    /** Listens on an instance. @returns what the listener was notified of, and how to stop */
    listen(instance: number, token: string, tenantId?: string, paymentProduct = 'sepa-credit-transfers') {
      const notices: string[] = [];
      const listener: StatusListener = {
        urgency: 'listener',
        target: { ...target(token, tenantId), operation: { ...operation, paymentProduct } },
        known: shownAs('ACTC'),
        onChange: () => notices.push('change'),
        onRefused: () => notices.push('refused'),
      };
      const stop = pollers[instance]?.listen(listener) ?? assert.fail();
      return { notices, stop, listener };
    },
  };
}

describe('the poller of a payment', () => {
  test('polls at growing intervals while somebody listens, and then stops', async (t) => {
    const { time, polls, listen } = startInstances(t);
    const { stop, notices } = listen(0, 'one');

    await time.pass(15 * second, 50);

    const times = polls.map(({ atMs }) => Math.round(atMs / second));
    assert.deepEqual(times.slice(0, 5), [1, 2, 3, 4, 5]);
    assert.ok(polls.length < 15, 'the interval grows after ten seconds');
    assert.deepEqual(notices, []);
    stop();
    const before = polls.length;
    await time.pass(10 * second, 50);
    assert.equal(polls.length, before);
  });

  test('polls once per interval, however many instances have listeners', async (t) => {
    const { time, polls, listen } = startInstances(t, 3);
    for (const instance of [0, 1, 2]) for (const token of ['a', 'b', 'c']) listen(instance, token);

    await time.pass(8 * second, 50);

    const gaps = polls.slice(1).map(({ atMs }, at) => atMs - (polls[at]?.atMs ?? 0));
    assert.ok(polls.length >= 5, `${polls.length} polls`);
    assert.ok(
      gaps.every((gap) => gap >= 0.9 * second),
      gaps.join(),
    );
  });

  test('notifies the listeners of a change, and those of other instances by the cached payment', async (t) => {
    const { time, bank, listen } = startInstances(t, 2);
    const one = listen(0, 'one');
    const other = listen(1, 'other');
    bank.shown = shownAs('ACSC');

    await time.pass(15 * second, 50);

    assert.ok(one.notices.length > 0 && one.notices.every((what) => what === 'change'));
    assert.ok(other.notices.length > 0);
  });

  test('counts the reads of TPPs as polls', async (t) => {
    const { time, polls, listen, setRecorded, recorded } = startInstances(t);
    listen(0, 'one');
    for (let passed = 0; passed < 10; passed++) {
      await time.pass(500, 50);
      const now = recorded();
      if (now) setRecorded({ ...now, readAtMs: time.now() });
    }
    assert.deepEqual(polls, []);
  });

  test('keeps the interval if the bank forbids to store its responses', async (t) => {
    const { time, bank, polls, listen, setRecorded, recorded } = startInstances(t, 2);
    bank.stores = false;
    const now = recorded();
    if (now) setRecorded({ ...now, readAtMs: 0 });
    listen(0, 'one');
    listen(1, 'other');
    await time.pass(5 * second, 50);
    assert.ok(polls.length >= 3 && polls.length <= 6, `${polls.length} polls in 5 s`);
  });

  test('polls at once after a write, and notifies the other instances of what it finds', async (t) => {
    const { time, bank, polls, events, listen, setRecorded } = startInstances(t, 2);
    const one = listen(0, 'one');
    const other = listen(1, 'other');
    await time.pass(100, 50);
    bank.shown = shownAs('CANC', 'final');
    setRecorded({ generation: '2', hash: undefined, sinceMs: 0, readAtMs: 0 });

    events.publish({ what: 'written', tenantId: 'shop', paymentKey: 'status:payment' });
    await time.settle();

    assert.equal(polls.length, 1);
    assert.ok(one.notices.includes('change') && other.notices.includes('change'));
  });

  test('notifies other instances of a change of which the listener that has polled knows already', async (t) => {
    const { time, bank, polls, listen, setRecorded } = startInstances(t, 2, 60 * second);
    bank.stores = false;
    setRecorded({ generation: '1', hash: undefined, sinceMs: 0, readAtMs: 0 });
    listen(0, 'older');
    await time.pass(second, 50);
    const remote = listen(1, 'remote');
    bank.shown = shownAs('ACSC');
    const newer = listen(0, 'newer');
    newer.listener.known = shownAs('ACSC');
    const before = polls.length;
    for (let tries = 0; tries < 1_000 && !polls.slice(before).some(({ instance }) => instance === 0); tries++)
      await time.pass(second, 250);
    await time.pass(second, 50);
    assert.ok(remote.notices.includes('change'));
  });

  test('polls once, at once, after a notification of the bank, and keeps its interval if nothing has changed', async (t) => {
    const { time, polls, events, listen, setRecorded, recorded } = startInstances(t, 2);
    const before = recorded();
    assert.ok(before);
    const old = { ...before, sinceMs: time.now() - 1_000 * second, readAtMs: time.now() };
    setRecorded(old); // the next poll is due in 100 seconds
    const listeners = [listen(0, 'one'), listen(1, 'other')];
    await time.pass(2 * second, 50);
    assert.equal(polls.length, 0);
    setRecorded({ ...old, generation: '2' }); // as the notification does

    events.publish({ what: 'pushed', tenantId: 'shop', paymentKey: 'status:payment' });
    await time.settle();

    assert.equal(polls.length, 1);
    await time.pass(94 * second, 500); // the lease of that poll has ended, and the next one is not due yet
    assert.equal(polls.length, 1);
    assert.deepEqual(
      listeners.flatMap(({ notices }) => notices),
      [],
    );
  });

  test('polls after a notification of the bank that arrives while another instance is found to read for an earlier one', async (t) => {
    const { time, polls, events, hooks, keyValues, listen, setRecorded, recorded } = startInstances(t);
    const before = recorded();
    assert.ok(before);
    const old = { ...before, sinceMs: time.now() - 1_000 * second, readAtMs: time.now() };
    const payment = { tenantId: 'shop', paymentKey: 'status:payment' };
    setRecorded(old); // the next poll is due in 100 seconds
    listen(0, 'one');
    await time.pass(second, 50);
    const lease = await pollsOf(keyValues).takeLease(payment, { generation: '2' });
    await lease?.keep(60 * second);
    hooks.beforeLease = () => {
      hooks.beforeLease = () => {};
      setRecorded({ ...old, generation: '3' });
      events.publish({ what: 'pushed', ...payment });
    };

    setRecorded({ ...old, generation: '2' });
    events.publish({ what: 'pushed', ...payment });
    await time.pass(3 * second, 50);

    assert.equal(polls.length, 1);
  });

  test('polls again until a poll succeeds, after a notification of the bank that fails at that moment', async (t) => {
    const { time, bank, polls, events, listen, setRecorded, recorded } = startInstances(t);
    const before = recorded();
    assert.ok(before);
    setRecorded({ ...before, sinceMs: time.now() - 1_000 * second, readAtMs: time.now() });
    const { notices } = listen(0, 'one');
    await time.pass(second, 50);
    bank.fails = true;
    events.publish({ what: 'pushed', tenantId: 'shop', paymentKey: 'status:payment' });
    await time.pass(second, 50);
    assert.equal(polls.length, 1);
    bank.fails = false;
    bank.shown = shownAs('ACSC', 'final');

    await time.pass(2.5 * second, 50);
    assert.ok(polls.length >= 2);
    assert.ok(notices.includes('change'));
  });

  test('passes a message about a change on at once, a second one within a second later, and none to other tenants', async (t) => {
    const { time, events, listen } = startInstances(t);
    const { notices } = listen(0, 'one');
    const { notices: rival } = listen(0, 'two', 'rival');
    await time.pass(100, 50);
    const change = { what: 'changed', tenantId: 'shop', paymentKey: 'status:payment' } as const;

    events.publish(change);
    assert.deepEqual(notices, ['change']);
    events.publish(change);
    assert.deepEqual(notices, ['change']);
    assert.deepEqual(rival, []);
  });

  test('slows down while the bank fails, and is quick again after a success', async (t) => {
    const { time, bank, polls, listen } = startInstances(t);
    listen(0, 'one');
    bank.fails = true;
    await time.pass(20 * second, 50);
    assert.deepEqual(
      polls.map(({ atMs }) => Math.round(atMs / second)),
      [1, 3, 7, 15],
    );
    bank.fails = false;
    await time.pass(20 * second, 50);
    assert.ok(polls.length > 6);
  });

  test('polls every minute during a long outage of the bank, and soon after a TPP has read the status', async (t) => {
    const { time, bank, polls, listen, setRecorded, recorded } = startInstances(t);
    listen(0, 'one');
    bank.fails = true;
    await time.pass(1_800 * second, 500);
    const lastGapMs = (polls.at(-1)?.atMs ?? 0) - (polls.at(-2)?.atMs ?? 0);
    assert.ok(lastGapMs <= 61 * second, `${lastGapMs} ms`);

    bank.fails = false;
    const before = polls.length;
    const now = recorded();
    if (now) setRecorded({ ...now, generation: '2', sinceMs: time.now(), readAtMs: time.now() });
    await time.pass(15 * second, 50);
    assert.ok(polls.length >= before + 2, `${polls.length - before} polls`);
  });

  test('polls although a stored response has a time in the future', async (t) => {
    const { time, bank, polls, listen, setRecorded, recorded } = startInstances(t);
    bank.stores = false;
    const now = recorded();
    if (now) setRecorded({ ...now, readAtMs: time.now() + 3_600 * second });
    listen(0, 'one');
    await time.pass(10 * second, 50);
    assert.ok(polls.length >= 5, `${polls.length} polls`);
  });

  test('polls for a listener although the credentials of a newer one are refused, which continues to listen', async (t) => {
    const { time, bank, polls, listen } = startInstances(t);
    listen(0, 'valid');
    listen(0, 'refused');
    bank.refused = 'refused';
    await time.pass(20 * second, 50);
    const refused = polls.filter(({ token }) => token === 'refused');
    assert.equal(refused.length, 1);
    assert.ok(polls.length > 5, `${polls.length} polls`);
  });

  test('notifies the listeners with the same credentials when the bank refuses them, and polls with others', async (t) => {
    const { time, bank, polls, listen } = startInstances(t, 2);
    const same = [listen(0, 'expired'), listen(0, 'expired')];
    const other = listen(1, 'valid');
    bank.refused = 'expired';

    await time.pass(10 * second, 50);

    for (const { notices } of same) assert.ok(notices.includes('refused'));
    assert.deepEqual(other.notices, []);
    assert.ok(polls.some(({ token }) => token === 'valid'));
  });

  test('does not poll while the shared state is unavailable', async (t) => {
    const { time, polls, listen, setRecorded } = startInstances(t);
    const { notices } = listen(0, 'one');
    setRecorded(undefined);
    await time.pass(10 * second, 50);
    assert.deepEqual([polls, notices], [[], []]);
  });

  test('does not poll a final status', async (t) => {
    const { time, bank, polls, listen } = startInstances(t);
    const { listener } = listen(0, 'one');
    bank.shown = shownAs('ACTC', 'final');
    listener.known = bank.shown;
    await time.pass(60 * second, 500);
    assert.deepEqual(polls, []);
  });

  test('polls an instant payment every second at first, past a cache that keeps it for longer', async (t) => {
    const { time, polls, listen } = startInstances(t, 1, 20 * second);
    listen(0, 'one', 'shop', 'instant-sepa-credit-transfers');
    await time.pass(5 * second, 50);
    assert.deepEqual(
      polls.map(({ atMs }) => Math.round(atMs / second)),
      [1, 2, 3, 4, 5],
    );
    assert.ok(polls.every(({ maxCachedAgeMs }) => maxCachedAgeMs === 0.9 * second));
  });

  test('waits as long as the bank asks for', async (t) => {
    const { time, bank, polls, listen } = startInstances(t);
    Object.assign(bank, { fails: true, retryAfterMs: 30 * second });
    listen(0, 'one');
    await time.pass(40 * second, 250);
    assert.deepEqual(
      polls.map(({ atMs }) => Math.round(atMs / second)),
      [1, 31],
    );
  });

  test('notifies a listener while a poll waits for its permit', async (t) => {
    const { time, bank, budget, polls, listen, setRecorded } = startInstances(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    budget.permit = promise;
    listen(0, 'one');
    await time.pass(1_500, 50);
    assert.deepEqual(polls, []);
    setRecorded({ generation: '2', hash: 'hash of ACSP', sinceMs: time.now(), readAtMs: time.now() });
    const { notices } = listen(0, 'two');
    await time.settle();
    assert.deepEqual(notices, ['change']);

    bank.shown = shownAs('ACSP');
    resolve();
    await time.settle();
    assert.deepEqual([polls.length, budget.givenBack], [0, 1], 'the status was read while it waited');
  });

  test('stops when the bank refuses all credentials, until the TPP reads the status again', async (t) => {
    const { time, bank, polls, listen } = startInstances(t);
    bank.refused = 'expired';
    listen(0, 'expired');
    await time.pass(600 * second, 1_000);
    assert.equal(polls.length, 1);
    listen(0, 'renewed');
    await time.pass(10 * second, 50);
    assert.equal(polls.at(-1)?.token, 'renewed');
  });
});

test('a poller whose lease cannot be taken tries again', async (t) => {
  const time = simulateTime(t);
  let attempts = 0;
  const { keyValues } = createMemoryState(time.now);
  const failing = {
    ...keyValues,
    writeIfAbsent: async () => {
      attempts += 1;
      throw stateUnavailable();
    },
  };
  const recorded = { generation: '1', hash: 'hash of ACTC', sinceMs: 0, readAtMs: 0 };
  const never = () => assert.fail();
  const reads: StatusReads = {
    current: {
      handle: never,
      schedule: { pendingTtl: second, settledTtl: second, maxInterval: second },
      perSecond: () => 1,
      statuses: {
        enabled: true,
        cacheUseOf: never,
        keyOf: never,
        shownBy: never,
        isCurrent: never,
        expire: never,
        recorded: async () => recorded,
      },
    },
    read: never,
  };
  const events = { publish() {}, subscribe: () => () => {} };
  const poller = createPoller({
    polls: pollsOf(failing, { events, reads }),
    events,
    reads,
    budget: { take: async () => true, giveBack() {} },
    metrics: { increment() {} },
    now: time.now,
  });
  const listener = { urgency: 'listener', target: target('one'), known: shownAs('ACTC') } as const;
  const stop = poller.listen({ ...listener, onChange: never, onRefused: never });
  await time.pass(3 * second, 50);
  stop();
  assert.ok(attempts >= 3, `${attempts} attempts`);
});
