import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { createDeliveries, type DeliveryDependencies } from '../../../src/notifications/deliver-messages.ts';
import type { AttemptResult } from '../../../src/notifications/post-webhook.ts';
import type { Subscription } from '../../../src/notifications/subscription.ts';
import { createSubscriptionStore } from '../../../src/notifications/subscription-store.ts';
import { DatabaseError } from '../../../src/store/database.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { newSubscriptions, unreadable } from '../../kit/subscription-table.ts';
import { until } from '../../kit/within.ts';

const hour = 3_600_000;
const delivered: AttemptResult = { kind: 'delivered' };
const failed: AttemptResult = { kind: 'failed', why: 'no connection (ECONNREFUSED)' };

const subscriptionWith = (paymentId: string, message: Partial<Subscription['message']> = {}): Subscription =>
  subscriptionSince(Date.now(), {
    id: `subscription of ${paymentId}`,
    paymentId,
    sequence: 1,
    status: { hash: 'a', code: 'ACTC', finality: 'pending', since: Date.now() },
    message: {
      id: `message of ${paymentId}`,
      sequence: 1,
      transactionStatus: 'ACTC',
      final: false,
      since: Date.now(),
      attempts: 0,
      failedAttempts: 0,
      ...message,
    },
  });

async function setUp(t: TestContext, overrides: Partial<DeliveryDependencies> = {}) {
  const stored = await newSubscriptions(t);
  const { table, store } = stored;
  const sent: string[] = [];
  const results: AttemptResult[] = [];
  const deliveries = createDeliveries({
    table,
    store,
    async post(_url, headers) {
      sent.push(String(headers['webhook-id']));
      return results.shift() ?? delivered;
    },
    tenantIds: () => ['tenant'],
    clientOf: () => ({ urls: ['https://tpp.example/hooks'], secrets: [randomBytes(32)] }),
    statusUrlOf: () => 'https://gateway.example/status',
    retryForMs: () => 72 * hour,
    onAttempt() {},
    onBug: assert.ifError,
    ...overrides,
  });
  t.after(() => deliveries.stop());
  return {
    ...stored,
    sent,
    results,
    deliveries,
    add: (subscription: Subscription) => stored.put(subscription, { deliveryInMs: 0 }),
    read: store.read,
    /** Looks for due messages until the condition holds. */
    runUntil: (what: string, condition: () => boolean | Promise<boolean>) =>
      until(5_000, what, async () => {
        await deliveries.run();
        return condition();
      }),
  };
}

describe('the deliveries', () => {
  test('remove a message that was delivered, and the subscription after the final one', async (t) => {
    const { add, read, runUntil, workOf, sent } = await setUp(t);
    await add(subscriptionWith('one'));
    await add(subscriptionWith('other', { final: true, transactionStatus: 'ACCC' }));
    await runUntil('both are delivered', async () => !(await read('one'))?.message && !(await read('other')));
    assert.deepEqual(sent.toSorted(), ['message of one', 'message of other']);
    assert.equal((await read('one'))?.sequence, 1);
    assert.deepEqual(await workOf('delivery'), { all: 0, due: 0, leased: 0 });
  });

  test('make the status of another authorisation due, which has waited for the message', async (t) => {
    const { add, read, runUntil, workOf } = await setUp(t);
    const ended = { type: 'authorisations', id: 'b', scaStatus: 'failed', reported: 'received', since: 0 };
    await add({ ...subscriptionWith('one'), content: 'SCA', authorisations: [ended] });
    await add(subscriptionWith('other'));
    await runUntil('both are delivered', async () => {
      return !(await read('one'))?.message && !(await read('other'))?.message;
    });
    assert.deepEqual(await workOf('read'), { all: 1, due: 1, leased: 0 });
  });

  test('repeat a failed message under the same id when it is due again', async (t) => {
    const { add, read, runUntil, results, sent, clock, deliveries } = await setUp(t);
    results.push(failed, failed);
    await add(subscriptionWith('payment'));
    await runUntil('it has failed', async () => (await read('payment'))?.message?.failedAttempts === 1);
    await deliveries.run();
    assert.equal(sent.length, 1, 'it is not due');
    clock.aheadMs += 6_000;
    await runUntil('it has failed again', async () => (await read('payment'))?.message?.failedAttempts === 2);
    assert.equal((await read('payment'))?.message?.why, 'no connection (ECONNREFUSED)');
    clock.aheadMs += 34_000;
    await runUntil('it is delivered', async () => !(await read('payment'))?.message);
    assert.deepEqual(sent, Array(3).fill('message of payment'));
  });

  test('make the failed messages of an endpoint due when it accepts one', async (t) => {
    const { add, read, runUntil, results, clock, sent } = await setUp(t);
    const payments = ['a', 'b', 'c', 'd', 'e'];
    results.push(...payments.map(() => failed));
    for (const payment of payments) {
      await add(subscriptionWith(payment));
      await runUntil('it has failed', async () => (await read(payment))?.message?.failedAttempts === 1);
    }
    clock.aheadMs += 5_600; // all are due; the endpoint has failed, so only one of them is tried at a time
    await runUntil('all are delivered', async () => {
      const stored = await Promise.all(payments.map(read));
      return stored.every((subscription) => !subscription?.message);
    });
    assert.equal(sent.length, 10);
  });

  test('keep a dead letter after retryFor', async (t) => {
    const { add, read, runUntil, results, workOf, countsOf, sent, deliveries } = await setUp(t);
    results.push(failed);
    await add(subscriptionWith('payment', { since: Date.now() - 73 * hour }));
    await runUntil('it is a dead letter', async () => Boolean((await read('payment'))?.message?.deadSince));
    assert.equal((await countsOf('tenant')).dead, 1);
    assert.deepEqual(await workOf('delivery'), { all: 0, due: 0, leased: 0 });
    await deliveries.run();
    assert.equal(sent.length, 1);
  });

  test('end the subscription when the endpoint answers 410', async (t) => {
    const { add, read, runUntil, results } = await setUp(t);
    results.push({ kind: 'gone' });
    await add(subscriptionWith('payment'));
    await runUntil('it has ended', async () => !(await read('payment')));
  });

  for (const [what, clientOf] of [
    ['of a client that has no webhooks any more', () => undefined],
    [
      'that the settings do not allow any more',
      () => ({ urls: ['https://other.example'], secrets: [randomBytes(32)] as const }),
    ],
  ] as const)
    test(`send nothing to a URL ${what}`, async (t) => {
      const { add, read, runUntil, sent } = await setUp(t, { clientOf });
      await add(subscriptionWith('payment'));
      await runUntil('it has failed', async () => (await read('payment'))?.message?.failedAttempts === 1);
      assert.deepEqual(sent, []);
    });

  test('send a newer message after the one that is being sent, not at the same time', async (t) => {
    let sending = 0;
    const sent: string[] = [];
    const first = Promise.withResolvers<void>();
    const { add, put, read, runUntil, deliveries } = await setUp(t, {
      async post(_url, headers) {
        sending += 1;
        assert.equal(sending, 1);
        sent.push(String(headers['webhook-id']));
        if (sent.length === 1) await first.promise;
        sending -= 1;
        return delivered;
      },
    });
    await add(subscriptionWith('payment'));
    await runUntil('it is being sent', () => sent.length === 1);
    await put(subscriptionWith('payment', { id: 'newer', sequence: 2 }), { deliveryInMs: 0 });
    await deliveries.run();
    assert.equal(sent.length, 1);
    first.resolve();
    await runUntil('the newer one is delivered', async () => !(await read('payment'))?.message);
    assert.deepEqual(sent, ['message of payment', 'newer']);
  });

  test('look at few of the messages for a slow endpoint, however many are due', async (t) => {
    let moves = 0;
    const { clock, runUntil, table, workOf, add } = await setUp(t, {
      post: (_url, _headers, _body, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(failed))),
    });
    const { reschedule } = table;
    table.reschedule = (...change) => {
      moves += 1;
      return reschedule(...change);
    };
    const messages = 500;
    for (let index = 0; index < messages; index++) await add(subscriptionWith(`payment-${index}`));
    for (let second = 0; second < 20; second++) {
      await runUntil('none is due', async () => (await workOf('delivery')).due === 0);
      clock.aheadMs += 1_000;
    }
    assert.ok(moves < 6 * messages, `${moves} moves`);
  });

  test('make the failed messages of an endpoint due when it accepts a new one', async (t) => {
    const { add, read, runUntil, results } = await setUp(t);
    results.push(failed);
    await add(subscriptionWith('old', { failedAttempts: 5 }));
    await runUntil('it has failed', async () => (await read('old'))?.message?.failedAttempts === 6);
    await add(subscriptionWith('new'));
    await runUntil('both are delivered', async () => !(await read('old'))?.message);
    assert.equal((await read('new'))?.message, undefined);
  });

  for (const [what, result] of [
    ['that it is gone', { kind: 'gone' }],
    ['with an error', failed],
  ] as const)
    test(`send a message to the new URL at once if the former one answers ${what} after the change`, async (t) => {
      const first = Promise.withResolvers<AttemptResult>();
      const urls: string[] = [];
      const { add, put, read, runUntil } = await setUp(t, {
        async post({ href }) {
          urls.push(href);
          return urls.length === 1 ? first.promise : delivered;
        },
        clientOf: () => ({
          urls: ['https://tpp.example', 'https://new.example'],
          secrets: [randomBytes(32)],
        }),
      });
      await add(subscriptionWith('payment', { failedAttempts: 6 }));
      await runUntil('it is being sent', () => urls.length === 1);
      await put({ ...subscriptionWith('payment'), url: 'https://new.example/', since: Date.now() + 1 });
      first.resolve(result);
      await runUntil('it is sent to the new URL', () => urls.length === 2);
      await runUntil('it is delivered', async () => !(await read('payment'))?.message);
      assert.deepEqual(urls, ['https://tpp.example/hooks', 'https://new.example/']);
      assert.ok(await read('payment'), 'the subscription continues');
    });

  test('send a message again at once after a failed attempt during which an operator has sent it again', async (t) => {
    const first = Promise.withResolvers<AttemptResult>();
    let attempts = 0;
    const { add, table, read, runUntil } = await setUp(t, {
      async post() {
        attempts += 1;
        return attempts === 1 ? first.promise : delivered;
      },
    });
    await add(subscriptionWith('payment'));
    await runUntil('it is being sent', () => attempts === 1);
    await table.reschedule('delivery', 'payment', { inMs: 0 });
    first.resolve(failed);
    await runUntil('it is delivered', async () => !(await read('payment'))?.message);
    assert.equal(attempts, 2);
  });

  test('record a delivery although a former holder of the lease has recorded a failure meanwhile', async (t) => {
    const first = Promise.withResolvers<AttemptResult>();
    let attempts = 0;
    const { add, store, read, runUntil } = await setUp(t, {
      async post() {
        attempts += 1;
        return first.promise;
      },
    });
    await add(subscriptionWith('payment'));
    await runUntil('it is being sent', () => attempts === 1);
    const failedBefore = ({ message }: Subscription) =>
      message && { ...message, attempts: 1, failedAttempts: 1 };
    await store.change('payment', (current) => {
      const message = current && failedBefore(current);
      return message && { subscription: { ...current, message }, delivery: { inMs: hour, lease: 'former' } };
    });
    first.resolve(delivered);
    await until(5_000, 'it is recorded', async () => !(await read('payment'))?.message);
  });

  test('make a subscription due to end after its last message if the status is final', async (t) => {
    const { add, workOf, runUntil } = await setUp(t);
    const final = { hash: 'b', code: 'ACSC', finality: 'final', since: Date.now() } as const;
    await add({ ...subscriptionWith('payment'), status: final });
    await runUntil('its end is due', async () => (await workOf('read')).due === 1);
  });

  test('note of each message where it was sent, and how often', async (t) => {
    const first = Promise.withResolvers<AttemptResult>();
    const { add, put, database, read, runUntil, results } = await setUp(t, {
      post: async ({ href }) =>
        href === 'https://tpp.example/hooks' ? first.promise : (results.shift() ?? delivered),
      clientOf: ({ client }) =>
        client === 'unknown'
          ? undefined
          : { urls: ['https://tpp.example', 'https://new.example'], secrets: [randomBytes(32)] },
    });
    const noted = async (paymentId: string) => {
      const rows = await database.query(
        'SELECT endpoint, attempts, state FROM webhook_message WHERE payment_id = $1',
        [paymentId],
      );
      return rows.map(({ endpoint, attempts, state }) => [endpoint, attempts, state]);
    };
    const later = { url: 'https://new.example/', since: Date.now() + 1 };
    await add(subscriptionWith('moved', { attempts: 3 }));
    await runUntil('it is being sent', async () => (await read('moved')) !== undefined);
    await put({ ...subscriptionWith('moved', { attempts: 3 }), ...later });
    first.resolve(failed);
    await until(5_000, 'it is noted', async () => (await noted('moved')).length > 0);
    assert.deepEqual(await noted('moved'), [['https://tpp.example', 4, 'undelivered']]);

    await add({ ...subscriptionWith('not sent'), client: 'unknown' });
    await runUntil('it has failed', async () => (await read('not sent'))?.message?.failedAttempts === 1);
    assert.deepEqual(await noted('not sent'), [['https://tpp.example', 0, 'undelivered']]);
  });

  test('note that a later message has ended, if the endpoint has ended the subscription meanwhile', async (t) => {
    const first = Promise.withResolvers<AttemptResult>();
    const { add, put, database, read, runUntil } = await setUp(t, { post: () => first.promise });
    const before = subscriptionWith('payment');
    await add(before);
    await runUntil('it is being sent', async () => (await read('payment')) !== undefined);
    const stored = await read('payment');
    assert.ok(stored?.message);
    await put({ ...stored, sequence: 2, message: { ...stored.message, id: 'a later one', sequence: 2 } });
    first.resolve({ kind: 'gone' });
    await until(5_000, 'the subscription has ended', async () => (await read('payment')) === undefined);
    const notes = await database.query("SELECT id, state FROM webhook_message WHERE id = 'a later one'");
    assert.deepEqual(notes.map(Object.values), [['a later one', 'ended']]);
  });

  test('leave a subscription alone that an instance with another encryption key has changed', async (t) => {
    const first = Promise.withResolvers<AttemptResult>();
    const { add, sent, makeUnreadable, textOf, workOf, runUntil, deliveries } = await setUp(t, {
      post: () => first.promise,
    });
    await add(subscriptionWith('payment'));
    await runUntil('it is being sent', async () => (await workOf('delivery')).due === 0);
    await makeUnreadable('payment');
    first.resolve({ kind: 'gone' });
    await deliveries.stop();
    assert.equal(await textOf('payment'), unreadable);
    assert.deepEqual(sent, []);
  });

  test('count a failed attempt once if the answer of the database to its record is lost', async (t) => {
    let isLost = false;
    const { table, put, store: reader } = await newSubscriptions(t);
    const { deliveries, results } = await setUp(t, {
      table,
      store: createSubscriptionStore({
        ...table,
        async write(...args) {
          const isWritten = await table.write(...args);
          if (isLost) return isWritten;
          isLost = true;
          throw new DatabaseError('the connection was lost', 'unknown');
        },
      }),
    });
    results.push(failed);
    await put(subscriptionWith('payment'), { deliveryInMs: 0 });
    await deliveries.run();
    await until(10_000, 'it has failed', async () => (await reader.read('payment'))?.message?.attempts === 1);
    await deliveries.stop();
    assert.equal((await reader.read('payment'))?.message?.failedAttempts, 1);
  });

  test('record a result when the database is available again, and do not send the message again', async (t) => {
    let failures = 1;
    const { table, put } = await newSubscriptions(t);
    const { sent, deliveries } = await setUp(t, {
      table,
      store: createSubscriptionStore({
        ...table,
        write: async (...args) => {
          if (failures-- > 0) throw new DatabaseError('it is away', 'unknown');
          return table.write(...args);
        },
      }),
    });
    await put(subscriptionWith('payment'), { deliveryInMs: 0 });
    await deliveries.run();
    await until(10_000, 'the result is recorded', async () => {
      const text = (await table.read('payment'))?.text;
      return text !== undefined && !text.includes('"message"');
    });
    assert.deepEqual(sent, ['message of payment']);
  });
});
