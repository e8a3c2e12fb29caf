import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfers } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';
import { assertFailure, type ExpectedFailure, methods, shortDeadlines } from './fault-contract.ts';

/** Nothing was sent: whatever the call was, it can be sent again. */
const unreached = (proxyError: string): ExpectedFailure => ({
  status: 502,
  code: 'UPSTREAM_UNREACHED',
  proxyError,
});

/** Every call gets this failure, says that nothing was sent, and the gateway goes on after it. */
async function assertUnreached(t: TestContext, baseUrl: string, proxyError: string, sections?: Sections) {
  const environments = { active: 'sandbox', sandbox: { baseUrl } };
  const gateway = await startGateway(t, { environments, ...sections });
  for (const method of [...methods, ...methods]) {
    const request = newCall(method, method === 'POST' ? transfers : `${transfers}/a-payment`);
    const reply = await within(8_000, 'an answer', call(gateway.url, request));
    assertFailure(gateway, request, reply, unreached(proxyError));
    assert.match(JSON.parse(reply.text).tppMessages[0].text, /nothing was sent/);
  }
}

describe('a bank that no connection can be made to (E8)', { concurrency: true }, () => {
  test('a port that nobody listens on refuses every request, and the gateway takes the next', async (t) => {
    const bank = await startBank(t);
    await bank.stop(); // its port is free now
    await assertUnreached(t, bank.baseUrl, 'connection_refused');
  });

  test('a TLS handshake that is never answered ends with the time allowed for connecting', async (t) => {
    const blackHole = await startPlainServer(t);
    const startedMs = performance.now();
    await assertUnreached(t, `https://127.0.0.1:${blackHole.port}`, 'connection_timeout', {
      ...shortDeadlines,
      deadlines: { connect: '100ms' }, // of calls that may take seconds
    });
    assert.ok(performance.now() - startedMs < 5_000, 'no call waited for its own deadline of 15 s');
    assert.doesNotMatch(blackHole.received, /HTTP/);
  });

  test('the bank sees a connection that was given up close', async (t) => {
    const blackHole = await startPlainServer(t);
    await assertUnreached(t, `https://127.0.0.1:${blackHole.port}`, 'connection_timeout', shortDeadlines);
    await until(2_000, 'all are closed', () => blackHole.connections.every(({ destroyed }) => destroyed));
  });

  test('E16: a certificate that nobody vouches for is never believed, and nothing is sent', async (t) => {
    const bank = await startBank(t, { tls: { key, cert: certificate } });
    await assertUnreached(t, bank.baseUrl, 'tls_certificate_error');
    assert.equal(bank.requests.length, 0);
  });

  test('E16: a bank that speaks plain HTTP where TLS is due hears nothing', async (t) => {
    const bank = await startBank(t);
    await assertUnreached(t, bank.baseUrl.replace('http:', 'https:'), 'tls_protocol_error');
    assert.equal(bank.requests.length, 0);
  });

  test('a connection that is closed or reset during the handshake was never made', async (t) => {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const server = await startPlainServer(t, (socket) => void socket[leave]());
      await assertUnreached(t, `https://127.0.0.1:${server.port}`, 'connection_terminated');
    }
  });

  test('a name that cannot be resolved is told as that', async (t) => {
    await assertUnreached(t, 'https://nowhere.invalid', 'dns_error');
  });
});
