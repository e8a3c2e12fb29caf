import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, callOnce } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { initiation } from '../kit/request.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until, within } from '../kit/within.ts';

test('payments of a tenant are sent while all concurrency slots of another tenant are in use', async (t) => {
  const share = 8; // of ten slots
  const release = Promise.withResolvers<void>();
  const bank = await startStubBank(t, async () => {
    if (bank.requests.length <= share) await release.promise;
    return {
      status: 201,
      headers: [['Content-Type', 'application/json']],
      body: '{"transactionStatus":"RCVD"}',
    };
  });
  t.after(() => release.resolve()); // before the gateway waits for its calls
  const gateway = await startGateway(t, {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } },
    clients: clientSettings(),
    shaping: { maxConcurrent: 10 },
  });
  const pay = (client: ClientName) =>
    call(gateway.url, { ...initiation, headers: [...initiation.headers, ['X-API-Key', apiKeyOf(client)]] });

  const hanging = Array.from({ length: 12 }, () => pay('rival'));
  await until(5_000, 'the bank has the calls of one share', () => bank.requests.length === share);
  for (let count = 0; count < 3; count++)
    assert.equal((await within(8_000, 'an answer', pay('shop'))).status, 201);

  assert.equal(bank.requests.length, share + 3);
  const metrics = await callOnce(gateway.adminUrl, { method: 'GET', path: '/metrics' });
  assert.equal(parsePrometheus(metrics.text).get('penstock_tenants_at_limit')?.samples[0]?.value, 1);
  release.resolve();
  for (const { status } of await Promise.all(hanging)) assert.equal(status, 201);
});
