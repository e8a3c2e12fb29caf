/** "Why was my call refused?" is answered by the instance that refused it, under the caller's X-Request-ID. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { RequestReport } from '../../src/telemetry/recent-requests.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { startBank, startGateway, startLine } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { startTlsBankProxy } from '../kit/tls-bank-proxy.ts';
import { until } from '../kit/within.ts';

type AdminListener = Parameters<typeof callAdminApi>[0];

/** What the gateway remembers of an id. */
async function reportsOf(door: AdminListener, id: string): Promise<readonly RequestReport[]> {
  const reply = await callAdminApi(door, 'GET', `/api/decisions/${id}`);
  assert.equal(reply.status, 200, reply.text);
  return jsonOf(reply) as unknown as readonly RequestReport[]; // its shape is the contract that these tests check
}

const withId = (id: string) => ({
  ...initiation,
  headers: [['X-Request-ID', id], ...initiation.headers] as const,
});

/** The steps of an account, without their times. */
const stepsOf = (account: RequestReport | undefined) =>
  account?.steps.map((step) =>
    Object.fromEntries(Object.entries(step).filter(([name]) => !name.endsWith('Ms'))),
  );

const whole = (account: RequestReport | undefined) =>
  account && { operation: account.operation, status: account.status, error: account.error };

test('a payment is told from the ledger to the bank, under its id in any letter case', async (t) => {
  const { gateway } = await startLine(t);
  const id = randomUUID();
  await call(gateway.url, withId(id));

  const [account, ...more] = await reportsOf(gateway, id.toUpperCase());
  assert.equal(more.length, 0);
  assert.deepEqual(stepsOf(account), [
    { what: 'ledger', verdict: 'claimed' },
    { what: 'environment', environment: 'sandbox', why: 'only-one' },
    { what: 'turn' },
    { what: 'call', attempt: 1, connection: 'new', status: 201 },
    { what: 'recorded', as: 'answered' },
  ]);
  const { at, xRequestId, durationMs, steps, ...rest } = account ?? assert.fail();
  assert.deepEqual(rest, {
    operation: 'initiatePayment',
    client: 'anonymous',
    tenant: 'anonymous',
    environment: 'sandbox',
    status: 201,
    servedFrom: 'bank',
  });
  assert.equal(xRequestId, id);
  assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
  const times = steps.map(({ afterMs }) => Number(afterMs));
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  );
  assert.ok(Number(durationMs) >= Number(times.at(-1)) - 0.1);
});

test('a repeat is another element, the newest first', async (t) => {
  const { gateway } = await startLine(t);
  const id = randomUUID();
  for (const _ of [1, 2]) await call(gateway.url, withId(id));
  const [repeat, first] = await reportsOf(gateway, id);
  assert.deepEqual(stepsOf(repeat), [{ what: 'ledger', verdict: 'replayed' }]);
  assert.deepEqual([repeat?.servedFrom, first?.servedFrom], ['ledger', 'bank']);
});

test('a refusal at the door is told, and so is one by an open circuit', async (t) => {
  const { bank, gateway } = await startLine(t, { circuit: { minimumCalls: 2 } });
  bank.injectFault({ name: 'status', status: 500 });
  const ids = Array.from({ length: 4 }, () => randomUUID());
  const [lost = '', one = '', two = '', three = ''] = ids;
  await call(gateway.url, { method: 'GET', path: '/nowhere', headers: [['X-Request-ID', lost]] });
  for (const id of [one, two, three])
    await call(gateway.url, { ...statusRead, headers: [['X-Request-ID', id]] });

  const [atTheDoor] = await reportsOf(gateway, lost);
  assert.deepEqual(whole(atTheDoor), { operation: null, status: 404, error: 'PATH_UNKNOWN' });
  assert.deepEqual(stepsOf(atTheDoor), []);
  const [refused] = await reportsOf(gateway, three);
  assert.deepEqual(whole(refused), { operation: 'getPaymentStatus', status: 503, error: 'CIRCUIT_OPEN' });
  assert.match(refused?.why ?? '', /nothing was sent/i);
  assert.deepEqual(stepsOf(refused)?.at(-1), { what: 'circuit-refused', state: 'open' });
});

test('a call whose connection was not made is told with its second attempt', async (t) => {
  const bank = await startBank(t);
  const door = await startTlsBankProxy(t, bank);
  const gateway = await startGateway(t, { environments: { sandbox: door.environment } });
  door.onNextConnection((socket) => socket.resetAndDestroy());
  const id = randomUUID();
  await call(gateway.url, withId(id));
  const steps = stepsOf((await reportsOf(gateway, id))[0]);
  assert.deepEqual(steps?.slice(3, -1), [
    { what: 'call', attempt: 1, connection: 'none', error: 'UPSTREAM_UNREACHED' },
    { what: 'retry', why: 'UPSTREAM_UNREACHED' },
    { what: 'call', attempt: 2, connection: 'new', status: 201 },
  ]);
});

test('an answer that comes late is added to what was told, counted, and has a line in the log', async (t) => {
  const deadlines = { connect: '200ms', status: '500ms', read: '500ms', write: '300ms' };
  const shaping = { maxWait: { write: '100ms', read: '100ms', status: '100ms' } };
  const { bank, gateway } = await startLine(t, { deadlines, shaping, idempotency: { wait: '50ms' } });
  bank.injectFault({ name: 'latency', ms: 600 }, { times: 1 });
  const id = randomUUID();
  assert.equal((await call(gateway.url, withId(id))).status, 504);
  const steps = async () => stepsOf((await reportsOf(gateway, id))[0]) ?? [];
  assert.deepEqual((await steps()).at(-1), { what: 'recorded', as: 'in-doubt' });

  await until(3_000, 'the late answer', async () => (await steps()).at(-1)?.what === 'late-answer');
  assert.deepEqual((await steps()).slice(-3), [
    { what: 'call', attempt: 1, connection: 'new', status: 201 },
    { what: 'recorded', as: 'answered' },
    { what: 'late-answer', status: 201 },
  ]);
  const line = gateway.logLines
    .map((text) => JSON.parse(text))
    .find(({ message }) => message === 'a late answer');
  assert.deepEqual([line?.level, line?.requestId, line?.status], ['warn', id, 201]);
  const { text } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
  assert.match(text, /^penstock_late_answers_total\{environment="sandbox",operation="initiatePayment"\} 1$/m);
});

test('of an id that was never seen nothing is told, and nobody without a token is told anything', async (t) => {
  const { gateway } = await startLine(t);
  const path = `/api/decisions/${randomUUID()}`;
  const unknown = await callAdminApi(gateway, 'GET', path);
  assert.equal(unknown.status, 404);
  assert.match(String(jsonOf(unknown).error), /remembers no request/);
  assert.equal((await call(gateway.adminUrl, { method: 'GET', path })).status, 401);
});

test('penstock explain prints it', async (t) => {
  const bank = await startBank(t);
  const served = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  const id = randomUUID();
  await call(served.url, withId(id));
  const command = served.run('explain', id);
  assert.equal(await command.exitCode(), 0, command.stderr());
  assert.match(command.stdout(), /initiatePayment by anonymous of anonymous in sandbox\n/);
  assert.match(command.stdout(), / ms {2}call +attempt=1 connection=new .*status=201\n/);
  assert.match(command.stdout(), /\n {2}answered 201, served from bank, after [\d.]+ ms\n$/);

  const none = served.run('explain', randomUUID());
  assert.equal(await none.exitCode(), 1);
  assert.match(none.stdout(), /remembers no request/);
});
