/** Deadlines of an environment: they apply to its requests, and to no request of another environment. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

/** The sandbox has short deadlines; production has the global ones, which are longer than a test may wait. */
async function start(t: TestContext) {
  const [sandbox, production] = [
    await startBank(t, { name: 'sandbox' }),
    await startBank(t, { name: 'production' }),
  ];
  const gateway = await startGateway(t, {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl, deadlines: { write: '400ms', status: '300ms', read: '300ms' } },
      production: { baseUrl: production.baseUrl },
    },
    deadlines: { write: '5min', status: '5min', read: '5min' },
  });
  return { sandbox, production, gateway };
}

const inEnvironment = (environment: string) => ['Penstock-Environment', environment] as const;

describe('the deadlines of an environment', () => {
  test('end a payment whose response does not arrive, and a repeat is told that its outcome is unknown', async (t) => {
    const { sandbox, gateway } = await start(t);
    sandbox.injectFault({ name: 'never-answer' }, { times: 1 });
    const first = await call(gateway.url, initiation);
    assert.deepEqual(
      [first.status, first.header('Penstock-Error'), first.header('Penstock-Environment')],
      [504, 'OUTCOME_UNKNOWN', 'sandbox'],
    );
    const requestId = first.header('X-Request-ID') ?? assert.fail();
    const repeat = await call(gateway.url, { ...initiation, requestId });
    assert.equal(repeat.header('Penstock-Error'), 'DUPLICATE_IN_DOUBT');
    assert.equal(sandbox.payments.length, 1);
  });

  test('end a status read', async (t) => {
    const { sandbox, gateway } = await start(t);
    sandbox.injectFault({ name: 'never-answer' }, { times: 1 });
    const headers = [inEnvironment('sandbox')];
    const { status } = await call(gateway.url, { ...statusRead, headers });
    assert.equal(status, 504);
  });

  test('do not end a payment in another environment', async (t) => {
    const { production, gateway } = await start(t);
    production.injectFault({ name: 'latency', ms: 1_000 }, { times: 1 });
    const headers = [...initiation.headers, inEnvironment('production')];
    const { status } = await call(gateway.url, { ...initiation, headers });
    assert.equal(status, 201);
  });
});

describe('a shorter deadline after a reload', () => {
  test('ends a status read although an equal one with the longer deadline is still waiting', async (t) => {
    const gate = Promise.withResolvers<StubResponse>();
    t.after(() => gate.resolve(statusResponse('ACTC'))); // before the gateway stops, which waits for its requests
    const bank = await startStubBank(t, () => gate.promise);
    const sectionsWith = (status: string) => ({
      environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } },
      deadlines: { status },
    });
    const gateway = await startGateway(t, sectionsWith('5min'));
    const patient = call(gateway.url, statusRead);
    await until(5_000, 'the bank receives the first read', () => bank.requests.length === 1);

    await gateway.reload(sectionsWith('300ms'));
    const { status } = await call(gateway.url, { ...statusRead, maxMs: 20_000 });
    assert.ok(status === 504 || status === 503, `status ${status}`); // 503 if a busy machine has sent nothing in time
    gate.resolve(statusResponse('ACTC'));
    assert.equal((await patient).status, 200);
  });
});
