/** TPP systems that are known by their certificate, at a door that speaks TLS. */

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { startBank, startGateway } from '../kit/gateway.ts';
import { within } from '../kit/within.ts';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';

const fingerprint = createHash('sha256').update(new X509Certificate(certificate).raw).digest('hex');

/** A door with TLS before one bank; `known` is the fingerprint of its only client. */
async function startDoor(t: TestContext, clientCertificate: 'optional' | 'required', known = fingerprint) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certFile, certificate);
  writeFileSync(keyFile, key);
  const bank = await startBank(t);
  const gateway = await startGateway(t, {
    listen: { tls: { certFile, keyFile, clientCaFile: certFile, clientCertificate } },
    clients: [{ name: 'shop', certificateSha256: known }],
    environments: { sandbox: { baseUrl: bank.baseUrl } },
  });
  return { bank, gateway };
}

/** Asks for a payment; the status and error of the answer, or the code of the broken handshake. */
function ask(port: number, shown: { readonly cert?: string; readonly key?: string }): Promise<string> {
  const answer = new Promise<string>((resolve) => {
    const asked = request({
      ...{ host: '127.0.0.1', port, agent: false, ca: certificate, ...shown },
      path: '/berlingroup/v1/payments/sepa-credit-transfers/one',
      headers: { 'X-Request-ID': 'b773ae46-5188-4f11-9e1e-c899ab83a6e7' },
    });
    asked.on('response', (response) => {
      response.resume();
      resolve(`${response.statusCode} ${response.headers['penstock-error'] ?? 'bank'}`);
    });
    asked.on('error', () => resolve('no connection'));
    asked.end();
  });
  return within(4_000, 'an answer', answer);
}

describe('a client known by its certificate', () => {
  test('gets in with it, and nobody does without', async (t) => {
    const { bank, gateway } = await startDoor(t, 'optional');
    assert.equal(await ask(gateway.port, { cert: certificate, key }), '404 bank');
    assert.equal(bank.requests.length, 1);
    assert.equal(await ask(gateway.port, {}), '401 CLIENT_UNKNOWN');
    assert.equal(bank.requests.length, 1);
  });

  test('is refused if the fingerprint is another', async (t) => {
    const { bank, gateway } = await startDoor(t, 'optional', 'ab'.repeat(32));
    assert.equal(await ask(gateway.port, { cert: certificate, key }), '401 CLIENT_UNKNOWN');
    assert.equal(bank.requests.length, 0);
  });

  test('does not even get a connection without one where it is required', async (t) => {
    const { gateway } = await startDoor(t, 'required');
    assert.equal(await ask(gateway.port, {}), 'no connection');
    assert.equal(await ask(gateway.port, { cert: certificate, key }), '404 bank');
  });
});
