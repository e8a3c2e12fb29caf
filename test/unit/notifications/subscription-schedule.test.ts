import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Subscription, settledForMs } from '../../../src/notifications/subscription.ts';
import { subscriptionIntervalMs } from '../../../src/notifications/subscription-schedule.ts';
import { subscriptionSince } from '../../kit/subscription.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const schedule = { pendingTtl: 2 * second, settledTtl: minute, maxInterval: hour };

const subscription = subscriptionSince(0, {
  until: 30 * 24 * hour,
  status: { hash: 'RCVD', code: 'RCVD', finality: 'pending', since: 0 },
});
const running = { type: 'authorisations', id: 'a', scaStatus: 'received', since: 0 };
const interval = (changes: Partial<Subscription>, atMs: number) =>
  subscriptionIntervalMs(schedule, { ...subscription, ...changes }, atMs);

describe('the interval between two reads of a subscription', () => {
  test('begins again when an authorisation is started, and ends half an hour later', () => {
    const at = 20 * hour;
    assert.equal(interval({}, at), hour);
    const authorisedAt = at - 10 * second;
    assert.equal(interval({ authorisedAt }, at), 2 * second);
    assert.equal(interval({ authorisedAt }, authorisedAt + 29 * minute), minute);
    const changedSince = { hash: 'ACTC', code: 'ACTC', finality: 'pending', since: authorisedAt } as const;
    const isDue = { authorisedAt: authorisedAt - 20 * hour, status: changedSince };
    assert.equal(interval(isDue, at + 5 * hour), 0.1 * (5 * hour + 10 * second));
  });

  test('is a second at first for instant payments', () => {
    assert.equal(interval({ paymentProduct: 'instant-sepa-credit-transfers' }, 0), second);
  });

  test('doubles after failures', () => {
    assert.equal(interval({ failedReads: 3 }, 0), 8 * second);
  });

  test('ends ten minutes after the settlement for LAST', () => {
    const status = { hash: 'ACSC', code: 'ACSC', finality: 'settled', since: 0 } as const;
    assert.equal(interval({ status, content: 'LAST' }, settledForMs - 20 * second), 20 * second);
    assert.equal(interval({ status }, settledForMs - 20 * second), minute);
  });

  test('with SCA alone reads only while an authorisation runs', () => {
    assert.equal(interval({ content: 'SCA' }, 0), undefined);
    assert.equal(interval({ content: 'SCA', authorisations: [running] }, 0), 2 * second);
    const ended = { ...running, scaStatus: 'failed' };
    assert.equal(
      interval({ content: 'SCA', authorisations: [{ ...ended, reported: 'failed' }] }, 0),
      undefined,
    );
  });
});
