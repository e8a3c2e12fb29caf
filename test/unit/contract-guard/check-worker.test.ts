import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { CheckableMessage } from '../../../src/contract-guard/check-message.ts';
import { createCheckWorker } from '../../../src/contract-guard/check-worker.ts';

const message: CheckableMessage = {
  direction: 'request',
  content: {
    operation: 'initiatePayment',
    paymentService: 'payments',
    paymentProduct: 'sepa-credit-transfers',
    headers: [['Content-Type', 'application/json']],
    body: Buffer.from('{'),
    receivedAtMs: 0,
  },
};
const judges = [{ hash: 'a', options: { standardVersion: '1.3.11' } }];
const limits = { maxChecks: 2, maxBytes: 100, timeoutMs: 60_000 };

/** A thread that runs this code for each message. */
const threadWith = (code: string) => () =>
  new Worker(`require('node:worker_threads').parentPort.on('message', ({ id }) => { ${code} })`, {
    eval: true,
    execArgv: [],
  });

test('a message is checked in the thread, against each contract', async (t) => {
  const worker = createCheckWorker(limits);
  t.after(worker.stop);
  const results = await worker.check(message, [
    ...judges,
    { hash: 'b', options: { standardVersion: '1.3.6' } },
  ]);
  assert.equal(results?.length, 2);
  for (const deviations of results ?? []) assert.ok(deviations.some(({ rule }) => rule === 'json'));
  assert.equal(message.content.body.length, 1); // the message of the caller is not moved
});

test('a thread that ends leaves no check without a result, and the next check has another thread', async (t) => {
  let started = 0;
  const worker = createCheckWorker(limits, () => {
    started += 1;
    return threadWith('process.exit(1)')();
  });
  t.after(worker.stop);
  const both = [worker.check(message, judges), worker.check(message, judges)];
  assert.deepEqual(await Promise.all(both), [undefined, undefined]);
  assert.equal(await worker.check(message, judges), undefined);
  assert.equal(started, 2);
});

test('a thread that does not answer in time is ended', async (t) => {
  const worker = createCheckWorker({ ...limits, timeoutMs: 1 }, threadWith('for (;;);'));
  t.after(worker.stop);
  assert.equal(await worker.check(message, judges), undefined);
});

test('a full thread takes no more messages, in number and in bytes', async () => {
  const worker = createCheckWorker(limits, threadWith(''));
  const waiting = [worker.check(message, judges), worker.check(message, judges)];
  assert.equal(await worker.check(message, judges), undefined);
  await worker.stop();
  assert.deepEqual(await Promise.all(waiting), [undefined, undefined]);
  const large = { ...message, content: { ...message.content, body: Buffer.alloc(101) } } as CheckableMessage; // a request stays one
  assert.equal(await worker.check(large, judges), undefined);
});
