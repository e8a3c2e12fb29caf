/** The recent requests of an instance are reported by X-Request-ID: the admin API, and `penstock explain`. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { StoredRequest } from '../../src/telemetry/request-search.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { shortDeadlines, startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { startTlsBankProxy } from '../kit/tls-bank-proxy.ts';
import { until } from '../kit/within.ts';

type AdminListener = Parameters<typeof callAdminApi>[0];

/** The reports of the gateway for an id. */
async function reportsOf(gateway: AdminListener, id: string): Promise<readonly StoredRequest[]> {
  const reply = await callAdminApi(gateway, 'GET', `/api/decisions/${id}`);
  assert.equal(reply.status, 200, reply.text);
  return jsonOf(reply) as unknown as readonly StoredRequest[]; // its shape is the contract that these tests check
}

const withId = (id: string) => ({
  ...initiation,
  headers: [['X-Request-ID', id], ...initiation.headers] as const,
});

/** The steps of a report, without their times. */
const stepsOf = (report: StoredRequest | undefined) =>
  report?.steps.map((step) =>
    Object.fromEntries(Object.entries(step).filter(([name]) => !name.endsWith('Ms'))),
  );

const summaryOf = (report: StoredRequest | undefined) =>
  report && { operation: report.operation, status: report.status, error: report.error };

test('the report of a payment lists its steps from the ledger to the bank, and is found by its id in any letter case', async (t) => {
  const { gateway } = await startGatewayWithBank(t);
  const id = randomUUID();
  const paid = await call(gateway.url, withId(id));

  const [report, ...more] = await reportsOf(gateway, id.toUpperCase());
  assert.equal(more.length, 0);
  assert.deepEqual(stepsOf(report), [
    { what: 'ledger', verdict: 'claimed' },
    { what: 'environment', environment: 'sandbox', why: 'only-one' },
    { what: 'permit' },
    { what: 'call', attempt: 1, connection: 'new', status: 201 },
    { what: 'recorded', as: 'answered' },
  ]);
  const { at, xRequestId, durationMs, steps, instance, paymentId, ...rest } = report ?? assert.fail();
  assert.equal(paymentId, jsonOf(paid).paymentId);
  assert.deepEqual(rest, {
    operation: 'initiatePayment',
    client: 'anonymous',
    tenant: 'anonymous',
    environment: 'sandbox',
    product: 'payments/sepa-credit-transfers',
    status: 201,
    outcome: 'succeeded',
    servedFrom: 'bank',
  });
  assert.equal(xRequestId, id);
  assert.match(instance, /^[\w-]+$/);
  assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
  const times = steps.map(({ afterMs }) => Number(afterMs));
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  );
  assert.ok(Number(durationMs) >= Number(times.at(-1)) - 0.1);
});

test('a repeated request has its own report, before that of the first one', async (t) => {
  const { gateway } = await startGatewayWithBank(t);
  const id = randomUUID();
  for (const _ of [1, 2]) await call(gateway.url, withId(id));
  const [repeat, first] = await reportsOf(gateway, id);
  assert.deepEqual(stepsOf(repeat), [{ what: 'ledger', verdict: 'replayed' }]);
  assert.deepEqual([repeat?.servedFrom, first?.servedFrom], ['ledger', 'bank']);
});

test('a request refused by the listener and one refused by an open circuit have reports', async (t) => {
  const { bank, gateway } = await startGatewayWithBank(t, { circuit: { minimumCalls: 2 } });
  bank.injectFault({ name: 'status', status: 500 });
  const ids = Array.from({ length: 4 }, () => randomUUID());
  const [unknownPath = '', one = '', two = '', three = ''] = ids;
  await call(gateway.url, { method: 'GET', path: '/nowhere', headers: [['X-Request-ID', unknownPath]] });
  for (const id of [one, two, three])
    await call(gateway.url, { ...statusRead, headers: [['X-Request-ID', id]] });

  const [byListener] = await reportsOf(gateway, unknownPath);
  assert.deepEqual(summaryOf(byListener), { operation: null, status: 404, error: 'PATH_UNKNOWN' });
  assert.deepEqual(stepsOf(byListener), []);
  const [refused] = await reportsOf(gateway, three);
  assert.deepEqual(summaryOf(refused), { operation: 'getPaymentStatus', status: 503, error: 'CIRCUIT_OPEN' });
  assert.match(refused?.why ?? '', /nothing was sent/i);
  assert.deepEqual(stepsOf(refused)?.at(-1), { what: 'circuit-refused', state: 'open' });
});

test('the report of a call whose connection failed lists both attempts', async (t) => {
  const bank = await startBank(t);
  const proxy = await startTlsBankProxy(t, bank);
  const gateway = await startGateway(t, { environments: { sandbox: proxy.environment } });
  proxy.onNextConnection((socket) => socket.resetAndDestroy());
  const id = randomUUID();
  await call(gateway.url, withId(id));
  const steps = stepsOf((await reportsOf(gateway, id))[0]);
  assert.deepEqual(steps?.slice(3, -1), [
    { what: 'call', attempt: 1, connection: 'none', error: 'UPSTREAM_UNREACHED' },
    { what: 'retry', why: 'UPSTREAM_UNREACHED' },
    { what: 'call', attempt: 2, connection: 'new', status: 201 },
  ]);
});

test('a late response of the bank is added to the report, counted and logged', async (t) => {
  const { bank, gateway } = await startGatewayWithBank(t, shortDeadlines);
  bank.injectFault({ name: 'latency', ms: 600_000 }, { times: 1 });
  const id = randomUUID();
  assert.equal((await call(gateway.url, withId(id))).status, 504);
  const steps = async () => stepsOf((await reportsOf(gateway, id))[0]) ?? [];
  assert.deepEqual((await steps()).at(-1), { what: 'recorded', as: 'in-doubt' });

  bank.endDelays();
  await until(3_000, 'the late answer', async () => (await steps()).at(-1)?.what === 'late-answer');
  assert.deepEqual((await steps()).slice(-3), [
    { what: 'call', attempt: 1, connection: 'new', status: 201 },
    { what: 'recorded', as: 'answered' },
    { what: 'late-answer', status: 201 },
  ]);
  const line = gateway.logLines
    .map((text) => JSON.parse(text))
    .find(({ message }) => message === 'late response');
  assert.deepEqual([line?.level, line?.requestId, line?.status], ['warn', id, 201]);
  const { text } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
  assert.match(text, /^penstock_late_answers_total\{environment="sandbox",operation="initiatePayment"\} 1$/m);
});

test('a request that is still running has a report with the steps so far', async (t) => {
  const { bank, gateway } = await startGatewayWithBank(t);
  bank.injectFault({ name: 'latency', ms: 600_000 }, { times: 1 });
  const id = randomUUID();
  const answer = call(gateway.url, withId(id));
  const isSent = async () => (await callAdminApi(gateway, 'GET', `/api/decisions/${id}`)).status === 200;
  await until(5_000, 'the request runs', isSent);
  const lastStep = async () => stepsOf((await reportsOf(gateway, id))[0])?.at(-1)?.what;
  await until(5_000, 'the request has its permit', async () => (await lastStep()) === 'permit');
  const [running] = await reportsOf(gateway, id);
  assert.deepEqual(
    [running?.status, running?.outcome, running?.operation, running?.environment],
    [null, 'running', 'initiatePayment', 'sandbox'],
  );
  bank.endDelays();
  assert.equal((await answer).status, 201);
  const [ended, ...others] = await reportsOf(gateway, id);
  assert.deepEqual([ended?.status, ended?.outcome, others.length], [201, 'succeeded', 0]);
});

test('an unknown id has no report, and the reports require a token', async (t) => {
  const { gateway } = await startGatewayWithBank(t);
  const path = `/api/decisions/${randomUUID()}`;
  const unknown = await callAdminApi(gateway, 'GET', path);
  assert.equal(unknown.status, 404);
  assert.match(String(jsonOf(unknown).error), /No instance has a record of this X-Request-ID/);
  assert.equal((await call(gateway.adminUrl, { method: 'GET', path })).status, 401);
});

test('penstock explain prints the report of a request', async (t) => {
  const bank = await startBank(t);
  const served = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  const id = randomUUID();
  await call(served.url, withId(id));
  const command = served.run('explain', id);
  assert.equal(await command.exitCode(), 0, command.stderr());
  assert.match(command.stdout(), /initiatePayment by anonymous of anonymous in sandbox on [\w-]+\n/);
  assert.match(command.stdout(), / ms {2}call +attempt=1 connection=new .*status=201\n/);
  assert.match(command.stdout(), /\n {2}answered 201, served from bank, after [\d.]+ ms\n$/);

  const none = served.run('explain', randomUUID());
  assert.equal(await none.exitCode(), 1);
  assert.match(none.stderr(), /No instance has a record of this X-Request-ID/);
});
