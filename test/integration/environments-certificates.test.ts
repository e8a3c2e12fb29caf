/** The listener with TLS: which TPP systems get a connection, and which are identified by a certificate. */

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { describe, type TestContext, test } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import {
  copyCertificateFiles,
  createAuthority,
  type IssuedCertificate,
  inDays,
  replaceCertificateFiles,
} from '../kit/openssl.ts';
import { statusRead } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf } from '../kit/two-environments.ts';
import { until, within } from '../kit/within.ts';

const life = scopeOfAllTests();
const authority = createAuthority(life);
const stranger = createAuthority(life, 'stranger');
const [listener, shop] = [authority.issue('listener'), authority.issue('shop')];

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
const fingerprint = ({ cert }: IssuedCertificate) => sha256(new X509Certificate(cert).raw);

/** A gateway with TLS; the client `shop` has a certificate, the client `till` an API key. */
async function startTlsGateway(
  t: TestContext,
  clientCertificate: 'off' | 'optional' | 'required',
  known = shop,
) {
  const own = copyCertificateFiles(temporaryFolder(t), 'listener', listener);
  const bank = await startBank(t);
  const gateway = await startGateway(t, {
    listen: {
      tls: {
        certFile: own.certFile,
        keyFile: own.keyFile,
        clientCaFile: authority.certFile,
        clientCertificate,
      },
    },
    clients: [
      ...(clientCertificate === 'off'
        ? []
        : [{ name: 'shop', tenant: 'shop', certificateSha256: fingerprint(known) }]),
      { name: 'till', tenant: 'shop', apiKeySha256: sha256(apiKeyOf('till')) },
    ],
    environments: { sandbox: { baseUrl: bank.baseUrl } },
  });
  return { bank, gateway, own };
}

/** Reads the status of a payment. @returns the status and error code of the response, or `no connection` */
function readStatus(port: number, clientCertificate?: IssuedCertificate, key?: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const outgoing = request({
    host: '127.0.0.1',
    port,
    agent: false,
    ca: authority.cert,
    path: statusRead.path,
    ...(clientCertificate && { cert: clientCertificate.cert, key: clientCertificate.key }),
    headers: { 'X-Request-ID': 'b773ae46-5188-4f11-9e1e-c899ab83a6e7', ...(key && { 'X-API-Key': key }) },
  });
  outgoing.on('response', (response) => {
    response.resume();
    resolve(`${response.statusCode} ${response.headers['penstock-error'] ?? 'bank'}`);
  });
  outgoing.on('error', () => resolve('no connection'));
  outgoing.end();
  return within(4_000, 'an answer', promise);
}

/** @returns the negotiated TLS version if the client offers only this one, or `refused` */
function handshake(port: number, version: SecureVersion): Promise<string> {
  const ciphers = 'DEFAULT@SECLEVEL=0'; // or the client itself would not offer the older versions
  const offered = { minVersion: version, maxVersion: version, ciphers };
  const socket = connect({ port, host: '127.0.0.1', ca: authority.cert, ...offered });
  const { promise, resolve } = Promise.withResolvers<string>();
  socket
    .once('secureConnect', () => resolve(socket.getProtocol() ?? ''))
    .once('error', () => resolve('refused'));
  return within(4_000, 'a handshake', promise).finally(() => socket.destroy());
}

describe('the listener with TLS', () => {
  test('accepts TLS 1.2 and 1.3 and no older version', async (t) => {
    const { gateway } = await startTlsGateway(t, 'off');
    assert.equal(await handshake(gateway.port, 'TLSv1.3'), 'TLSv1.3');
    assert.equal(await handshake(gateway.port, 'TLSv1.2'), 'TLSv1.2');
    assert.equal(await handshake(gateway.port, 'TLSv1.1'), 'refused');
    assert.equal(await handshake(gateway.port, 'TLSv1'), 'refused');
  });

  test('ignores client certificates that it did not request', async (t) => {
    const { gateway } = await startTlsGateway(t, 'off');
    assert.equal(await readStatus(gateway.port, shop), '401 CLIENT_UNKNOWN');
    assert.equal(await readStatus(gateway.port, shop, apiKeyOf('till')), '404 bank');
  });

  test('presents a new certificate when its files change, and keeps open connections', async (t) => {
    const { gateway, own } = await startTlsGateway(t, 'required');
    const open = connect({
      port: gateway.port,
      host: '127.0.0.1',
      ca: authority.cert,
      cert: shop.cert,
      key: shop.key,
    });
    t.after(() => open.destroy());
    const next = authority.issue('next-listener');
    replaceCertificateFiles(own, next);
    const currentCertificate = async () => {
      const socket = connect({
        port: gateway.port,
        host: '127.0.0.1',
        ca: authority.cert,
        cert: shop.cert,
        key: shop.key,
      });
      const { promise, resolve } = Promise.withResolvers<string>();
      socket.once('secureConnect', () => resolve(String(socket.getPeerCertificate().subject.CN)));
      return within(2_000, 'a handshake', promise).finally(() => socket.destroy());
    };
    await until(
      5_000,
      'the new certificate is presented',
      async () => (await currentCertificate()) === 'next-listener',
    );
    assert.equal(open.destroyed, false);
    assert.equal(await readStatus(gateway.port, shop), '404 bank', 'client certificates are still requested');
    assert.equal(await readStatus(gateway.port), 'no connection');
  });
});

describe('a client that is identified by its certificate', () => {
  test('is accepted with the certificate, and an unknown client is refused', async (t) => {
    const { bank, gateway } = await startTlsGateway(t, 'optional');
    assert.equal(await readStatus(gateway.port, shop), '404 bank');
    assert.equal(bank.requests.length, 1);
    assert.equal(await readStatus(gateway.port), '401 CLIENT_UNKNOWN');
    assert.equal(bank.requests.length, 1);
  });

  test('is refused if the fingerprint does not match', async (t) => {
    const { bank, gateway } = await startTlsGateway(t, 'optional', authority.issue('somebody-else'));
    assert.equal(await readStatus(gateway.port, shop), '401 CLIENT_UNKNOWN');
    assert.equal(bank.requests.length, 0);
  });

  test('can use an API key instead if the certificate is optional', async (t) => {
    const { gateway } = await startTlsGateway(t, 'optional');
    assert.equal(await readStatus(gateway.port, undefined, apiKeyOf('till')), '404 bank');
    assert.equal(await readStatus(gateway.port, undefined, 'wrong'), '401 CLIENT_UNKNOWN');
  });

  test('gets no connection without a certificate if it is required, whatever its API key', async (t) => {
    const { bank, gateway } = await startTlsGateway(t, 'required');
    assert.equal(await readStatus(gateway.port), 'no connection');
    assert.equal(await readStatus(gateway.port, undefined, apiKeyOf('till')), 'no connection');
    assert.equal(bank.requests.length, 0);
    assert.equal(await readStatus(gateway.port, shop), '404 bank');
    assert.equal(
      await readStatus(gateway.port, authority.issue('any'), apiKeyOf('till')),
      '404 bank',
      'any trusted certificate is enough for the connection',
    );
  });

  test('is not accepted with an expired certificate or one of another authority', async (t) => {
    const foreign = stranger.issue('shop');
    const expired = authority.issue('expired-shop', { from: inDays(-10), until: inDays(-1) });
    for (const [presented, known] of [
      [foreign, foreign],
      [expired, expired],
    ] as const) {
      const optional = await startTlsGateway(t, 'optional', known);
      assert.equal(await readStatus(optional.gateway.port, presented), '401 CLIENT_UNKNOWN');
      assert.equal(
        await readStatus(optional.gateway.port, presented, apiKeyOf('till')),
        '404 bank',
        'the API key is accepted',
      );
      const required = await startTlsGateway(t, 'required', known);
      assert.equal(await readStatus(required.gateway.port, presented), 'no connection');
      assert.equal(required.bank.requests.length, 0);
    }
  });

  test('is refused with the API key of another client', async (t) => {
    const { gateway } = await startTlsGateway(t, 'optional');
    assert.equal(await readStatus(gateway.port, shop, apiKeyOf('till')), '401 CLIENT_UNKNOWN');
  });
});
