/** A tenant whose payments the bank answers with 500 loses its own circuit, and the other tenants notice nothing. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { circuitOf } from '../kit/circuits.ts';
import { type GatewayUnderTest, startGateway } from '../kit/gateway.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { initiation } from '../kit/request.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

const minimumCalls = 5;
const tenants = Array.from({ length: 10 }, (_, index) => `tenant-${index}`);
const [poisoned = '', ...others] = tenants;

/** A gateway with ten tenants, and a bank that fails the payments of one of them, or all while `isDown`. */
async function startTenants(t: TestContext, openFor = '1min') {
  const bank = { isDown: false };
  const { baseUrl, requests, close } = await startStubBank(t, ({ method, header }) => {
    const isProbe = method === 'GET';
    if (isProbe) return {};
    if (bank.isDown || header('x-payer') === poisoned) return { status: 500 };
    return { status: 201, body: JSON.stringify({ paymentId: header('x-request-id') }) };
  });
  const gateway = await startGateway(t, {
    environments: { active: 'sandbox', sandbox: { baseUrl } },
    circuit: { minimumCalls, openFor },
    clients: tenants.map((tenant) => ({
      name: tenant,
      tenant,
      apiKeySha256: createHash('sha256').update(tenant).digest('hex'),
    })),
  });
  return { bank, gateway, requests, closeBank: close };
}

/** @returns the status, or the gateway's error code */
async function pay({ url }: GatewayUnderTest, tenant: string): Promise<string> {
  const headers = [...initiation.headers, ['X-API-Key', tenant], ['X-Payer', tenant]] as const;
  const { status, header } = await call(url, { ...initiation, headers });
  return header('Penstock-Error') ?? String(status);
}

async function payInTurn(gateway: GatewayUnderTest, payers: readonly string[], times: number) {
  const answers: string[] = [];
  for (let count = 0; count < times; count++)
    for (const payer of payers) answers.push(await pay(gateway, payer));
  return answers;
}

const distinct = (answers: readonly string[]) => [...new Set(answers)];

test('every payment of nine tenants is accepted while the bank fails each payment of a tenth one', async (t) => {
  const { gateway, requests } = await startTenants(t, '100ms');
  const answers: string[] = [];
  for (let round = 0; round < 10; round++) {
    await payInTurn(gateway, [poisoned], 3);
    answers.push(...(await payInTurn(gateway, others, 1)));
  }
  assert.deepEqual(distinct(answers), ['201']);
  assert.ok(requests.filter(({ header }) => header('x-payer') === poisoned).length < 30);

  const circuit = await circuitOf(gateway, 'write');
  assert.equal(circuit.state, 'closed');
  assert.deepEqual(
    circuit.tenants.map(({ tenant }) => tenant),
    [poisoned],
  );
  const changes = gateway.logLines
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message === 'circuit state changed');
  assert.deepEqual(distinct(changes.map(({ tenant }) => tenant)), [poisoned]);
});

test('a hold of operators concerns all tenants, and the metrics count those whose circuit is open', async (t) => {
  const { gateway } = await startTenants(t);
  await payInTurn(gateway, others, 1);
  const hold = { hold: 'open', reason: 'maintenance', for: '10min' };
  await payInTurn(gateway, [poisoned], minimumCalls);
  const metrics = parsePrometheus((await callAdminApi(gateway, 'GET', '/metrics')).text);
  const sample = metrics.get('penstock_circuit_open_tenants')?.samples[0];
  assert.deepEqual([sample?.labels, sample?.value], [{ environment: 'sandbox', lane: 'write' }, 1]);
  await callAdminApi(gateway, 'PUT', '/api/circuits/sandbox/write', hold);
  assert.deepEqual(distinct(await payInTurn(gateway, tenants, 1)), ['CIRCUIT_OPEN']);
});

test('a bank that fails for all tenants receives the payments that open the circuit, and one trial of each further tenant', async (t) => {
  const { bank, gateway, requests } = await startTenants(t, '100ms');
  bank.isDown = true;
  const answers = await payInTurn(gateway, tenants, 1);
  assert.deepEqual(answers.slice(0, minimumCalls), Array(minimumCalls).fill('500'));
  assert.equal((await circuitOf(gateway, 'write')).reason, '5 of 5 calls of 5 tenants failed');
  const trials = tenants.length - minimumCalls;
  assert.equal(requests.filter(({ method }) => method === 'POST').length, minimumCalls + trials);
  bank.isDown = false;
  await until(10_000, 'every tenant may pay again', async () => {
    const circuit = await circuitOf(gateway, 'write');
    return circuit.tenants.every(({ state }) => state === 'probation');
  });
  assert.deepEqual(distinct(await payInTurn(gateway, others, 1)), ['201']);
  assert.equal((await circuitOf(gateway, 'write')).state, 'closed');
});

test('a bank to which no connection can be made is not tried by the tenants that made no call before', async (t) => {
  const { gateway, closeBank } = await startTenants(t);
  await closeBank();
  await payInTurn(gateway, [poisoned], minimumCalls);
  assert.deepEqual(distinct(await payInTurn(gateway, others, 1)), ['CIRCUIT_OPEN']);
});
