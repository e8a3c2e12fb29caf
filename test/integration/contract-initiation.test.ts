/** A request for a payment must name the service and the product with which the payment was initiated. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Method } from '../kit/call.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const prefix = '/berlingroup/v1';
const calls: readonly (readonly [Method, suffix: string])[] = [
  ['GET', ''],
  ['GET', '/status'],
  ['GET', '/authorisations'],
  ['GET', '/authorisations/1'],
  ['POST', '/authorisations'],
  ['POST', '/cancellation-authorisations'],
  ['DELETE', ''],
];

/** Two banks, and a gateway on a state that others share. */
async function start(t: TestContext, requests: 'report' | 'enforce', state: State = createMemoryState()) {
  const banks = { sandbox: await startBank(t), production: await startBank(t) };
  const contract = { requests, responses: 'off' };
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: banks.sandbox.baseUrl, standardVersion: '1.3.11', contract },
      production: { baseUrl: banks.production.baseUrl, standardVersion: '1.3.6', contract },
    },
  };
  const gateway = await startGateway(t, sections, state);
  return {
    ...banks,
    sections,
    gateway,
    async pay(environment = 'sandbox') {
      const headers = [...initiation.headers, ['Penstock-Environment', environment] as const];
      return String(jsonOf(await call(gateway.url, { ...initiation, headers })).paymentId);
    },
  };
}

/** @returns the code and the text of the answer */
async function ask(url: string, method: Method, path: string, environment?: string) {
  const headers = environment === undefined ? [] : [['Penstock-Environment', environment] as const];
  const reply = await call(url, { method, path: `${prefix}/${path}`, headers });
  return { code: reply.header('Penstock-Error'), text: reply.text };
}

describe('a request with another product than the initiation, where the contract is enforced', () => {
  test('is refused for each operation before anything is sent, on every instance and after a restart', async (t) => {
    const state = createMemoryState();
    const { sandbox, gateway, sections, pay } = await start(t, 'enforce', state);
    const id = await pay();
    const reached = sandbox.requests.length;
    for (const { url } of [gateway, await startGateway(t, sections, state)])
      for (const [method, suffix] of calls) {
        const { code, text } = await ask(
          url,
          method,
          `payments/instant-sepa-credit-transfers/${id}${suffix}`,
        );
        assert.equal(code, 'CONTRACT_VIOLATED', `${method} ${suffix}: ${text}`);
        assert.match(text, /path\/payment-product \(path\)/);
        assert.doesNotMatch(text, /instant/);
      }
    assert.equal(sandbox.requests.length, reached);

    const service = await ask(gateway.url, 'GET', `bulk-payments/sepa-credit-transfers/${id}/status`);
    assert.equal(service.code, 'CONTRACT_VIOLATED');
    assert.match(service.text, /path\/payment-service \(path\)/);
    for (const [method, suffix] of calls) {
      const { code, text } = await ask(gateway.url, method, `payments/sepa-credit-transfers/${id}${suffix}`);
      assert.equal(code, undefined, `${method} ${suffix}: ${text}`);
    }
  });

  test('is compared with the payment of its own environment if two banks have given the same id', async (t) => {
    const { sandbox, production, gateway, pay } = await start(t, 'enforce');
    for (const bank of [sandbox, production]) bank.nextPaymentId('same');
    await pay();
    const headers = [...initiation.headers, ['Penstock-Environment', 'production'] as const];
    const path = `${prefix}/payments/instant-sepa-credit-transfers`;
    assert.equal((await call(gateway.url, { ...initiation, path, headers })).status, 201);
    const askFor = async (product: string, environment: string) =>
      (await ask(gateway.url, 'GET', `payments/${product}/same/status`, environment)).code;
    assert.equal(await askFor('sepa-credit-transfers', 'sandbox'), undefined);
    assert.equal(await askFor('sepa-credit-transfers', 'production'), 'CONTRACT_VIOLATED');
    assert.equal(await askFor('instant-sepa-credit-transfers', 'production'), undefined);
    assert.equal(await askFor('instant-sepa-credit-transfers', 'sandbox'), 'CONTRACT_VIOLATED');
  });

  test('is refused for the payments of this instance if there is only one environment', async (t) => {
    const bank = await startBank(t);
    const contract = { requests: 'enforce', responses: 'off' };
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11', contract } },
    });
    const id = String(jsonOf(await call(gateway.url, initiation)).paymentId);
    const other = await ask(gateway.url, 'DELETE', `payments/instant-sepa-credit-transfers/${id}`);
    assert.equal(other.code, 'CONTRACT_VIOLATED', other.text);
    assert.equal((await ask(gateway.url, 'DELETE', `payments/sepa-credit-transfers/${id}`)).code, undefined);
  });
});

test('a request with another product than the initiation is sent and reported, where the contract is not enforced', async (t) => {
  const { sandbox, gateway, pay } = await start(t, 'report');
  const id = await pay();
  const reached = sandbox.requests.length;
  const reply = await call(gateway.url, {
    method: 'GET',
    path: `${transfersPath.replace('sepa', 'instant-sepa')}/${id}/status`,
  });
  assert.equal(reply.header('Penstock-Error'), undefined, reply.text);
  assert.equal(sandbox.requests.length, reached + 1);
  let report = '';
  await until(
    5_000,
    () => report,
    async () => {
      report = (await callAdminApi(gateway, 'GET', '/api/contract?level=harmful')).text;
      return report.includes('path/payment-product');
    },
  );
  assert.doesNotMatch(report, /instant/);
});
