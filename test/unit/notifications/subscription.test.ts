import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  afterAttempt,
  hasUnreported,
  isOver,
  messageBody,
  parseSubscription,
  runningAuthorisations,
  type Subscription,
  serializeSubscription,
  settledForMs,
  withReads,
  withResend,
} from '../../../src/notifications/subscription.ts';
import { subscriptionSince } from '../../kit/subscription.ts';

const hour = 3_600_000;
const times = (nowMs: number) => ({ nowMs, retryForMs: 72 * hour, random: () => 0.5 });

const subscription = subscriptionSince(0, {
  paymentProduct: 'instant-sepa-credit-transfers',
  until: 30 * 24 * hour,
  headers: [['Authorization', 'Bearer token']],
  status: { hash: 'a', code: 'RCVD', finality: 'pending', since: 0 },
});

const status = (code: string, finality: 'final' | 'settled' | 'pending' = 'pending') => ({
  hash: code,
  code,
  finality,
});
const at = (nowMs: number, messageId = `message ${nowMs}`) => ({ nowMs, messageId });

describe('a subscription', () => {
  test('is read back as it was stored; anything else is ignored', () => {
    const full = withReads(subscription, { status: status('ACSC', 'settled') }, at(5));
    assert.deepEqual(parseSubscription(serializeSubscription(full)), full);
    for (const text of ['', '{}', 'null', 'sealed:1:abc', JSON.stringify({ ...full, v: 2 })])
      assert.equal(parseSubscription(text), undefined);
  });

  test('gets a message for each change of the status, which replaces an undelivered one', () => {
    const first = withReads(subscription, { status: status('ACTC') }, at(1));
    assert.deepEqual(first.message, {
      id: 'message 1',
      sequence: 1,
      transactionStatus: 'ACTC',
      final: false,
      since: 1,
      attempts: 0,
      failedAttempts: 0,
    });
    assert.equal(withReads(first, { status: status('ACTC') }, at(2)), first);
    const second = withReads(first, { status: status('ACCC', 'final') }, at(3));
    assert.deepEqual([second.message?.sequence, second.message?.final], [2, true]);
    assert.equal(
      withReads(second, { status: status('RJCT', 'final') }, at(4)),
      second,
      'nothing follows the final one',
    );
  });

  test('gets no message if only other parts of the status change, or if it has no code', () => {
    const same = withReads(subscription, { status: { ...status('RCVD'), hash: 'b' } }, at(1));
    assert.deepEqual([same.message, same.status?.hash], [undefined, 'b']);
    const without = withReads(
      subscription,
      { status: { hash: 'c', code: undefined, finality: 'pending' } },
      at(1),
    );
    assert.equal(without.message, undefined);
    assert.deepEqual(parseSubscription(serializeSubscription(without)), without);
  });

  test('gets a message for the first status if none was known', () => {
    const { status: _, ...unknown } = subscription;
    assert.equal(withReads(unknown, { status: status('RCVD') }, at(1)).message?.transactionStatus, 'RCVD');
  });

  test('with LAST gets one message: for a final status, or one that has been settled for ten minutes', () => {
    const last: Subscription = { ...subscription, content: 'LAST' };
    const pending = withReads(last, { status: status('ACTC') }, at(1));
    assert.equal(pending.message, undefined);
    const settled = withReads(pending, { status: status('ACSC', 'settled') }, at(2));
    assert.equal(settled.message, undefined);
    const credited = withReads(settled, { status: status('ACCC', 'final') }, at(3));
    assert.deepEqual([credited.message?.transactionStatus, credited.message?.final], ['ACCC', true]);

    assert.equal(withReads(settled, {}, at(2 + settledForMs - 1)), settled);
    const lasting = withReads(settled, {}, at(2 + settledForMs));
    assert.deepEqual([lasting.message?.transactionStatus, lasting.message?.final], ['ACSC', true]);
    assert.ok(isOver(lasting));
    const later = withReads(lasting, { status: status('ACCC', 'final') }, at(3 + settledForMs));
    assert.equal(later, lasting, 'nothing follows');
  });

  test('with LAST gets a settled status as the last one when it cannot be read any more', () => {
    const last: Subscription = { ...subscription, content: 'LAST' };
    const settled = withReads(last, { status: status('ACSC', 'settled') }, at(2));
    assert.equal(withReads(settled, {}, { ...at(3), lastAfterMs: 0 }).message?.final, true);
    const pending = withReads(last, { status: status('ACTC') }, at(2));
    assert.equal(withReads(pending, {}, { ...at(3), lastAfterMs: 0 }), pending);
  });
});

describe('a subscription with SCA', () => {
  const type = 'authorisations';
  const started = (id: string) => ({ type, id, scaStatus: 'received', reported: 'received', since: 0 });
  const sca: Subscription = { ...subscription, content: 'SCA,PROCESS', authorisations: [started('a')] };
  const scaStatus = (id: string, code: string) => ({
    type,
    id,
    result: { kind: 'status', scaStatus: code } as const,
  });
  const shown = ({ message }: Subscription) =>
    message && [message.sequence, message.transactionStatus, message.authorisationId, message.scaStatus];

  test('gets a message for each change of an authorisation, until its end is reported', () => {
    const identified = withReads(sca, { authorisations: [scaStatus('a', 'psuIdentified')] }, at(1));
    assert.deepEqual(shown(identified), [1, 'RCVD', 'a', 'psuIdentified']);
    assert.equal(withReads(identified, {}, at(2)), identified);
    assert.equal(runningAuthorisations(identified).length, 1);
    const finalised = withReads(identified, { authorisations: [scaStatus('a', 'finalised')] }, at(3));
    assert.deepEqual(shown(finalised), [2, 'RCVD', 'a', 'finalised']);
    assert.deepEqual(finalised.authorisations, []);
  });

  test('gets one message for both changes, and no message for the status alone without PROCESS', () => {
    const reads = { status: status('ACTC'), authorisations: [scaStatus('a', 'finalised')] };
    assert.deepEqual(shown(withReads(sca, reads, at(1))), [1, 'ACTC', 'a', 'finalised']);
    const only: Subscription = { ...sca, content: 'SCA' };
    assert.deepEqual(shown(withReads(only, reads, at(1))), [1, 'ACTC', 'a', 'finalised']);
    assert.equal(withReads(only, { status: status('ACTC') }, at(1)).message, undefined);
  });

  test('keeps the authorisation of an undelivered message in the one that replaces it', () => {
    const finalised = withReads(sca, { authorisations: [scaStatus('a', 'finalised')] }, at(1));
    const changed = withReads(finalised, { status: status('ACTC') }, at(2));
    assert.deepEqual(shown(changed), [2, 'ACTC', 'a', 'finalised']);
  });

  test('reports a second authorisation after the message about the first one is delivered', () => {
    const both = { ...sca, authorisations: [started('a'), started('b')] };
    const ended = { authorisations: [scaStatus('a', 'finalised'), scaStatus('b', 'failed')] };
    const first = withReads(both, ended, at(1));
    assert.deepEqual(shown(first), [1, 'RCVD', 'a', 'finalised']);
    assert.ok(hasUnreported(first));
    assert.equal(withReads(first, {}, at(2)), first);
    const delivered = afterAttempt(first, 'message 1', { kind: 'delivered' }, times(3)).subscription;
    assert.ok(delivered);
    const second = withReads(delivered, {}, at(4));
    assert.deepEqual(shown(second), [2, 'RCVD', 'b', 'failed']);
    assert.ok(!hasUnreported(second));
  });

  for (const finality of ['final', 'settled'] as const)
    test(`with LAST gets a message about each of two authorisations, the last one as final, after a ${finality} status`, () => {
      const both = {
        ...sca,
        content: 'SCA,LAST' as const,
        authorisations: [started('a'), started('b')],
      };
      const ended = [scaStatus('a', 'finalised'), scaStatus('b', 'failed')];
      const lastAfterMs = 0;
      const reads = { status: status('ACCC', finality), authorisations: ended };
      const first = withReads(both, reads, { ...at(1), lastAfterMs });
      assert.deepEqual([shown(first), first.message?.final], [[1, 'ACCC', 'a', 'finalised'], false]);
      assert.equal(withReads(first, {}, { ...at(2), lastAfterMs }), first, 'it waits for its delivery');
      const delivered = afterAttempt(first, 'message 1', { kind: 'delivered' }, times(3)).subscription;
      assert.ok(delivered);
      const second = withReads(delivered, {}, { ...at(4), lastAfterMs });
      assert.deepEqual([shown(second), second.message?.final], [[2, 'ACCC', 'b', 'failed'], true]);
      assert.ok(isOver(second));
    });

  test('gets nothing after the final status, which replaces what is not delivered', () => {
    const reads = { status: status('RJCT', 'final'), authorisations: [scaStatus('a', 'failed')] };
    const rejected = withReads(sca, reads, at(1));
    assert.deepEqual([shown(rejected), rejected.message?.final], [[1, 'RJCT', 'a', 'failed'], true]);
    assert.equal(withReads(rejected, { authorisations: [scaStatus('a', 'finalised')] }, at(2)), rejected);
  });

  test('waits for the status of the payment before the first message', () => {
    const { status: _, ...unknown } = sca;
    const unreported = withReads(unknown, { authorisations: [scaStatus('a', 'failed')] }, at(1));
    assert.equal(unreported.message, undefined);
    assert.deepEqual(shown(withReads(unreported, { status: status('ACTC') }, at(2))), [
      1,
      'ACTC',
      'a',
      'failed',
    ]);
  });

  test('has the authorisation in its message', () => {
    const failed = withReads(sca, { authorisations: [scaStatus('a', 'failed')] }, at(1));
    assert.ok(failed.message);
    const body = JSON.parse(messageBody(failed, failed.message, 'https://gateway.example/status').toString());
    assert.deepEqual(body, {
      paymentId: 'payment',
      transactionStatus: 'RCVD',
      final: false,
      sequence: 1,
      authorisationId: 'a',
      scaStatus: 'failed',
      _links: { status: { href: 'https://gateway.example/status' } },
    });
  });
});

describe('the message of a subscription', () => {
  const changed = withReads(subscription, { status: status('ACTC') }, at(0));
  const final = withReads(subscription, { status: status('ACCC', 'final') }, at(0));
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
    const undelivered = withResend(changed, 100 * hour).message;
    assert.deepEqual([undelivered?.since, undelivered?.deadSince], [100 * hour, undefined]);
    assert.equal(withResend(subscription, 1), subscription);
  });

  test('ends with the subscription when the endpoint answers 410', () => {
    assert.equal(afterAttempt(changed, 'message 0', { kind: 'gone' }, times(1)).subscription, undefined);
  });

  test('is due at once if it is newer than the one that was attempted, whatever became of that', () => {
    const newer = withReads(changed, { status: status('ACSC', 'settled') }, at(1));
    for (const result of [failed, { kind: 'delivered' } as const]) {
      const outcome = afterAttempt(newer, 'message 0', result, times(2));
      assert.deepEqual([outcome.subscription, outcome.retryInMs], [newer, 0]);
    }
  });
});
