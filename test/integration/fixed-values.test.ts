/** Portal keys and parameters that the gateway adds to every request to an environment, and to no other. */

import assert from 'node:assert/strict';
import { hash, verify, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi, readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { waitForCircuit } from '../kit/circuits.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { createAuthority } from '../kit/openssl.ts';
import { startOtlpCollector } from '../kit/otlp-collector.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubBank, type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const apiKey = 'canary-key-of-the-shop';

/** A bank whose answers the test decides. */
async function startPortal(t: TestContext) {
  const answers = { status: 'RCVD', failing: false };
  let payments = 0;
  const bank = await startStubBank(t, ({ method, path }) => {
    if (path.startsWith('/psd2/?') || path === '/psd2/') return { status: answers.failing ? 503 : 200 };
    if (answers.failing) return { status: 503 };
    if (method !== 'POST') return statusResponse(answers.status);
    return { ...statusResponse('RCVD', { paymentId: `${++payments}` }), status: 201 };
  });
  return { bank, answers };
}

const keysAt = ({ requests }: StubBank) => requests.map(({ header }) => header('web-api-key'));

async function start(t: TestContext, more: object = {}) {
  const [sandbox, production] = [await startPortal(t), await startPortal(t)];
  const folder = temporaryFolder(t);
  const keyFiles = { sandbox: join(folder, 'sandbox'), production: join(folder, 'production') };
  writeFileSync(keyFiles.sandbox, 'canary-sandbox\n');
  writeFileSync(keyFiles.production, 'canary-production');
  const environmentAt = ({ bank }: typeof sandbox, file: string) => ({
    baseUrl: `${bank.baseUrl}/psd2`,
    headers: { 'Web-API-Key': { file } },
    query: { bic: { file }, 'app id': 'a&b' },
    contract: { requests: 'report' },
  });
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: environmentAt(sandbox, keyFiles.sandbox),
      production: environmentAt(production, keyFiles.production),
    },
    clients: [{ name: 'shop', apiKeySha256: hash('sha256', apiKey, 'hex') }],
    statusCache: { pendingTtl: '200ms', pendingTtlMax: '200ms' },
    circuit: { minimumCalls: 1, failureRate: '1%', openFor: '1s' },
    ...more,
  };
  const gateway = await startGateway(t, sections);
  const send = (one: Call) =>
    call(gateway.url, {
      ...one,
      headers: [
        ...(one.headers ?? []),
        ['X-API-Key', apiKey],
        ['web-api-key', 'of-the-tpp'],
        ['WEB-API-KEY', 'of-the-tpp again'],
      ],
    });
  const pay = async () => String(jsonOf(await send(initiation)).paymentId);
  const readStatus = (id: string, headers: Call['headers'] = []) =>
    send({ method: 'GET', path: `${transfersPath}/${id}/status`, headers });
  return { sandbox, production, gateway, sections, keyFiles, send, pay, readStatus };
}

/** Each request has its own key, in the field and in the query, and nothing of the TPP and the other environment. */
function assertOwnKeys({ requests }: StubBank, key: string): void {
  assert.ok(requests.length > 0);
  for (const { path, header } of requests) {
    assert.equal(header('web-api-key'), key, path);
    assert.match(path, new RegExp(`\\?bic=${key}&app%20id=a%26b$`));
    assert.equal(header('x-api-key'), '');
  }
}

const isProbe = ({ path }: StubRequest) => path.startsWith('/psd2/?');

describe('the key of an environment', () => {
  test('goes to its bank with payments, reads and polls, in place of the field of the TPP', async (t) => {
    const { sandbox, production, pay, readStatus } = await start(t);
    const id = await pay();
    await readStatus(id);
    const waiting = readStatus(id, [['Prefer', 'wait=50']]);
    await until(20_000, 'the gateway polls the bank', () => sandbox.bank.requests.length >= 5);
    sandbox.answers.status = 'ACSC';
    assert.equal(jsonOf(await waiting).transactionStatus, 'ACSC');
    assertOwnKeys(sandbox.bank, 'canary-sandbox');
    assert.equal(production.bank.requests.length, 0);
  });

  test('goes to its bank below the path of the environment, in place of the parameter of the TPP', async (t) => {
    const { bank } = await startPortal(t);
    const pathVersion = { default: 'v2', getPaymentStatus: '' };
    const sandbox = { baseUrl: `${bank.baseUrl}/hub`, segment: 'x/7015', pathVersion, query: { bic: 'OWN' } };
    const { url } = await startGateway(t, { environments: { sandbox } });
    await call(url, { ...initiation, path: `${transfersPath}?BIC=TPP&a=%c3%bc;b&%62ic=TPP` });
    await call(url, { method: 'GET', path: `${transfersPath}/1/status?%62ic=OWN` });
    assert.deepEqual(
      bank.requests.map(({ path }) => path),
      [
        '/hub/x/7015/v2/payments/sepa-credit-transfers?a=%c3%bc;b&bic=OWN',
        '/hub/x/7015/payments/sepa-credit-transfers/1/status?%62ic=OWN',
      ],
    );
  });

  test('goes to its bank with the probe of an open circuit', async (t) => {
    const { sandbox, gateway, pay, readStatus } = await start(t);
    const id = await pay();
    sandbox.answers.failing = true;
    await readStatus(id);
    await waitForCircuit(gateway, 'status', 'open');
    sandbox.answers.failing = false;
    await until(20_000, 'the gateway probes the bank', () => sandbox.bank.requests.some(isProbe));
    assertOwnKeys(sandbox.bank, 'canary-sandbox');
  });

  test('goes to its bank with the pre-flight of a switch, and stays there', async (t) => {
    const { sandbox, production, gateway, pay, readStatus } = await start(t);
    const id = await pay();
    await switchEnvironment(gateway, 'production');
    assert.deepEqual(production.bank.requests.map(isProbe), [true]);
    const next = await pay();
    await readStatus(id, [['Penstock-Environment', 'sandbox']]);
    await readStatus(next, [['Penstock-Environment', 'production']]);
    assert.deepEqual([sandbox.bank.requests.length, production.bank.requests.length], [2, 3]);
    assertOwnKeys(sandbox.bank, 'canary-sandbox');
    assertOwnKeys(production.bank, 'canary-production');
  });

  test('is read again at a reload of the same settings, and the old one stays if it cannot be used', async (t) => {
    const { sandbox, gateway, sections, keyFiles, pay } = await start(t);
    await pay();
    writeFileSync(keyFiles.sandbox, 'canary-next');
    await pay();
    await gateway.reload(sections);
    await pay();
    writeFileSync(keyFiles.sandbox, 'canary-broken\n\n');
    await assert.rejects(gateway.reload(sections), (error: Error) => {
      assert.match(
        error.message,
        /^environments\.sandbox\.headers\.Web-API-Key\.file: the file .* contains a line break/,
      );
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
    await pay();
    const [first, next] = ['canary-sandbox', 'canary-next'];
    assert.deepEqual(keysAt(sandbox.bank), [first, first, next, next]);
  });

  test('is covered by the signature of the gateway if signing.headers names it, in place of the field of the TPP', async (t) => {
    const authority = createAuthority(scopeOfAllTests());
    const { cert, certFile, keyFile } = authority.issue('qseal', { key: 'rsa' });
    const { bank } = await startPortal(t);
    const gateway = await startGateway(t, {
      environments: {
        sandbox: {
          baseUrl: bank.baseUrl,
          signing: { certFile, keyFile, headers: ['(request-target)', 'web-api-key', 'digest'] },
          headers: { 'Web-API-Key': 'of-the-portal', 'X-BIC': 'A' },
          query: { bic: 'A' },
        },
      },
    });
    await call(gateway.url, {
      ...initiation,
      headers: [...initiation.headers, ['web-api-key', 'of-the-tpp']],
    });
    const { path, header } = bank.requests[0] ?? assert.fail('no request arrived');
    const [, names, signature = ''] =
      /headers="([^"]+)",signature="([^"]+)"$/.exec(header('signature')) ?? assert.fail(header('signature'));
    assert.equal(names, '(request-target) web-api-key digest', 'a field that is not named is not covered');
    const signed = `(request-target): post ${path}\nweb-api-key: of-the-portal\ndigest: ${header('digest')}`;
    assert.match(path, /\?bic=A$/);
    assert.ok(
      verify(
        'sha256',
        Buffer.from(signed),
        new X509Certificate(cert).publicKey,
        Buffer.from(signature, 'base64'),
      ),
    );
  });

  test('may have the field that identifies the clients of the gateway', async (t) => {
    const { bank } = await startPortal(t);
    const clients = [{ name: 'shop', apiKeySha256: hash('sha256', apiKey, 'hex') }];
    const headers = { 'x-api-key': 'portal' };
    const gateway = await startGateway(t, {
      clients,
      environments: { sandbox: { baseUrl: bank.baseUrl, headers } },
    });
    const paid = await call(gateway.url, {
      ...initiation,
      headers: [...initiation.headers, ['X-API-Key', apiKey]],
    });
    assert.equal(paid.status, 201);
    assert.deepEqual(
      bank.requests.map(({ header }) => header('x-api-key')),
      ['portal'],
    );
  });

  test('appears in no log line, record, trace, or answer of the admin API', async (t) => {
    const collector = await startOtlpCollector(t);
    const { gateway, sandbox, sections, keyFiles, send, pay, readStatus } = await start(t, {
      tracing: { otlpUrl: collector.url, sample: '100%' },
      state: { file: join(temporaryFolder(t), 'state.db') },
    });
    const id = await pay();
    const requestId = '1dd3a5a0-6a2e-4c61-9b44-8c5d0a6b7f10';
    await send({ ...initiation, requestId });
    sandbox.answers.failing = true;
    await readStatus(id);
    writeFileSync(keyFiles.sandbox, 'canary-next');
    await gateway.reload(sections);
    await callAdminApi(gateway, 'POST', '/api/environments/production/preflight');
    await until(20_000, 'spans arrive', () => collector.bodies.length > 0);
    const shown = await Promise.all(
      [
        '/api/config',
        `/api/decisions/${requestId}`,
        '/api/environments',
        '/api/circuits',
        '/api/contract',
        '/api/timeline',
        '/api/audit',
        '/metrics',
      ].map(async (path) => (await callAdminApi(gateway, 'GET', path)).text),
    );
    const everything = [...gateway.logLines, ...collector.bodies, ...shown].join('\n');
    assert.match(
      JSON.stringify(await readAdminApi(gateway, `/api/decisions/${requestId}`)),
      /initiatePayment/,
    );
    assert.doesNotMatch(everything, /canary/);
  });

  test('is reported without its value if a reload changes the file', async (t) => {
    const { bank } = await startPortal(t);
    const file = join(temporaryFolder(t), 'key');
    writeFileSync(file, 'canary-one');
    const headers = { 'web-api-key': { file }, portal: { env: 'PORTAL_KEY' } };
    const environments = { sandbox: { baseUrl: bank.baseUrl, headers } };
    const variables = { PORTAL_KEY: 'canary-variable' };
    const { command, url, adminUrl } = await startGatewayProcess(t, { environments }, { variables });
    await call(url, initiation);
    assert.equal(bank.requests[0]?.header('portal'), 'canary-variable');
    writeFileSync(file, 'canary-two');
    const { changes } = await reloaded();
    assert.deepEqual(changes, [
      { setting: 'environments.sandbox.headers.web-api-key (content)', from: '***', to: '***' },
    ]);
    assert.doesNotMatch(command.stdout(), /canary/);

    async function reloaded() {
      const { text } = await callAdminApi({ adminUrl }, 'POST', '/api/config/reload', {
        reason: 'a new key',
      });
      return JSON.parse(text);
    }
  });
});

describe('two environments at one address of a hub', () => {
  test('keep their payments, which have the same ids, apart', async (t) => {
    const hub = await startStubBank(t, ({ method, header }) => {
      if (method === 'POST') return { ...statusResponse('RCVD', { paymentId: 'same' }), status: 201 };
      return statusResponse(header('x-bank-authority') === 'A' ? 'ACSC' : 'RJCT');
    });
    const environmentOf = (bank: string) => ({
      baseUrl: hub.baseUrl,
      headers: { 'X-Bank-Authority': bank }, // its name contains "auth": it selects the bank all the same
    });
    const environments = { active: 'a', a: environmentOf('A'), b: environmentOf('B') };
    const gateway = await startGateway(t, { environments });
    const inEnvironment = (name: string, one: Call) =>
      call(gateway.url, { ...one, headers: [...(one.headers ?? []), ['Penstock-Environment', name]] });
    const read = { method: 'GET', path: `${transfersPath}/same/status` };
    assert.equal((await inEnvironment('a', initiation)).status, 201);
    assert.equal((await inEnvironment('b', initiation)).status, 201);
    assert.equal(jsonOf(await inEnvironment('a', read)).transactionStatus, 'ACSC');
    assert.equal(jsonOf(await inEnvironment('b', read)).transactionStatus, 'RJCT');
    assert.deepEqual(
      hub.requests.map(({ header }) => header('x-bank-authority')),
      ['A', 'B', 'A', 'B'],
    );
  });
});
