/** Faults that break a connection or stall it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Fault } from '../../../src/simulated-bank/faults.ts';
import { ask, jsonOrder, pathOf, pay, startedBank } from './kit.ts';
import { bodyIn, initiationBytes, statusBytes, talk } from './raw.ts';

describe('a fault of the simulated bank', () => {
  test('creates the payment even though the response of the initiation breaks', async (t) => {
    for (const name of ['reset', 'close-before-answering', 'half-answer', 'half-chunked-answer'] as const) {
      await t.test(name, async (t) => {
        const bank = await startedBank(t);
        bank.injectFault({ name });

        await talk(bank, initiationBytes);

        assert.equal(bank.payments.length, 1);
        assert.equal(bank.requests[0]?.fault, name);
      });
    }
  });

  test('applied before the effect creates no payment and only records the request', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'reset', strikes: 'before-effect' });

    const { end } = await talk(bank, initiationBytes);

    assert.equal(end, 'reset');
    assert.equal(bank.payments.length, 0);
    assert.equal(bank.requests[0]?.body.toString(), jsonOrder);
    assert.equal(bank.requests[0]?.bodyComplete, true);
  });

  test('applied before reading records the request although its body never arrived', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'reset', strikes: 'before-reading' });
    const head = initiationBytes.slice(0, -jsonOrder.length);

    const { end } = await talk(bank, head);

    assert.equal(end, 'reset');
    assert.equal(bank.payments.length, 0);
    assert.equal(bank.requests.length, 1);
    assert.equal(bank.requests[0]?.bodyComplete, false);
  });

  test('is applied the requested number of times, only to the named operation, and not after it was cleared', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'status', status: 503 }, { times: 2, operation: 'initiatePayment' });
    bank.injectFault({ name: 'status', status: 500 }, { operation: ['getPaymentStatus', 'getPayment'] });

    const statuses = [(await pay(bank)).status, (await pay(bank)).status, (await pay(bank)).status];
    const read = await ask(bank, 'GET', pathOf('nobody'));
    bank.clearFaults();
    const healed = await ask(bank, 'GET', pathOf('nobody'));

    assert.deepEqual(statuses, [503, 503, 201]);
    assert.equal(read.status, 500);
    assert.equal(healed.status, 404);
  });
});

describe('a connection to the simulated bank', () => {
  test('is reset after the client has read half of the response', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'reset-mid-answer' });

    const { received, end } = await talk(bank, initiationBytes);

    assert.equal(end, 'reset');
    assert.match(received, /^HTTP\/1\.1 201 Created/);
    assert.ok(bodyIn(received).length < contentLengthIn(received));
  });

  test('is closed after half of the bytes that Content-Length announced', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'half-answer' });

    const { received, end } = await talk(bank, initiationBytes);

    assert.equal(end, 'closed');
    assert.equal(bodyIn(received).length, Math.floor(contentLengthIn(received) / 2));
  });

  test('is closed between two chunks of a chunked response', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'half-chunked-answer' });

    const { received, end } = await talk(bank, initiationBytes);

    assert.equal(end, 'closed');
    assert.match(received, /Transfer-Encoding: chunked/);
    assert.doesNotMatch(received, /\r\n0\r\n/);
  });

  test('is closed without a byte of a response', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'close-before-answering' });

    assert.deepEqual(await talk(bank, initiationBytes), { received: '', end: 'closed' });
  });

  test('stays open and silent if the bank never responds, although the payment exists', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'never-answer' }, { operation: 'initiatePayment' });

    const silent = talk(bank, initiationBytes);
    await bank.waitUntil(() => bank.payments.length === 1);
    await bank.stop();

    assert.equal((await silent).received, '');
  });

  test('delivers the response one byte at a time', async (t) => {
    for (const from of ['head', 'body'] as const) {
      const bank = await startedBank(t);
      bank.injectFault({ name: 'drip', everyMs: 0, from });

      const { received } = await talk(bank, statusBytes('nobody'));

      assert.equal(bodyIn(received).length, contentLengthIn(received));
    }
  });

  test('is closed after a response with Connection: close', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'connection-close' });

    const { received, end } = await talk(bank, initiationBytes);

    assert.match(received, /Connection: close/);
    assert.equal(end, 'closed');
  });

  test('stays open after a response and is closed while it is idle', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'close-idle', afterMs: 1 });

    const { received, end } = await talk(bank, initiationBytes);

    assert.match(received, /Connection: keep-alive/);
    assert.equal(end, 'closed');
  });
});

describe('the latency fault of the simulated bank', () => {
  test('combines with another fault, and the payment exists before the delayed response', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'latency', ms: 600_000 }, { operation: 'initiatePayment' });
    bank.injectFault({ name: 'status', status: 503 }, { operation: 'getPaymentStatus' });
    bank.injectFault({ name: 'latency', ms: 1 }, { operation: 'getPaymentStatus' });

    const late = talk(bank, initiationBytes);
    await bank.waitUntil(() => bank.payments.length === 1);
    const { received } = await talk(bank, statusBytes('nobody'), /}$/);
    await bank.stop();

    assert.match(received, /^HTTP\/1\.1 503/);
    assert.equal((await late).received, '');
  });

  test('is cut short for present requests by endDelays, and still applies to later requests', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'latency', ms: 600_000 });

    const [first, second] = [pay(bank), pay(bank)];
    await bank.waitUntil(() => bank.payments.length === 2);
    bank.endDelays();
    const statuses = [(await first).status, (await second).status];
    const later = talk(bank, initiationBytes);
    await bank.waitUntil(() => bank.payments.length === 3);
    await bank.stop();

    assert.deepEqual(statuses, [201, 201]);
    assert.equal((await later).received, '');
  });
});

test('the simulated bank serves the next request after every fault', async (t) => {
  const faults: readonly Fault[] = [
    { name: 'reset' },
    { name: 'garbage' },
    { name: 'two-answers' },
    { name: 'switching-protocols' },
    { name: 'never-answer' },
  ];
  for (const fault of faults) {
    const bank = await startedBank(t);
    bank.injectFault(fault, { times: 1 });

    const struck = talk(bank, initiationBytes);
    await bank.waitUntil(() => bank.payments.length === 1);

    assert.equal((await pay(bank)).status, 201, fault.name);
    await bank.stop();
    await struck;
  }
});

const contentLengthIn = (received: string) => Number(/Content-Length: (\d+)/.exec(received)?.[1]);
