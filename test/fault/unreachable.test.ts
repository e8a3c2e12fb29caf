import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { unresolvable } from '../kit/unresolvable.ts';
import { until, within } from '../kit/within.ts';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';
import { assertFailure, type ExpectedFailure, methods } from './fault-contract.ts';

/** Nothing was sent. */
const unreached = (proxyError: string): ExpectedFailure => ({
  status: 502,
  code: 'UPSTREAM_UNREACHED',
  proxyError,
});

/** Every call fails with this error, which states that nothing was sent, and the gateway keeps running. */
async function assertUnreached(t: TestContext, baseUrl: string, proxyError: string, sections?: Sections) {
  const environments = { active: 'sandbox', sandbox: { baseUrl } };
  const gateway = await startGateway(t, { environments, ...sections });
  for (const method of [...methods, ...methods]) {
    const request = newCall(method, method === 'POST' ? transfersPath : `${transfersPath}/a-payment`);
    const reply = await within(8_000, 'an answer', call(gateway.url, request));
    assertFailure(gateway, request, reply, unreached(proxyError));
    assert.match(JSON.parse(reply.text).tppMessages[0].text, /nothing was sent/);
  }
}

describe('unreachable bank', { concurrency: 8 }, () => {
  test('is reported as connection_refused if nothing listens on its port', async (t) => {
    const bank = await startBank(t);
    await bank.stop(); // its port is free now
    await assertUnreached(t, bank.baseUrl, 'connection_refused');
  });

  test('is reported as connection_timeout after deadlines.connect if the TLS handshake is never answered', async (t) => {
    const blackHole = await startPlainServer(t);
    await assertUnreached(t, `https://127.0.0.1:${blackHole.port}`, 'connection_timeout', {
      deadlines: { connect: '100ms', status: '60s', read: '60s', write: '60s' }, // the test waits for 8 s at most
    });
    assert.doesNotMatch(blackHole.received, /HTTP/);
  });

  test('gets the connections closed whose TLS handshake timed out', async (t) => {
    const blackHole = await startPlainServer(t);
    await assertUnreached(t, `https://127.0.0.1:${blackHole.port}`, 'connection_timeout', {
      deadlines: { connect: '300ms' },
    });
    await until(2_000, 'all are closed', () => blackHole.connections.every(({ destroyed }) => destroyed));
  });

  test('receives nothing if no authority has signed its certificate', async (t) => {
    const bank = await startBank(t, { tls: { key, cert: certificate } });
    await assertUnreached(t, bank.baseUrl, 'tls_certificate_error');
    assert.equal(bank.requests.length, 0);
  });

  test('receives nothing if it speaks plain HTTP instead of TLS', async (t) => {
    const bank = await startBank(t);
    await assertUnreached(t, bank.baseUrl.replace('http:', 'https:'), 'tls_protocol_error');
    assert.equal(bank.requests.length, 0);
  });

  test('is reported as connection_terminated if it closes or resets the connection during the handshake', async (t) => {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const server = await startPlainServer(t, (socket) => void socket[leave]());
      await assertUnreached(t, `https://127.0.0.1:${server.port}`, 'connection_terminated');
    }
  });

  test('is reported as dns_error if its name cannot be resolved', async (t) => {
    await assertUnreached(t, `https://${unresolvable}`, 'dns_error');
  });
});
