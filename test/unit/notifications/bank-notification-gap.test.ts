import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createBankNotificationGap } from '../../../src/notifications/bank-notification-gap.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { until } from '../../kit/within.ts';

const payment = { tenantId: 'shop', paymentKey: 'status:payment' };
const shortMs = 40;
const endlessMs = 3_600_000;

/** Instances that share a state. @param gaps the time between two reads of each of them */
function startInstances(t: TestContext, ...gaps: readonly number[]) {
  const { keyValues } = createMemoryState();
  const readBy: number[] = [];
  const instances = gaps.map((gapMs, instance) =>
    createBankNotificationGap({ keyValues, gapMs, startRead: async () => void readBy.push(instance) }),
  );
  t.after(() => Promise.all(instances.map((instance) => instance.stop())));
  const instanceAt = (at: number) => instances[at] ?? assert.fail('no such instance');
  return { readBy, instanceAt };
}

describe('the gap between the reads after notifications', () => {
  test('ends on another instance if the one that has read is killed within the second', async (t) => {
    const { readBy, instanceAt } = startInstances(t, endlessMs, shortMs); // the first one never looks at its key again
    await instanceAt(0).request(payment);
    await instanceAt(1).request(payment);
    assert.deepEqual(readBy, [0]);

    await until(5_000, 'the other instance reads', () => readBy.length === 2);
    assert.deepEqual(readBy, [0, 1]);
  });

  test('does not outlast the instance that stops: the next notification causes a read at once', async (t) => {
    const { readBy, instanceAt } = startInstances(t, endlessMs, shortMs);
    await instanceAt(0).request(payment);
    await instanceAt(0).request(payment);
    await instanceAt(0).stop();
    assert.deepEqual(readBy, [0, 0]);

    await instanceAt(1).request(payment);
    assert.deepEqual(readBy, [0, 0, 1]);
  });
});
