import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createCheckQueue, type QueuedCheck } from '../../../src/contract-guard/check-queue.ts';
import { until } from '../../kit/within.ts';
import { answer, environment, initiation } from './messages.ts';

interface Setup {
  readonly isBusy?: () => boolean;
  readonly check?: (message: QueuedCheck) => boolean;
  /** Milliseconds that each reading of the clock adds. */
  readonly tickMs?: number;
}

function startQueue({ isBusy = () => false, check = () => true, tickMs = 0 }: Setup = {}) {
  const checked: QueuedCheck[] = [];
  const skipped: string[] = [];
  const clock = { nowMs: 0 };
  const queue = createCheckQueue({
    isBusy,
    check(message) {
      const isDone = check(message);
      if (isDone) checked.push(message);
      return isDone;
    },
    skip: (name, direction, reason) => void skipped.push(`${name} ${direction} ${reason}`),
    limits: { maxChecks: 3, maxBytes: 1_000 },
    now() {
      clock.nowMs += tickMs;
      return clock.nowMs;
    },
  });
  return { queue, checked, skipped, clock };
}

const old = (body?: string) => initiation(body, { arrivedAtMs: 0 });

describe('the queue of checks', () => {
  test('keeps the body of a request that has ended', () => {
    const { queue, checked } = startQueue();
    const request = old('{"a":1}');
    queue.addRequest(environment(), request);
    request.body = Buffer.alloc(0);
    assert.equal(queue.drain(), 'nothing');
    assert.deepEqual(
      checked.map(({ body }) => body.toString()),
      ['{"a":1}'],
    );
  });

  test('skips and counts messages beyond its limits of number and bytes, and accepts more after the checks', () => {
    const { queue, checked, skipped } = startQueue();
    for (let count = 0; count < 4; count++) queue.addRequest(environment(), old());
    assert.deepEqual(skipped, ['sandbox request shed']);
    queue.drain();
    assert.equal(checked.length, 3);
    queue.addResponse(environment(), old(), answer({ body: Buffer.alloc(900) }));
    queue.addResponse(environment(), old(), answer({ body: Buffer.alloc(101) }));
    assert.deepEqual(skipped, ['sandbox request shed', 'sandbox response shed']);
    queue.drain();
    queue.addResponse(environment(), old(), answer({ body: Buffer.alloc(900) }));
    queue.drain();
    assert.equal(checked.length, 5);
  });

  test('stops after its slice of time, and continues in the next turn', () => {
    const { queue, checked } = startQueue({ tickMs: 2 });
    for (let count = 0; count < 3; count++) queue.addRequest(environment(), old());
    assert.equal(queue.drain(), 'more');
    assert.equal(checked.length, 1);
    while (queue.drain() === 'more');
    assert.equal(checked.length, 3);
  });

  test('keeps messages while the process is busy, and skips those that have waited for a minute', () => {
    const load = { isBusy: true };
    const { queue, checked, skipped, clock } = startQueue({ isBusy: () => load.isBusy });
    queue.addRequest(environment(), old());
    queue.addRequest(environment(), initiation('', { arrivedAtMs: 30_000 }));
    clock.nowMs = 60_001;
    queue.drain();
    assert.deepEqual([checked.length, skipped.length], [0, 1]);
    load.isBusy = false;
    queue.drain();
    assert.deepEqual([checked.length, skipped.length], [1, 1]);
  });

  test('keeps messages in their order while their contract is not compiled', () => {
    const contract = { isPrepared: false };
    const { queue, checked } = startQueue({ check: () => contract.isPrepared });
    queue.addRequest(environment(), old('1'));
    queue.addRequest(environment(), old('2'));
    assert.equal(queue.drain(), 'later');
    contract.isPrepared = true;
    queue.drain();
    assert.deepEqual(
      checked.map(({ body }) => body.toString()),
      ['1', '2'],
    );
  });

  test('checks a message at the end of the turn in which it was added, and none after the stop', async () => {
    const { queue, checked } = startQueue();
    queue.addRequest(environment(), old('before the start'));
    queue.start();
    queue.addRequest(environment(), old('after it'));
    await setImmediate();
    assert.deepEqual(
      checked.map(({ body }) => body.toString()),
      ['before the start', 'after it'],
    );
    queue.addRequest(environment(), old('before the stop'));
    queue.stop();
    await setImmediate();
    assert.equal(checked.length, 2);
  });

  test('tries again until the process is not busy any more', async () => {
    const load = { isBusy: true };
    const { queue, checked } = startQueue({ isBusy: () => load.isBusy });
    queue.start();
    queue.addRequest(environment(), old());
    await setImmediate();
    assert.equal(checked.length, 0);
    load.isBusy = false;
    await until(5_000, 'the message is checked', () => checked.length === 1);
    queue.stop();
  });
});
