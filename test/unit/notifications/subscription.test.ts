import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  afterAttempt,
  messageBody,
  parseSubscription,
  type Subscription,
  serializeSubscription,
  withResend,
  withStatus,
} from '../../../src/notifications/subscription.ts';

const hour = 3_600_000;
const times = (nowMs: number) => ({ nowMs, retryForMs: 72 * hour, random: () => 0.5 });

const subscription: Subscription = {
  v: 1,
  id: 'subscription',
  tenant: 'tenant',
  environment: 'environment',
  client: 'client',
  paymentService: 'payments',
  paymentProduct: 'instant-sepa-credit-transfers',
  paymentId: 'payment',
  url: 'https://tpp.example/',
  content: 'PROCESS',
  since: 0,
  until: 30 * 24 * hour,
  headers: [['Authorization', 'Bearer token']],
  sequence: 0,
  status: { hash: 'a', code: 'RCVD', finality: 'pending', since: 0 },
};

const status = (code: string, finality: 'final' | 'settled' | 'pending' = 'pending') => ({
  hash: code,
  code,
  finality,
});
const at = (nowMs: number, messageId = `message ${nowMs}`) => ({ nowMs, messageId });

describe('a subscription', () => {
  test('is read back as it was stored; anything else is ignored', () => {
    const full = withStatus(subscription, status('ACSC', 'settled'), at(5));
    assert.deepEqual(parseSubscription(serializeSubscription(full)), full);
    for (const text of ['', '{}', 'null', 'sealed:1:abc', JSON.stringify({ ...full, v: 2 })])
      assert.equal(parseSubscription(text), undefined);
  });

  test('gets a message for each change of the status, which replaces an undelivered one', () => {
    const first = withStatus(subscription, status('ACTC'), at(1));
    assert.deepEqual(first.message, {
      id: 'message 1',
      sequence: 1,
      transactionStatus: 'ACTC',
      final: false,
      since: 1,
      failedAttempts: 0,
    });
    assert.equal(withStatus(first, status('ACTC'), at(2)), first);
    const second = withStatus(first, status('ACCC', 'final'), at(3));
    assert.deepEqual([second.message?.sequence, second.message?.final], [2, true]);
    assert.equal(withStatus(second, status('RJCT', 'final'), at(4)), second, 'nothing follows the final one');
  });

  test('gets no message if only other parts of the status change, or if it has no code', () => {
    const same = withStatus(subscription, { ...status('RCVD'), hash: 'b' }, at(1));
    assert.deepEqual([same.message, same.status?.hash], [undefined, 'b']);
    const without = withStatus(subscription, { hash: 'c', code: undefined, finality: 'pending' }, at(1));
    assert.equal(without.message, undefined);
    assert.deepEqual(parseSubscription(serializeSubscription(without)), without);
  });

  test('gets a message for the first status if none was known', () => {
    const { status: _, ...unknown } = subscription;
    assert.equal(withStatus(unknown, status('RCVD'), at(1)).message?.transactionStatus, 'RCVD');
  });

  test('with LAST gets messages for settled and final statuses only', () => {
    const last: Subscription = { ...subscription, content: 'LAST' };
    const pending = withStatus(last, status('ACTC'), at(1));
    assert.equal(pending.message, undefined);
    const settled = withStatus(pending, status('ACSC', 'settled'), at(2));
    assert.deepEqual([settled.message?.final, settled.message?.sequence], [false, 1]);
    assert.equal(withStatus(settled, status('ACCC', 'final'), at(3)).message?.final, true);
  });
});

describe('the message of a subscription', () => {
  const changed = withStatus(subscription, status('ACTC'), at(0));
  const final = withStatus(subscription, status('ACCC', 'final'), at(0));
  const failed = { kind: 'failed', why: 'the endpoint fails (5xx)' } as const;

  test('has only the payment, its status, the number, and the link', () => {
    assert.ok(changed.message);
    const body = JSON.parse(
      messageBody(changed, changed.message, 'https://gateway.example/status').toString(),
    );
    assert.deepEqual(body, {
      paymentId: 'payment',
      transactionStatus: 'ACTC',
      final: false,
      sequence: 1,
      _links: { status: { href: 'https://gateway.example/status' } },
    });
  });

  test('is removed when it is delivered; the final one ends the subscription', () => {
    const delivered = afterAttempt(changed, 'message 0', { kind: 'delivered' }, times(1));
    assert.deepEqual([delivered.subscription?.message, delivered.retryInMs], [undefined, undefined]);
    assert.equal(delivered.subscription?.sequence, 1);
    assert.equal(afterAttempt(final, 'message 0', { kind: 'delivered' }, times(1)).subscription, undefined);
  });

  test('ends the subscription when it is delivered after its time', () => {
    const late = afterAttempt(changed, 'message 0', { kind: 'delivered' }, times(subscription.until));
    assert.equal(late.subscription, undefined);
  });

  test('is sent again under the same id until retryFor has passed, and then is a dead letter', () => {
    let current: Subscription | undefined = changed;
    let nowMs = 0;
    const delays: number[] = [];
    for (;;) {
      const outcome = afterAttempt(current, 'message 0', failed, times(nowMs));
      current = outcome.subscription;
      assert.ok(current);
      if (outcome.retryInMs === undefined) break;
      delays.push(outcome.retryInMs);
      nowMs += outcome.retryInMs;
      assert.equal(current.message?.id, 'message 0');
    }
    assert.equal(nowMs, 72 * hour, 'the last attempt is at the end of retryFor');
    assert.deepEqual(delays.slice(0, 3), [5_000, 30_000, 120_000]);
    assert.equal(current.message?.deadSince, 72 * hour);
    assert.equal(current.message?.why, failed.why);

    const resent = withResend(current, 100 * hour);
    assert.deepEqual(
      [resent.message?.id, resent.message?.deadSince, resent.message?.failedAttempts],
      ['message 0', undefined, 0],
    );
    assert.equal(withResend(changed, 1), changed);
  });

  test('ends with the subscription when the endpoint answers 410', () => {
    assert.equal(afterAttempt(changed, 'message 0', { kind: 'gone' }, times(1)).subscription, undefined);
  });

  test('is due at once if it is newer than the one that was attempted, whatever became of that', () => {
    const newer = withStatus(changed, status('ACSC', 'settled'), at(1));
    for (const result of [failed, { kind: 'delivered' } as const]) {
      const outcome = afterAttempt(newer, 'message 0', result, times(2));
      assert.deepEqual([outcome.subscription, outcome.retryInMs], [newer, 0]);
    }
  });
});
