/** Look-ups follow the identity of the tenant: through a rename and a merge, and never to a new tenant with an old name. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { createMemoryState } from '../../src/state/memory.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { createFailingState } from '../kit/failing-state.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { selfService } from '../kit/look-up.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, transfersPath } from '../kit/request.ts';
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

test('a renamed tenant finds its requests, and a new tenant with the former name does not', async (t) => {
  const { gateway, reload } = await start(t, [client('acme', 'one')]);
  const requestId = randomUUID();
  const paymentId = jsonOf(await send(gateway, 'one', requestId)).paymentId;
  await reload({ clients: [client('beta', 'one')], tenants: { beta: { formerly: ['acme'] } } });
  assert.equal(await findings(gateway, 'one', requestId), `1 of ${paymentId}`);
  await reload({ clients: [client('beta', 'one'), client('acme', 'two')] });
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
  assert.deepEqual(await tenantsFound('beta'), ['beta'], 'operators find the requests by the new name');
  assert.deepEqual(await tenantsFound('acme'), ['acme']);
});

test('a new tenant with the name of a retired one does not find its requests', async (t) => {
  const { gateway, reload } = await start(t, [client('acme', 'one')]);
  const requestId = randomUUID();
  await send(gateway, 'one', requestId);
  await reload({ clients: [client('other', 'two')], tenants: { retired: ['acme'] } });
  await reload({ clients: [client('other', 'two'), client('acme', 'three')] });
  for (const key of ['two', 'three']) assertUnknown(await lookUp(gateway, key, requestId));
  assert.equal((await lookUp(gateway, 'one', requestId)).status, 401);
});

test('a merged tenant finds the requests of all tenants that it consists of', async (t) => {
  const { gateway, reload } = await start(t, [client('shop', 'one'), client('till', 'two')]);
  const ids = { one: randomUUID(), two: randomUUID() };
  const paid = {
    one: jsonOf(await send(gateway, 'one', ids.one)).paymentId,
    two: jsonOf(await send(gateway, 'two', ids.two)).paymentId,
  };
  assertUnknown(await lookUp(gateway, 'one', ids.two));
  await reload({
    clients: [client('shop', 'one'), client('shop', 'two')],
    tenants: { shop: { formerly: ['till'] } },
  });
  for (const key of ['one', 'two'])
    for (const first of ['one', 'two'] as const)
      assert.equal(await findings(gateway, key, ids[first]), `1 of ${paid[first]}`);
});

test('requests of a time in which the tenants were not known are shown to operators, and to no tenant', async (t) => {
  const bank = await startBank(t);
  const state = createFailingState();
  state.fail();
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...selfService };
  const gateway = await startGateway(t, { ...sections, clients: [client('acme', 'one')] }, state);
  const requestId = randomUUID();
  const path = `${transfersPath}/unknown/status`;
  const headers = [['X-API-Key', 'key of one']] as const;
  const refused = await call(gateway.url, { method: 'GET', path, requestId, headers });
  assert.equal(refused.header('Penstock-Error'), 'STATE_UNAVAILABLE');
  assertRefused(await lookUp(gateway, 'one', requestId), 503, 'STATE_UNAVAILABLE', 'SERVICE_UNAVAILABLE');
  state.recover();
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
