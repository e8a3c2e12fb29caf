/** TPP systems at a door that speaks TLS: which of them get a connection, and who is known by a certificate. */

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { describe, type TestContext, test } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import {
  copyCertificateFiles,
  createAuthority,
  type IssuedCertificate,
  inDays,
  replaceCertificateFiles,
} from '../kit/openssl.ts';
import { statusRead } from '../kit/request.ts';
import { apiKeyOf } from '../kit/two-environments.ts';
import { until, within } from '../kit/within.ts';

const life = lifeOfAllTests();
const authority = createAuthority(life);
const stranger = createAuthority(life, 'stranger');
const [door, shop] = [authority.issue('door'), authority.issue('shop')];

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
const fingerprint = ({ cert }: IssuedCertificate) => sha256(new X509Certificate(cert).raw);

/** A door with TLS before one bank, for a shop known by its certificate and a till known by its key. */
async function startDoor(t: TestContext, clientCertificate: 'off' | 'optional' | 'required', known = shop) {
  const own = copyCertificateFiles(temporaryFolder(t), 'door', door);
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

/** Asks for a payment; the status and error of the answer, or `no connection`. */
function ask(port: number, shown?: IssuedCertificate, key?: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const asked = request({
    host: '127.0.0.1',
    port,
    agent: false,
    ca: authority.cert,
    path: statusRead.path,
    ...(shown && { cert: shown.cert, key: shown.key }),
    headers: { 'X-Request-ID': 'b773ae46-5188-4f11-9e1e-c899ab83a6e7', ...(key && { 'X-API-Key': key }) },
  });
  asked.on('response', (response) => {
    response.resume();
    resolve(`${response.statusCode} ${response.headers['penstock-error'] ?? 'bank'}`);
  });
  asked.on('error', () => resolve('no connection'));
  asked.end();
  return within(4_000, 'an answer', promise);
}

/** The version that is agreed upon if this one alone is offered, or `refused`. */
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

describe('a door with TLS', () => {
  test('speaks 1.2 and 1.3, and nothing older', async (t) => {
    const { gateway } = await startDoor(t, 'off');
    assert.equal(await handshake(gateway.port, 'TLSv1.3'), 'TLSv1.3');
    assert.equal(await handshake(gateway.port, 'TLSv1.2'), 'TLSv1.2');
    assert.equal(await handshake(gateway.port, 'TLSv1.1'), 'refused');
    assert.equal(await handshake(gateway.port, 'TLSv1'), 'refused');
  });

  test('takes no notice of certificates that it does not ask for', async (t) => {
    const { gateway } = await startDoor(t, 'off');
    assert.equal(await ask(gateway.port, shop), '401 CLIENT_UNKNOWN');
    assert.equal(await ask(gateway.port, shop, apiKeyOf('till')), '404 bank');
  });

  test('shows a new certificate when its files have changed, and lets nobody go', async (t) => {
    const { gateway, own } = await startDoor(t, 'required');
    const kept = connect({
      port: gateway.port,
      host: '127.0.0.1',
      ca: authority.cert,
      cert: shop.cert,
      key: shop.key,
    });
    t.after(() => kept.destroy());
    const next = authority.issue('next-door');
    replaceCertificateFiles(own, next);
    const shownNow = async () => {
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
    await until(5_000, 'the new one is shown', async () => (await shownNow()) === 'next-door');
    assert.equal(kept.destroyed, false);
    assert.equal(await ask(gateway.port, shop), '404 bank', 'and certificates are still asked for');
    assert.equal(await ask(gateway.port), 'no connection');
  });
});

describe('a client known by its certificate', () => {
  test('gets in with it, and nobody does without', async (t) => {
    const { bank, gateway } = await startDoor(t, 'optional');
    assert.equal(await ask(gateway.port, shop), '404 bank');
    assert.equal(bank.requests.length, 1);
    assert.equal(await ask(gateway.port), '401 CLIENT_UNKNOWN');
    assert.equal(bank.requests.length, 1);
  });

  test('is refused if the fingerprint is another', async (t) => {
    const { bank, gateway } = await startDoor(t, 'optional', authority.issue('somebody-else'));
    assert.equal(await ask(gateway.port, shop), '401 CLIENT_UNKNOWN');
    assert.equal(bank.requests.length, 0);
  });

  test('need not show one where it is optional: an API key will do', async (t) => {
    const { gateway } = await startDoor(t, 'optional');
    assert.equal(await ask(gateway.port, undefined, apiKeyOf('till')), '404 bank');
    assert.equal(await ask(gateway.port, undefined, 'wrong'), '401 CLIENT_UNKNOWN');
  });

  test('does not even get a connection without one where it is required, whatever its key', async (t) => {
    const { bank, gateway } = await startDoor(t, 'required');
    assert.equal(await ask(gateway.port), 'no connection');
    assert.equal(await ask(gateway.port, undefined, apiKeyOf('till')), 'no connection');
    assert.equal(bank.requests.length, 0);
    assert.equal(await ask(gateway.port, shop), '404 bank');
    assert.equal(
      await ask(gateway.port, authority.issue('any'), apiKeyOf('till')),
      '404 bank',
      'with a key as well',
    );
  });

  test('is nobody with a certificate of another authority, of the same name, or one that has expired', async (t) => {
    const foreign = stranger.issue('shop');
    const expired = authority.issue('expired-shop', { from: inDays(-10), until: inDays(-1) });
    for (const [shown, known] of [
      [foreign, foreign],
      [expired, expired],
    ] as const) {
      const optional = await startDoor(t, 'optional', known);
      assert.equal(await ask(optional.gateway.port, shown), '401 CLIENT_UNKNOWN');
      assert.equal(
        await ask(optional.gateway.port, shown, apiKeyOf('till')),
        '404 bank',
        'its key is as good as any',
      );
      const required = await startDoor(t, 'required', known);
      assert.equal(await ask(required.gateway.port, shown), 'no connection');
      assert.equal(required.bank.requests.length, 0);
    }
  });

  test('cannot use the key of another with it', async (t) => {
    const { gateway } = await startDoor(t, 'optional');
    assert.equal(await ask(gateway.port, shop, apiKeyOf('till')), '401 CLIENT_UNKNOWN');
  });
});
