import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBankNotificationGap } from '../../../src/notifications/bank-notification-gap.ts';
import { createBankNotificationReceiver } from '../../../src/notifications/receive-bank-notifications.ts';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { KeyValues } from '../../../src/state/ports.ts';
import { createBankNotificationTable } from '../../../src/store/bank-notifications.ts';
import { DatabaseError } from '../../../src/store/database.ts';
import { newMemoryDatabase } from '../../kit/database.ts';
import { until } from '../../kit/within.ts';

const payment = { tenantId: 'shop', paymentKey: 'status:payment' };
const gapMs = 40;
const maxPending = 100;

/** Instances that share a state. @param count of them */
function startInstances(count: number, { keyValues } = createMemoryState()) {
  const reads: { readonly instance: number; readonly paymentKey: string; readonly atMs: number }[] = [];
  const commands: string[] = [];
  const state = { isAvailable: true };
  const counted = (name: keyof KeyValues) =>
    ((...parameters: never[]) => {
      commands.push(name);
      if (!state.isAvailable) return Promise.reject(stateUnavailable(new Error('cut off')));
      const execute = keyValues[name] as (...parameters: never[]) => Promise<never>;
      return execute(...parameters);
    }) as never;
  const shared = {
    read: counted('read'),
    write: counted('write'),
    writeIfAbsent: counted('writeIfAbsent'),
    replace: counted('replace'),
    removeIf: counted('removeIf'),
  } satisfies Partial<Record<keyof KeyValues, never>>;
  const database = newMemoryDatabase();
  const payments = createBankNotificationTable({
    ...database,
    query(...statement) {
      commands.push('query');
      if (!state.isAvailable) return Promise.reject(new DatabaseError('cut off', 'none'));
      return database.query(...statement);
    },
  });
  const receivers = Array.from({ length: count }, (_, instance) => {
    const gap = createBankNotificationGap({
      keyValues: shared,
      gapMs,
      async startRead({ paymentKey }) {
        if (!state.isAvailable) throw stateUnavailable(new Error('cut off'));
        reads.push({ instance, paymentKey, atMs: performance.now() });
      },
    });
    const keepForMs = () => 60_000;
    return createBankNotificationReceiver({ payments, keepForMs, gap, pauseMs: 5, retryMs: 5, maxPending });
  });
  const stop = () => Promise.all(receivers.map((receiver) => receiver.stop()));
  return { receivers, reads, commands, state, stop };
}

const instanceOf = ({ receivers }: ReturnType<typeof startInstances>, at = 0) =>
  receivers[at] ?? assert.fail('no such instance');

describe('notifications of a bank', () => {
  test('cause one read, and one more if some arrive within the second', async (t) => {
    const started = startInstances(1);
    t.after(started.stop);
    const receiver = instanceOf(started);
    receiver.record('id', payment);
    for (let count = 0; count < 1_000; count++) assert.equal(receiver.accept('id'), true);

    await until(5_000, 'two reads', () => started.reads.length === 2);
    await started.stop();
    assert.equal(started.reads.length, 2);
    assert.ok(started.commands.length < 40, `${started.commands.length} commands`);
  });

  test('that arrive at several instances cause one read at a time', async (t) => {
    const started = startInstances(3);
    t.after(started.stop);
    instanceOf(started).record('id', payment);
    for (let count = 0; count < 300; count++) instanceOf(started, count % 3).accept('id');

    await until(5_000, 'two reads', () => started.reads.length >= 2);
    await started.stop();
    const [first, second, ...more] = started.reads;
    assert.ok(first && second);
    assert.deepEqual(more, []);
    assert.ok(second.atMs - first.atMs >= gapMs - 1, 'the second read waits');
  });

  test('that arrive after the second cause a read at once', async (t) => {
    const started = startInstances(1);
    t.after(started.stop);
    instanceOf(started).record('id', payment);
    for (let expected = 1; expected <= 3; expected++) {
      await until(5_000, 'it is taken', () => {
        if (started.reads.length < expected) instanceOf(started).accept('id');
        return started.reads.length >= expected;
      });
    }
  });

  test('with different tokens of one payment share its second; other payments have their own', async (t) => {
    const started = startInstances(1);
    t.after(started.stop);
    const receiver = instanceOf(started);
    receiver.record('initiation', payment);
    receiver.record('authorisation', payment);
    receiver.record('other', { ...payment, paymentKey: 'status:other' });
    for (const id of ['initiation', 'authorisation', 'other']) receiver.accept(id);

    await until(5_000, 'three reads', () => started.reads.length === 3);
    await started.stop();
    assert.deepEqual(started.reads.map(({ paymentKey }) => paymentKey).toSorted(), [
      'status:other',
      'status:payment',
      'status:payment',
    ]);
  });

  test('that arrive before the payment is recorded take effect then, on every instance', async (t) => {
    const started = startInstances(2);
    t.after(started.stop);
    instanceOf(started, 1).accept('id');
    await until(5_000, 'it is looked up', () => started.commands.length === 2);
    assert.deepEqual(started.reads, []);

    instanceOf(started).record('id', payment);
    await until(5_000, 'a read', () => started.reads.length === 1);
  });

  test('of a payment that is never recorded cause no read', async () => {
    const started = startInstances(1);
    for (let count = 0; count < 100; count++) instanceOf(started).accept('id');
    await started.stop();
    assert.deepEqual(started.reads, []);
  });

  test('are kept during an outage of the database and of Redis, and so are the payments of tokens', async (t) => {
    const started = startInstances(1);
    t.after(started.stop);
    started.state.isAvailable = false;
    instanceOf(started).record('id', payment);
    instanceOf(started).accept('id');
    await until(5_000, 'commands fail', () => started.commands.length > 5);
    started.state.isAvailable = true;

    await until(5_000, 'a read', () => started.reads.length > 0);
  });

  test('are refused if too many wait', async () => {
    const started = startInstances(1);
    const receiver = instanceOf(started);
    const accepted = Array.from({ length: maxPending + 1 }, (_, at) => receiver.accept(`id ${at}`));
    assert.equal(accepted.lastIndexOf(true), maxPending - 1);
    assert.equal(receiver.accept('id 1'), true);
    await started.stop();
  });

  test('that were marked for another read cause it when the gateway stops', async () => {
    const started = startInstances(1);
    const receiver = instanceOf(started);
    receiver.record('id', payment);
    receiver.accept('id');
    await until(5_000, 'a read', () => started.reads.length === 1);
    receiver.accept('id');
    await started.stop();
    assert.equal(started.reads.length, 2);
  });
});
