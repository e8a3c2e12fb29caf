/** The control endpoint, used with curl by people and by the demo. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, jsonOrder, pay, startedBank } from './kit.ts';

describe('the control endpoint of the simulated bank', () => {
  test('describes itself, and its calls are not counted as requests', async (t) => {
    const bank = await startedBank(t);

    const { status, json } = await ask(bank, 'GET', '/_bank/');

    assert.equal(status, 200);
    assert.equal(json.baseUrl, bank.baseUrl);
    assert.ok(json.calls['PUT /_bank/faults']);
    assert.deepEqual(json.faults.latency.defaults, { ms: 1_000 });
    assert.equal(bank.requests.length, 0);
  });

  test('lists requests and payments', async (t) => {
    const bank = await startedBank(t);
    await pay(bank);

    const requests = (await ask(bank, 'GET', '/_bank/requests')).json;
    const payments = (await ask(bank, 'GET', '/_bank/payments')).json;

    assert.equal(requests[0].body, jsonOrder);
    assert.equal(requests[0].operation, 'initiatePayment');
    assert.deepEqual(payments, bank.payments);
  });

  test('sets, lists and removes faults', async (t) => {
    const bank = await startedBank(t);
    const list = [
      { name: 'status', status: 502, times: 1, operation: 'initiatePayment', strikes: 'after-effect' },
      { name: 'latency', ms: 0 },
    ];

    const set = await ask(bank, 'PUT', '/_bank/faults', { body: JSON.stringify(list) });
    const struck = await pay(bank);
    const left = await ask(bank, 'GET', '/_bank/faults');
    const healed = await ask(bank, 'DELETE', '/_bank/faults');

    assert.equal(set.json.length, 2);
    assert.equal(struck.status, 502);
    assert.equal(bank.payments.length, 1);
    assert.deepEqual(left.json, [
      { fault: { name: 'latency', ms: 0 }, operation: 'any', timesLeft: 'unlimited' },
    ]);
    assert.deepEqual(healed.json, []);
  });

  test('advances the clock and sets a status', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    const told = (transactionStatus: unknown) =>
      ask(bank, 'PUT', `/_bank/payments/${json.paymentId}`, { body: JSON.stringify({ transactionStatus }) });

    const clock = await ask(bank, 'PUT', '/_bank/clock', { body: '{"advanceMs": 5000}' });
    const rejected = await told('RJCT');
    const again = await told(null);

    assert.equal(clock.json.now, '2026-01-01T12:00:05.000Z');
    assert.equal(rejected.json.transactionStatus, 'RJCT');
    assert.equal(again.json.transactionStatus, 'ACTC');
  });

  test('removes all requests, payments and faults', async (t) => {
    const bank = await startedBank(t);
    await pay(bank);

    const { json } = await ask(bank, 'DELETE', '/_bank/');

    assert.deepEqual(json.counts, { requests: 0, payments: 0, connections: 2 });
  });

  const refused = {
    'an unknown fault': ['faults', '{"name": "resett"}', /unknown fault resett; allowed: latency/],
    'an unknown parameter': [
      'faults',
      '{"name": "latency", "milliseconds": 1}',
      /unknown parameter milliseconds; allowed: strikes, ms/,
    ],
    'a parameter of another kind': [
      'faults',
      '{"name": "latency", "ms": "1"}',
      /ms must be a value such as 1000/,
    ],
    'an unknown moment': ['faults', '{"name": "reset", "strikes": "later"}', /strikes must be one of/],
    'an unknown operation': ['faults', '{"name": "reset", "operation": "pay"}', /operation must be/],
    'no number of times': ['faults', '{"name": "reset", "times": 0}', /times must be/],
    'what is no JSON': ['faults', 'reset', /JSON/],
    'a clock that runs backwards': ['clock', '{"advanceMs": -1}', /advanceMs/],
    'a status for an unknown payment': [
      'payments/nobody',
      '{"transactionStatus": "RJCT"}',
      /unknown payment nobody/,
    ],
  } as const;
  for (const [name, [path, body, message]] of Object.entries(refused)) {
    test(`refuses ${name} with an explanation`, async (t) => {
      const bank = await startedBank(t);

      const { status, json } = await ask(bank, 'PUT', `/_bank/${path}`, { body });

      assert.equal(status, 400);
      assert.match(json.error, message);
      assert.deepEqual(bank.faults, []);
    });
  }

  test('responds with an error to any other call', async (t) => {
    const bank = await startedBank(t);

    assert.equal((await ask(bank, 'POST', '/_bank/faults')).status, 404);
  });
});
