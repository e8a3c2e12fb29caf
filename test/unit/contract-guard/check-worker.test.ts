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

/** A check for which no request waits. */
const report = { tenant: 'one' };
const awaited = (tenant: string) => ({ tenant, awaitedUntilMs: Number.POSITIVE_INFINITY });

/** A thread that runs this code for each message. */
const threadWith = (code: string) => () =>
  new Worker(`require('node:worker_threads').parentPort.on('message', ({ id, message }) => { ${code} })`, {
    eval: true,
    execArgv: [],
  });
/** Answers with no deviations. */
const answer = "require('node:worker_threads').parentPort.postMessage({ id, deviations: [[]] });";

test('a message is checked in the thread, against each contract', async (t) => {
  const worker = createCheckWorker(limits);
  t.after(worker.stop);
  const both = [...judges, { hash: 'b', options: { standardVersion: '1.3.6' } }];
  const results = await worker.check(message, both, report);
  assert.equal(results?.length, 2);
  for (const deviations of results ?? []) assert.ok(deviations.some(({ rule }) => rule === 'json'));
  assert.equal(message.content.body.length, 1); // the message of the caller is not moved
});

test('a message that ends the thread takes no other one with it', async (t) => {
  let started = 0;
  const worker = createCheckWorker(limits, () => {
    started += 1;
    return threadWith(`if (message.content.receivedAtMs === 1) process.exit(1); ${answer}`)();
  });
  t.after(worker.stop);
  const fatal = { ...message, content: { ...message.content, receivedAtMs: 1 } } as CheckableMessage; // a request stays one
  const results = [fatal, message].map((each) => worker.check(each, judges, report));
  assert.deepEqual(await Promise.all(results), [undefined, [[]]]);
  assert.equal(started, 2);
});

test('a thread that does not answer in time is ended', async (t) => {
  const worker = createCheckWorker({ ...limits, timeoutMs: 1 }, threadWith('for (;;);'));
  t.after(worker.stop);
  assert.equal(await worker.check(message, judges, report), undefined);
});

test('a thread takes a limited number of messages, and of bytes', async () => {
  const worker = createCheckWorker(limits, threadWith(''));
  const one = () => worker.check(message, judges, report);
  const kept = [one(), one(), one()]; // one of them in the thread
  assert.equal(await one(), undefined);
  await worker.stop();
  assert.deepEqual(await Promise.all(kept), [undefined, undefined, undefined]);
});

test('a message of more bytes than can wait is not checked behind another one', async (t) => {
  const worker = createCheckWorker(limits, threadWith(''));
  t.after(worker.stop);
  void worker.check(message, judges, report);
  const large = { ...message, content: { ...message.content, body: Buffer.alloc(101) } } as CheckableMessage; // a request stays one
  assert.equal(await worker.check(large, judges, awaited('one')), undefined);
});

test('a tenant that fills the thread delays no other tenant by more than one message', async (t) => {
  const order: string[] = [];
  const worker = createCheckWorker({ ...limits, maxChecks: 4 }, threadWith(answer));
  t.after(worker.stop);
  const check = async (tenant: string) => {
    const result = await worker.check(message, judges, awaited(tenant));
    order.push(result ? tenant : `${tenant} skipped`);
  };
  await Promise.all(['noisy', 'noisy', 'noisy', 'noisy', 'noisy', 'quiet'].map(check));
  assert.deepEqual(order, ['noisy skipped', 'noisy', 'quiet', 'noisy', 'noisy', 'noisy']);
});

test('messages for which a request waits go before those of the report', async (t) => {
  const order: string[] = [];
  const worker = createCheckWorker(limits, threadWith(answer));
  t.after(worker.stop);
  const check = async (name: string, priority: Parameters<typeof worker.check>[2]) => {
    const result = await worker.check(message, judges, priority);
    order.push(result ? name : `${name} skipped`);
  };
  const reports = ['first report', 'second report', 'third report'].map((name) => check(name, report));
  await Promise.all([...reports, check('payment', awaited('one'))]);
  assert.deepEqual(order, ['third report skipped', 'first report', 'payment', 'second report']);
});

test('a message for which the request does not wait any more is not checked', async (t) => {
  const worker = createCheckWorker(limits, threadWith(answer));
  t.after(worker.stop);
  const first = worker.check(message, judges, report);
  const late = worker.check(message, judges, { tenant: 'one', awaitedUntilMs: performance.now() });
  assert.deepEqual(await first, [[]]);
  assert.equal(await late, undefined);
});

test('a message for which the request does not wait any more takes no place from another one', async (t) => {
  const worker = createCheckWorker(limits, threadWith(answer));
  t.after(worker.stop);
  const running = worker.check(message, judges, report);
  const late = Array.from({ length: limits.maxChecks }, () =>
    worker.check(message, judges, { tenant: 'one', awaitedUntilMs: performance.now() - 1 }),
  );
  const current = [
    worker.check(message, judges, awaited('two')),
    worker.check(message, judges, awaited('two')),
  ];
  assert.deepEqual(await Promise.all(late), [undefined, undefined]);
  assert.deepEqual(await Promise.all([running, ...current]), [[[]], [[]], [[]]]);
});

test('a message is skipped, and the next one checked, if the operating system grants no thread', async (t) => {
  let attempts = 0;
  const worker = createCheckWorker(limits, () => {
    attempts += 1;
    if (attempts === 1) throw new Error('ERR_WORKER_INIT_FAILED');
    return threadWith(answer)();
  });
  t.after(worker.stop);
  const results = [message, message].map((each) => worker.check(each, judges, report));
  assert.deepEqual(await Promise.all(results), [undefined, [[]]]);
});

test('a message is not checked, and the next one is, if its contract cannot be compiled', async (t) => {
  const worker = createCheckWorker({ ...limits, timeoutMs: 60_000 });
  t.after(worker.stop);
  const fields = [{ body: 'singlePayment', field: 'own', oneOf: [] }];
  const broken = { standardVersion: '1.3.11', profile: { products: [], levels: [], fields } };
  assert.equal(await worker.check(message, [{ hash: 'broken', options: broken }], report), undefined);
  assert.equal((await worker.check(message, judges, report))?.length, 1);
});
