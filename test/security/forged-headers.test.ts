import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertRefused,
  initiation,
  paymentsPath,
  requestText,
  statusRead,
  valuesAtBank,
} from '../kit/attack.ts';
import { publicUrl, startGatewayWithBank } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-connection.ts';

const forged: Readonly<Record<string, string>> = {
  'X-Forwarded-For': '10.0.0.1',
  'X-Forwarded-Host': 'evil.example',
  'X-Forwarded-Proto': 'http',
  'X-Forwarded-Port': '1',
  'X-Forwarded-Prefix': '/evil',
  'X-Forwarded-Anything': 'evil',
  'x-forwarded-server': 'evil.example',
  Forwarded: 'for=10.0.0.1;host=evil.example',
  'X-Real-IP': '10.0.0.1',
};

/** Some frameworks let these fields override the request line. */
const overriding: Readonly<Record<string, string>> = {
  'X-HTTP-Method-Override': 'DELETE',
  'X-HTTP-Method': 'DELETE',
  'X-Method-Override': 'DELETE',
  'X-Original-Method': 'DELETE',
  'X-Original-URL': '/admin',
  'X-Original-URI': '/admin',
  'X-Rewrite-URL': '/admin',
};

/** Fields in which proxies that terminate TLS pass on the identity of the client. */
const certificates: Readonly<Record<string, string>> = {
  'Client-Cert': ':MIIB:',
  'Client-Cert-Chain': ':MIIB:',
  'X-Forwarded-Client-Cert': 'Hash=abc',
  'X-Client-Cert': 'MIIB',
  'X-Client-Verify': 'SUCCESS',
  'X-Client-DN': 'CN=evil',
  'SSL-Client-S-DN': 'CN=evil',
  'X-SSL-Client-Verify': 'SUCCESS',
  'X-SSL-Cert': 'MIIB',
  'X-TLS-Client-Subject': 'CN=evil',
  'X-Amzn-Mtls-Clientcert': 'MIIB',
  'X-ARR-ClientCert': 'MIIB',
  'TPP-QWAC-Certificate': 'MIIB',
  'X-Internal-Role': 'operator',
};

const lines = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields).map(([name, value]) => `${name}: ${value}`);

/*
 * Attack: the attacker forges a client address, or the name of the gateway, so that the bank records it, or the links for
 * the payer lead to the attacker's host.
 */
describe('forged fields of a request', () => {
  test('C1: a forged Host appears neither in links nor at the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    const bytes = initiation('{}', 'Content-Length: 2').replace('gateway.example', 'evil.example');
    const { status, headers, body } = await sendRaw(line.gateway.port, bytes);
    assert.equal(status, 201);
    assert.match(headers.get('location') ?? '', new RegExp(`^${publicUrl}${paymentsPath}/`));
    assert.doesNotMatch(body, /evil/);
    assert.deepEqual(valuesAtBank(line, 'host'), [new URL(line.bank.baseUrl).host]);
  });

  test('C3: fields of proxies appear neither at the bank nor in links', async (t) => {
    const line = await startGatewayWithBank(t);
    const bytes = initiation('{}', 'Content-Length: 2', ...lines(forged));
    const { headers, body } = await sendRaw(line.gateway.port, bytes);
    for (const name of Object.keys(forged))
      assert.deepEqual(valuesAtBank(line, name.toLowerCase()), [], name);
    assert.doesNotMatch(`${headers.get('location')} ${body}`, /evil/);
  });

  test('C3: PSU-IP-Address reaches the bank as the TPP sent it', async (t) => {
    const line = await startGatewayWithBank(t);
    await sendRaw(line.gateway.port, statusRead('PSU-IP-Address: 192.0.2.7', 'X-Forwarded-For: 10.0.0.1'));
    assert.deepEqual(valuesAtBank(line, 'psu-ip-address'), ['192.0.2.7']);
  });

  test('C10: fields for the gateway do not reach the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    await sendRaw(line.gateway.port, statusRead('X-API-Key: secret', 'Penstock-Environment: sandbox'));
    for (const name of ['x-api-key', 'penstock-environment']) assert.deepEqual(valuesAtBank(line, name), []);
  });

  test('C10: fields with a client certificate do not reach the bank, except for the TPP’s signature certificate', async (t) => {
    const line = await startGatewayWithBank(t, { listen: { trustedProxies: ['127.0.0.1'] } });
    await sendRaw(line.gateway.port, statusRead(...lines(certificates), 'TPP-Signature-Certificate: MIIC'));
    for (const name of Object.keys(certificates))
      assert.deepEqual(valuesAtBank(line, name.toLowerCase()), [], name);
    assert.deepEqual(valuesAtBank(line, 'tpp-signature-certificate'), ['MIIC']);
  });

  test('C10: a certificate in a field does not authenticate a client, not even from a trusted proxy', async (t) => {
    const client = { name: 'shop', apiKeySha256: 'ab'.repeat(32), environments: ['sandbox'] };
    const listen = { trustedProxies: ['127.0.0.1'] };
    const line = await startGatewayWithBank(t, { clients: [client], listen });
    await assertRefused(line, statusRead(...lines(certificates)), [401, 'CLIENT_UNKNOWN']);
  });

  test('C3: X-Forwarded-For of a trusted proxy sets only the network in the log of a refused request', async (t) => {
    for (const [trustedProxies, network] of [
      [['127.0.0.0/8'], '203.0.113.0/24'],
      [[], '127.0.0.0/24'],
    ] as const) {
      const line = await startGatewayWithBank(t, { listen: { trustedProxies } });
      const fields = ['X-Forwarded-For: 192.0.2.1, 203.0.113.9', 'Connection: Digest'];
      await assertRefused(line, statusRead(...fields), [400, 'HEADER_MALFORMED']);
      const refusal = line.gateway.logLines.find((text) => text.includes('request refused')) ?? '';
      assert.equal(JSON.parse(refusal).network, network);
      assert.doesNotMatch(refusal, /192\.0\.2|203\.0\.113\.9/);
    }
  });
});

/*
 * Attack: many web frameworks obey a field that names another method or path. The attacker sends a read, which is not
 * protected like a write, and makes the bank execute a cancellation or a request with another path.
 */
describe('fields that override the request line', () => {
  test('D6: do not reach the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    const read = requestText(`GET ${paymentsPath}/1 HTTP/1.1`, lines(overriding));
    await sendRaw(line.gateway.port, read);
    assert.equal(line.bank.requests.at(-1)?.method, 'GET');
    for (const name of Object.keys(overriding))
      assert.deepEqual(valuesAtBank(line, name.toLowerCase()), [], name);
  });
});
