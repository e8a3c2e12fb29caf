import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createReadInitiation } from '../../../src/idempotency/initiation-outcome.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { createInstanceTable } from '../../../src/store/instances.ts';
import { createLedgerTable } from '../../../src/store/ledger.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { bankResponse } from './bank-response.ts';
import { settleTasks } from './fake-time.ts';
import { errorCodeOf, leaseMs, startInstance } from './instance.ts';
import { initiation, requestId } from './requests.ts';

const nothing = { environment: undefined, status: undefined, paymentId: undefined };

async function start(t: TestContext) {
  const started = await startInstance(t);
  const database = createFaultyDatabase(started.database);
  const readInitiation = createReadInitiation({
    table: createLedgerTable(database),
    isAlive: createInstanceTable(database, 'reader').isAlive,
  });
  const read = (tenantId = 'shop', id = requestId) => readInitiation(tenantId, id);
  return { ...started, reader: database, read };
}

describe('the outcome of an initiation, as its TPP sees it', () => {
  test('is none without a row, and none of another tenant', async (t) => {
    const { instance, read } = await start(t);
    assert.equal(await read(), undefined);
    await instance.begin();
    assert.equal((await read())?.state, 'in-progress');
    assert.equal(await read('rival'), undefined);
  });

  test('is found in any letter case', async (t) => {
    const { instance, read } = await start(t);
    await instance.begin();
    assert.equal((await read('shop', requestId.toUpperCase()))?.state, 'in-progress');
  });

  test('is the response of the bank with the payment', async (t) => {
    const { instance, read } = await start(t);
    const begun = await instance.begin();
    await begun.respond(bankResponse(201, '{"paymentId":"payment-1"}'));
    assert.deepEqual(await read(), {
      state: 'answered',
      environment: 'sandbox',
      status: 201,
      paymentId: 'payment-1',
    });
  });

  test('is in doubt after a 5xx of the bank, and executed when an operator has confirmed it', async (t) => {
    const { instance, doubtIdOf, read } = await start(t);
    const begun = await instance.begin();
    await begun.respond(bankResponse(502, '{"paymentId":"of-the-error"}'));
    assert.deepEqual(await read(), { ...nothing, state: 'in-doubt', environment: 'sandbox' });
    const resolution = {
      id: await doubtIdOf(),
      who: 'ann',
      outcome: 'happened',
      paymentId: 'payment-1',
      reason: 'asked',
    } as const;
    assert.equal((await instance.resolve(resolution)).kind, 'resolved');
    assert.deepEqual(await read(), {
      ...nothing,
      state: 'executed',
      environment: 'sandbox',
      paymentId: 'payment-1',
    });
  });

  test('is in doubt after an unknown outcome, and none when the claim was released', async (t) => {
    const { instance, read } = await start(t);
    const fail = async (code: 'OUTCOME_UNKNOWN' | 'UPSTREAM_UNREACHED') =>
      (await instance.begin()).fail(new GatewayError(code, 'It failed.'));
    await fail('UPSTREAM_UNREACHED');
    assert.equal(await read(), undefined);
    await fail('OUTCOME_UNKNOWN');
    assert.equal((await read())?.state, 'in-doubt');
  });

  test('is in doubt if the instance that was sending it is dead, and not sent if it had only claimed it', async (t) => {
    const { time, instance, read } = await start(t);
    const other = '5d2b7bd5-a1ad-4be9-a9b5-6f5a8f1d5f1c';
    void instance.send(initiation({ requestId: other }), () => new Promise(() => {}));
    await instance.begin();
    await settleTasks();
    for (const id of [requestId, other]) assert.equal((await read('shop', id))?.state, 'in-progress');
    time.skip(leaseMs);
    assert.deepEqual(await read(), { ...nothing, state: 'in-doubt', environment: 'sandbox' });
    assert.deepEqual(await read('shop', other), { ...nothing, state: 'not-sent' });
  });

  test('fails while the database is unavailable', async (t) => {
    const { reader, read } = await start(t);
    reader.fail('before');
    assert.equal(await errorCodeOf(read()), 'STATE_UNAVAILABLE');
  });
});
