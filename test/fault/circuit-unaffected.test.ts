/** Outcomes that are no evidence about the bank: they neither open a circuit nor count for it. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { ask, callOf, circuitOf, lanes, loggedCircuitChanges, waitForCircuit } from '../kit/circuits.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import {
  type GatewayUnderTest,
  type Sections,
  startBank,
  startGateway,
  startGatewayWithBank,
} from '../kit/gateway.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const minimumCalls = 3;
const times = 4 * minimumCalls;
const sections: Sections = { circuit: { minimumCalls, failureRate: '1%', window: '10min' } };

/** Delays a response until `endDelays` is called. */
const untilEndDelays = { name: 'latency', ms: 600_000, strikes: 'before-effect' } as const;

/** For calls that last until the test ends them, on a busy machine as well. */
const patient = {
  deadlines: { write: '60s', read: '60s', status: '60s' },
  shaping: { maxWait: { write: '30s', read: '30s', status: '30s' } },
};

/** Sends concurrent calls in every lane, several times as many as are needed to open a circuit. */
async function sendManyCalls(gateway: GatewayUnderTest): Promise<readonly string[]> {
  const replies = await Promise.all(
    lanes.flatMap((lane) => Array.from({ length: times }, () => ask(gateway, lane))),
  );
  return replies.map((reply) => reply.header('Penstock-Error') ?? String(reply.status));
}

async function assertStaysClosed(gateway: GatewayUnderTest): Promise<void> {
  for (const lane of lanes) {
    const { state, reason } = await circuitOf(gateway, lane);
    assert.deepEqual([state, reason], ['closed', null], lane);
  }
  assert.deepEqual(loggedCircuitChanges(gateway), []);
}

const distinct = (answers: readonly string[]) => [...new Set(answers)].toSorted();

async function startWithFaultyDatabase(t: TestContext, more: Sections) {
  const bank = await startBank(t);
  const database = createFaultyDatabase(await newGatewayDatabase(t));
  const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } };
  const stores = { database, heartbeatDatabase: database };
  return { bank, database, gateway: await startGateway(t, { environments, ...more }, stores) };
}

describe('circuit', { concurrency: 3 }, () => {
  for (const status of [400, 401, 403, 404, 409, 501]) {
    test(`ignores responses with status ${status}, and failures among them still open it`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t, {
        ...sections,
        circuit: { minimumCalls, failureRate: '90%' },
      });
      bank.injectFault({ name: 'status', status });
      assert.deepEqual(distinct(await sendManyCalls(gateway)), [String(status)]);
      await assertStaysClosed(gateway);

      bank.clearFaults();
      bank.injectFault({ name: 'status', status: 500 });
      for (let calls = 0; calls < minimumCalls; calls++) await ask(gateway, 'write');
      assert.equal((await circuitOf(gateway, 'write')).state, 'open');
    });
  }

  test('ignores 429 responses', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, sections);
    bank.injectFault({ name: 'too-many-requests', retryAfterSeconds: 20 });
    for (const answer of await sendManyCalls(gateway)) assert.match(answer, /^(429|QUEUE_TIMEOUT)$/);
    await assertStaysClosed(gateway);
  });

  test('ignores TPPs that disconnect while the bank processes their calls', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { ...sections, ...patient });
    bank.injectFault(untilEndDelays);
    const disconnect = new AbortController();
    const calls = lanes.flatMap((lane) =>
      Array.from({ length: times }, () => {
        const one = { ...callOf[lane], signal: disconnect.signal };
        return assert.rejects(call(gateway.url, one), { name: 'AbortError' });
      }),
    );
    await bank.waitUntil(() => bank.requests.length === 2 * times + 1); // equal status reads share one call
    disconnect.abort();
    await Promise.all(calls);
    bank.endDelays();
    await until(5_000, 'the bank has answered', () => bank.payments.length === times);
    await assertStaysClosed(gateway);
  });

  test('ignores calls that the queue refuses or that time out in it', async (t) => {
    const shaping = {
      rate: '7/s',
      burst: 2,
      queue: 4,
      maxWait: { write: '200ms', read: '200ms', status: '200ms' },
    };
    const { gateway } = await startGatewayWithBank(t, { ...sections, shaping });
    const missing = new Set(['QUEUE_FULL', 'QUEUE_TIMEOUT']);
    await until(20_000, 'calls were refused by the queue and timed out in it', async () => {
      for (const answer of await sendManyCalls(gateway)) missing.delete(answer);
      return missing.size === 0;
    });
    await assertStaysClosed(gateway);
  });

  test('ignores clients that exceed their quota', async (t) => {
    const clients = clientSettings().map((client) => ({ ...client, quota: { rate: '1/h', burst: 1 } }));
    const { gateway } = await startGatewayWithBank(t, { ...sections, clients });
    const headers = [['X-API-Key', apiKeyOf('shop')]] as const;
    const replies = [];
    for (let calls = 0; calls <= times; calls++)
      replies.push(await call(gateway.url, { ...callOf.status, headers }));
    assert.equal(replies.filter(({ header }) => header('Penstock-Error') === 'QUOTA_EXCEEDED').length, times);
    await assertStaysClosed(gateway);
  });

  test('ignores a database that cannot be reached', async (t) => {
    const { gateway, database } = await startWithFaultyDatabase(t, sections);
    database.fail('before');
    const answers = await sendManyCalls(gateway);
    assert.ok(answers.includes('STATE_UNAVAILABLE'));
    await assertStaysClosed(gateway);
  });

  test('ignores a database that fails just before a payment is sent', async (t) => {
    const shaping = { ...patient.shaping, maxConcurrent: 1 };
    const { bank, gateway, database } = await startWithFaultyDatabase(t, {
      ...sections,
      ...patient,
      shaping,
    });
    bank.injectFault(untilEndDelays, { times: 1 });
    const activeCall = ask(gateway, 'read');
    await bank.waitUntil(() => bank.requests.length === 1);
    const waiting = Array.from({ length: times }, () => ask(gateway, 'write'));
    await until(5_000, 'all are claimed', async () => {
      const [row] = await database.query('SELECT count(*) AS claims FROM ledger');
      return row?.claims === times;
    });
    database.fail('before', 'mark');
    bank.endDelays();
    await activeCall;
    for (const { header } of await Promise.all(waiting))
      assert.equal(header('Penstock-Error'), 'STATE_UNAVAILABLE');
    assert.equal(bank.requests.length, 1);
    await assertStaysClosed(gateway);
  });

  test('ignores calls that were sent before it opened and end after it has closed again', async (t) => {
    const circuit = { minimumCalls, openFor: '100ms' };
    const { bank, gateway } = await startGatewayWithBank(t, { ...patient, circuit });
    bank.injectFault(untilEndDelays, { operation: 'getPayment', times });
    bank.injectFault({ name: 'status', status: 500 }, { operation: 'getPayment', times });
    const slow = Array.from({ length: times }, () => ask(gateway, 'read'));
    await bank.waitUntil(() => bank.requests.length === times);
    bank.injectFault(
      { name: 'status', status: 500 },
      { operation: 'listAuthorisations', times: minimumCalls },
    );
    const list = { method: 'GET', path: `${callOf.read.path}/authorisations` };
    for (let calls = 0; calls < minimumCalls; calls++) await call(gateway.url, list);
    assert.ok(loggedCircuitChanges(gateway).includes('read: closed > open'));
    await waitForCircuit(gateway, 'read', 'closed');
    bank.endDelays();
    for (const { status } of await Promise.all(slow)) assert.equal(status, 500);
    assert.equal((await circuitOf(gateway, 'read')).state, 'closed');
    assert.equal(
      loggedCircuitChanges(gateway).filter((change) => change === 'read: closed > open').length,
      1,
    );
  });
});
