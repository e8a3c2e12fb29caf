/** Look-ups follow the id of the tenant: through a rename, and never to another tenant. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { createMemoryState } from '../../src/state/memory.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { selfService } from '../kit/look-up.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { change } from '../kit/tenants.ts';
import { until } from '../kit/within.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** A client of a tenant; its API key is named after `key`. */
const client = (tenant: string, key: string) => ({
  name: `${tenant}-${key}`,
  tenant,
  apiKeySha256: sha256(`key of ${key}`),
});

/** A gateway whose clients change, on one state. */
async function start(t: TestContext, clients: readonly object[]) {
  const bank = await startBank(t);
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...selfService };
  const state = createMemoryState();
  const gateway = await startGateway(t, { ...sections, clients }, state);
  return { gateway, reload: (more: Sections) => gateway.reload({ ...sections, ...more }) };
}

const send = ({ url }: GatewayUnderTest, key: string, requestId: string): Promise<Reply> =>
  call(url, { ...initiation, requestId, headers: [...initiation.headers, ['X-API-Key', `key of ${key}`]] });

const lookUp = ({ url }: GatewayUnderTest, key: string, requestId: string): Promise<Reply> =>
  call(url, { method: 'GET', path: `/requests/${requestId}`, headers: [['X-API-Key', `key of ${key}`]] });

/** The payments and the number of requests that a client finds. */
async function findings(gateway: GatewayUnderTest, key: string, requestId: string) {
  const reply = await lookUp(gateway, key, requestId);
  if (reply.status === 404) return 'nothing';
  assert.equal(reply.status, 200, reply.text);
  const { initiation: outcome, requests } = JSON.parse(reply.text);
  return `${requests.length} of ${outcome?.paymentId}`;
}

const assertUnknown = (reply: Reply) => assertRefused(reply, 404, 'REQUEST_UNKNOWN', 'RESOURCE_UNKNOWN');

test('a renamed tenant finds its requests, and operators find them under each of its names', async (t) => {
  const { gateway, reload } = await start(t, [client('acme', 'one')]);
  const requestId = randomUUID();
  const paymentId = jsonOf(await send(gateway, 'one', requestId)).paymentId;
  await change(gateway, 'tenants/acme/rename', 'beta');
  await reload({ clients: [client('beta', 'one'), client('other', 'two')] });
  assert.equal(await findings(gateway, 'one', requestId), `1 of ${paymentId}`);
  assertUnknown(await lookUp(gateway, 'two', requestId));

  const own = jsonOf(await send(gateway, 'two', requestId)).paymentId;
  assert.notEqual(own, paymentId);
  assert.equal(await findings(gateway, 'two', requestId), `1 of ${own}`);
  assert.equal(await findings(gateway, 'one', requestId), `1 of ${paymentId}`);
  const tenantsFound = async (tenant: string) => {
    const { text } = await callAdminApi(
      gateway,
      'GET',
      `/api/search?requestId=${requestId}&tenant=${tenant}`,
    );
    return JSON.parse(text).requests.map((one: { tenant: string }) => one.tenant);
  };
  for (const name of ['acme', 'beta']) assert.deepEqual(await tenantsFound(name), ['beta']);
  assert.deepEqual(await tenantsFound('other'), ['other']);
});

test('a client that works for another tenant does not find its former requests, and the former tenant does', async (t) => {
  const { gateway, reload } = await start(t, [client('shop', 'one'), client('shop', 'two')]);
  const requestId = randomUUID();
  const paymentId = jsonOf(await send(gateway, 'two', requestId)).paymentId;
  await change(gateway, 'clients/shop-two/move-credential', 'till');
  await reload({ clients: [client('shop', 'one'), client('till', 'two')] });
  assertUnknown(await lookUp(gateway, 'two', requestId));
  assert.equal(await findings(gateway, 'one', requestId), `1 of ${paymentId}`);
});

test('requests of a time in which the tenants were not known are shown to operators, and to no tenant', async (t) => {
  const bank = await startBank(t);
  const database = createFaultyDatabase(await newGatewayDatabase(t));
  database.fail('before', /tenant_name/);
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...selfService };
  const gateway = await startGateway(t, { ...sections, clients: [client('acme', 'one')] }, { database });
  const requestId = randomUUID();
  const path = `${transfersPath}/unknown/status`;
  const headers = [['X-API-Key', 'key of one']] as const;
  const refused = await call(gateway.url, { method: 'GET', path, requestId, headers });
  assert.equal(refused.header('Penstock-Error'), 'STATE_UNAVAILABLE');
  assertRefused(await lookUp(gateway, 'one', requestId), 503, 'STATE_UNAVAILABLE', 'SERVICE_UNAVAILABLE');
  database.recover();
  let reply = await lookUp(gateway, 'one', requestId);
  await until(20_000, 'the tenants are known', async () => {
    reply = await lookUp(gateway, 'one', requestId);
    return reply.status === 404;
  });
  assertUnknown(reply);
  const { text } = await callAdminApi(gateway, 'GET', `/api/search?requestId=${requestId}&tenant=acme`);
  assert.deepEqual(
    JSON.parse(text).requests.map((one: { tenant: string; error: string }) => [one.tenant, one.error]),
    [['acme', 'STATE_UNAVAILABLE']],
  );
});
