/** The contract guard judges what the TPP has sent and the bank gets, never what the gateway has written. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf, pairs } from '../kit/call.ts';
import { type Field, valuesOf } from '../kit/fields.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const apiKey = 'a-key';

async function start(t: TestContext, environment: object) {
  const bank = await startBank(t);
  const port = await freePort();
  const gateway = await startGateway(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11', ...environment } },
    clients: [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }],
    notifications: { publicUrl: `http://127.0.0.1:${port}/notifications`, listen: { port } },
    statusCache: { enabled: false },
  });
  const send = ({ headers = [], ...one }: Call, ...more: Field[]) =>
    call(gateway.url, { ...one, headers: [...headers, ['X-API-Key', apiKey], ...more] });
  return { bank, gateway, send };
}

/** The paths and rules of the deviations of requests, when so many requests were checked. */
async function deviationsOf(gateway: GatewayUnderTest, requests: number): Promise<readonly string[]> {
  let report: Readonly<Record<string, unknown>> = {};
  await until(
    5_000,
    () => JSON.stringify(report),
    async () => {
      report = jsonOf(await callAdminApi(gateway, 'GET', '/api/contract?direction=request'));
      return JSON.stringify(report).includes(`"checked":${requests},`);
    },
  );
  return (report.deviations as readonly { path: string; rule: string }[]) // our own answer
    .map(({ path, rule }) => `${path} ${rule}`);
}

const brokenUri: Field = ['TPP-Notification-URI', 'no uri'];

/** Everything that the gateway consumes, on top of the headers of the bank. */
const forTheGateway: readonly Field[] = [
  ['Penstock-Environment', 'sandbox'],
  ['Connection', 'close, X-Hop'],
  ['X-Hop', '1'],
  ['Keep-Alive', 'timeout=5'],
  ['TE', 'trailers'],
  ['X-Forwarded-For', '203.0.113.7'],
  ['Forwarded', 'for=203.0.113.7'],
  ['Idempotency-Key', randomUUID()],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
];

describe('headers of the gateway', () => {
  for (const requests of ['report', 'enforce'] as const)
    test(`are not judged in mode ${requests}, neither those that it consumes nor those that it writes to the bank`, async (t) => {
      const { bank, gateway, send } = await start(t, {
        bankNotifications: 'receive',
        contract: { requests, responses: 'off' },
      });
      const paid = await send(initiation, ...forTheGateway, brokenUri);
      assert.equal(paid.status, 201, paid.text);
      const [uri = ''] = valuesOf(pairs(bank.requests[0]?.rawHeaders ?? []), 'TPP-Notification-URI');
      assert.match(uri, /^http:\/\/127\.0\.0\.1:\d+\/notifications\//);
      const path = `${transfersPath}/${jsonOf(paid).paymentId}`;
      assert.equal((await send({ method: 'GET', path: `${path}/status` }, ...forTheGateway)).status, 200);
      assert.equal((await send({ method: 'DELETE', path }, ...forTheGateway, brokenUri)).status, 204);
      assert.deepEqual(await deviationsOf(gateway, 3), []);
    });
});

test('a header about notifications that the bank gets is judged', async (t) => {
  const enforced = await start(t, { contract: { requests: 'enforce', responses: 'off' } });
  const refused = await enforced.send(initiation, brokenUri);
  assert.equal(refused.header('Penstock-Error'), 'CONTRACT_VIOLATED');
  assert.match(refused.text, /headers\/TPP-Notification-URI \(format\)/);
  assert.equal(enforced.bank.requests.length, 0);

  const reported = await start(t, { contract: { requests: 'report', responses: 'off' } });
  assert.equal((await reported.send(initiation, brokenUri)).status, 201);
  assert.deepEqual(await deviationsOf(reported.gateway, 1), ['headers/TPP-Notification-URI format']);
});

test('a header that the gateway removes in one environment is judged for another one, whose bank gets it', async (t) => {
  const bank = await startBank(t);
  const contract = { requests: 'report', responses: 'off' };
  const common = { baseUrl: bank.baseUrl, standardVersion: '1.3.11', contract };
  const gateway = await startGateway(t, {
    environments: {
      active: 'sandbox',
      sandbox: { ...common, bankNotifications: 'off' },
      production: { ...common, baseUrl: `${bank.baseUrl}/psd2`, bankNotifications: 'forward' },
    },
  });
  const paid = await call(gateway.url, { ...initiation, headers: [...initiation.headers, brokenUri] });
  assert.equal(paid.status, 201, paid.text);
  assert.deepEqual(valuesOf(pairs(bank.requests[0]?.rawHeaders ?? []), 'TPP-Notification-URI'), []);
  assert.deepEqual(await deviationsOf(gateway, 1), []);
  const path = '/api/contract/compare?from=sandbox&to=production';
  const { text } = await callAdminApi(gateway, 'GET', path);
  assert.match(text, /"path":"headers\/TPP-Notification-URI","rule":"format"/);
});

test('a required header that the gateway writes itself is not demanded from the TPP', async (t) => {
  const contract = { responses: 'off', requireHeaders: { initiatePayment: ['TPP-Notification-URI'] } };
  const forwarding = await start(t, { contract });
  assert.equal((await forwarding.send(initiation)).header('Penstock-Error'), 'HEADER_MALFORMED');
  const receiving = await start(t, { contract, bankNotifications: 'receive' });
  assert.equal((await receiving.send(initiation)).status, 201);
});
