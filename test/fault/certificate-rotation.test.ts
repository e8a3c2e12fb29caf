/** Certificates are replaced on the disk under load: new connections use them, and no request fails. */

import assert from 'node:assert/strict';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import type { LoggedRequest } from '../../src/simulated-bank/request-log.ts';
import { type Call, call } from '../kit/call.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { failuresIn, startLoad, measureExchange as timed } from '../kit/load.ts';
import { copyCertificateFiles, createAuthority, replaceCertificateFiles } from '../kit/openssl.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';

/** A gateway process with the certificates `old-*`, in front of a bank that accepts clients of the authority. */
async function startExchangeable(t: TestContext) {
  const authority = createAuthority(t);
  const server = authority.issue('bank');
  const bank = await startBank(t, {
    tls: {
      cert: server.cert,
      key: server.key,
      ca: authority.cert,
      requestCert: true,
      rejectUnauthorized: true,
    },
    timings: { authorisedAfterMs: 600_000 },
  });
  const [oldQwac, nextQwac] = [authority.issue('old-qwac'), authority.issue('next-qwac')];
  const [oldListener, nextListener] = [authority.issue('old-listener'), authority.issue('next-listener')];
  const qwac = copyCertificateFiles(join(authority.folder, 'qwac'), 'qwac', oldQwac);
  const listener = copyCertificateFiles(join(authority.folder, 'listener'), 'listener', oldListener);
  const served = await startGatewayProcess(t, {
    listen: { port: 0, tls: { certFile: listener.certFile, keyFile: listener.keyFile } },
    environments: {
      sandbox: {
        baseUrl: bank.baseUrl,
        tls: { certFile: qwac.certFile, keyFile: qwac.keyFile, caFile: authority.certFile },
      },
    },
    log: { level: 'info' },
  });
  const agent = new Agent({ keepAlive: true, ca: authority.cert });
  t.after(() => agent.destroy());
  const url = served.url.replace('http:', 'https:');
  return {
    authority,
    bank,
    served,
    qwac,
    nextQwac,
    listener,
    nextListener,
    ask: (one: Call) => call(url, one, agent),
  };
}

describe('a certificate that is replaced on the disk', () => {
  test('is used for the bank and for TPPs without a restart, and no request fails', async (t) => {
    const { bank, served, ask, qwac, nextQwac, listener, nextListener, authority } =
      await startExchangeable(t);
    const paid = await Promise.all(Array.from({ length: 5 }, () => ask(initiation)));
    const ids = paid.map(({ status, text }) => {
      assert.equal(status, 201, text);
      return String(JSON.parse(text).paymentId);
    });
    bank.injectFault({ name: 'latency', ms: 300 }, { operation: 'getPayment' }); // so that some calls are always in progress

    const load = startLoad(t, { perSecond: 20 }, (number) =>
      timed(
        number % 3 === 0
          ? initiation
          : { method: 'GET', path: `${transfersPath}/${ids[number % ids.length]}` },
        ask,
      ),
    );
    await load.hasSent(40);
    replaceCertificateFiles(qwac, nextQwac);
    replaceCertificateFiles(listener, nextListener);
    const isShown = async () => (await subjectAt(served.port, authority.cert)) === 'next-listener';
    await until(20_000, 'TPPs see the new certificate', isShown);
    const isNew = ({ clientCertificate }: LoggedRequest) => clientCertificate === 'next-qwac';
    await bank.waitUntil(() => bank.requests.slice(-20).every(isNew), 20_000);
    const exchanges = await load.stop();

    assert.deepEqual(failuresIn(exchanges), {});
    const initiated = exchanges.filter(({ call: { path } }) => path === transfersPath);
    assert.equal(bank.payments.length, ids.length + initiated.length, 'each payment once');
    assert.deepEqual(
      new Set(bank.requests.map((one) => one.clientCertificate)),
      new Set(['old-qwac', 'next-qwac']),
    );
  });

  test('is not used while it does not match its key, and the log says so once', async (t) => {
    const { bank, served, ask, qwac, nextQwac } = await startExchangeable(t);
    replaceCertificateFiles({ certFile: qwac.certFile, keyFile: `${qwac.keyFile}.elsewhere` }, nextQwac);
    await served.command.waitForOutput('the old one stays');
    assert.equal((await ask(initiation)).status, 201);
    replaceCertificateFiles(qwac, nextQwac);
    await served.command.waitForOutput('certificate replaced');
    assert.equal((await ask(initiation)).status, 201);

    assert.deepEqual(
      bank.requests.map((one) => one.clientCertificate),
      ['old-qwac', 'next-qwac'],
    );
    const lines = served.command
      .stdout()
      .split('\n')
      .filter((line) => line.includes('the old one stays'));
    assert.equal(lines.length, 1);
    const { level, environment, use, why } = JSON.parse(lines[0] ?? '');
    assert.deepEqual([level, environment, use], ['error', 'sandbox', 'qwac']);
    assert.equal(why, `${qwac.keyFile} does not match the certificate`);
  });
});

/** The CN of the certificate that a new connection receives. */
function subjectAt(port: number, ca: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', ca });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket
    .once('secureConnect', () => resolve(String(socket.getPeerCertificate().subject.CN)))
    .once('error', reject);
  return within(10_000, 'a handshake', promise).finally(() => socket.destroy());
}
