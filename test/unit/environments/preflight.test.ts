import assert from 'node:assert/strict';
import { Agent, createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer, Agent as TlsAgent } from 'node:https';
import { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { type PreflightReport, preflight } from '../../../src/environments/preflight.ts';
import { startPlainServer } from '../../kit/plain-server.ts';
import { freePort, listen } from '../../kit/ports.ts';
import { unresolvable } from '../../kit/unresolvable.ts';
import { until, within } from '../../kit/within.ts';
import { certificate, certificateValid, key } from '../simulated-bank/certificate.ts';

/** Starts a bank; with TLS if there is a certificate. @returns its URL */
async function startServer(t: TestContext, serve: RequestListener, cert?: string): Promise<string> {
  const server = cert === undefined ? createServer(serve) : createTlsServer({ key, cert }, serve);
  const port = await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `${cert === undefined ? 'http' : 'https'}://127.0.0.1:${port}/`;
}

const status =
  (code: number): RequestListener =>
  (_request, response) =>
    void response.writeHead(code).end();

/** @param ca the trusted certificate authority */
async function runPreflight(
  t: TestContext,
  url: string,
  ca = certificate,
  expects: readonly number[] = [],
): Promise<PreflightReport> {
  const agent = url.startsWith('https:')
    ? new TlsAgent({ ca, keepAlive: true })
    : new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  return within(10_000, 'the report', preflight({ url, agent, expects }));
}

/** Names of the steps; a failed step has a `!`. */
const stepsOf = ({ steps }: PreflightReport) => steps.map(({ step, ok }) => (ok ? step : `!${step}`));
const lastOf = ({ steps }: PreflightReport) => steps.at(-1)?.detail ?? '';

describe('a preflight check', () => {
  test('succeeds if the bank answers, and reports each step', async (t) => {
    const report = await runPreflight(t, await startServer(t, status(200)));
    assert.equal(report.ok, true);
    assert.deepEqual(stepsOf(report), ['tcp', 'answer']);
    assert.equal(lastOf(report), 'status 200');
  });

  test('reports the TLS version and the expiry of the certificate', async (t) => {
    const report = await runPreflight(t, await startServer(t, status(200), certificate));
    assert.equal(report.ok, true);
    assert.deepEqual(stepsOf(report), ['tcp', 'tls', 'certificate', 'answer']);
    assert.deepEqual(
      report.steps.slice(1, 3).map(({ detail }) => detail),
      ['TLSv1.3', 'valid until Dec 31 23:59:59 2049 GMT'],
    );
  });

  test('resolves a host name and reports the address', async (t) => {
    const url = await startServer(t, status(200));
    const report = await runPreflight(t, url.replace('127.0.0.1', 'localhost'));
    assert.deepEqual(stepsOf(report), ['dns', 'tcp', 'answer']);
    assert.match(report.steps[0]?.detail ?? '', /^(127\.0\.0\.1|::1)$/);
  });

  for (const code of [200, 204]) {
    test(`succeeds without a remark if the status is ${code}`, async (t) => {
      const report = await runPreflight(t, await startServer(t, status(code)));
      assert.deepEqual([report.ok, report.steps.at(-1)?.remark], [true, undefined]);
    });
  }

  for (const code of [301, 400, 404, 499]) {
    test(`succeeds with a remark if the status is ${code}`, async (t) => {
      const report = await runPreflight(t, await startServer(t, status(code)));
      assert.equal(report.ok, true);
      assert.match(
        report.steps.at(-1)?.remark ?? '',
        /^The connection works\. .* it is not known whether it accepts payments/,
      );
    });
  }

  for (const code of [401, 403]) {
    test(`fails at the step answer if the status is ${code}, and says how to expect it`, async (t) => {
      const report = await runPreflight(t, await startServer(t, status(code)), certificate, [404]);
      assert.deepEqual(
        [report.ok, stepsOf(report), lastOf(report)],
        [false, ['tcp', '!answer'], `status ${code}`],
      );
      assert.ok(report.steps.at(-1)?.remark?.includes(`probeExpects: [${code}]`));
    });
  }

  for (const code of [401, 403, 404]) {
    test(`succeeds without a remark if the environment expects the status ${code}`, async (t) => {
      const report = await runPreflight(t, await startServer(t, status(code)), certificate, [404, code]);
      assert.deepEqual([report.ok, lastOf(report)], [true, `status ${code}, as expected`]);
      assert.equal(report.steps.at(-1)?.remark, undefined);
    });
  }

  for (const code of [401, 403, 404]) {
    test(`never calls a bank ready that answers ${code}`, async (t) => {
      for (const expects of [[], [code]]) {
        const report = await runPreflight(t, await startServer(t, status(code)), certificate, expects);
        assert.doesNotMatch(JSON.stringify(report), /ready/i);
      }
    });
  }

  test('succeeds without reading the whole response', async (t) => {
    const endless: RequestListener = (_request, response) => void response.writeHead(200).write('endless');
    assert.equal((await runPreflight(t, await startServer(t, endless))).ok, true);
  });

  test('sends one GET request without credentials to the probe path', async (t) => {
    const seen: string[] = [];
    const url = await startServer(t, (request, response) => {
      seen.push(`${request.method} ${request.url} ${JSON.stringify(request.headers.authorization)}`);
      response.end();
    });
    await runPreflight(t, `${url}psd2/probe`);
    assert.deepEqual(seen, ['GET /psd2/probe undefined']);
  });

  test('fails at the step dns if the host name cannot be resolved', async (t) => {
    const report = await runPreflight(t, `https://${unresolvable}/`);
    assert.equal(report.ok, false);
    assert.deepEqual(stepsOf(report), ['!dns']);
  });

  test('fails at the step tcp if the connection is refused', async (t) => {
    const port = await freePort();
    const byAddress = await runPreflight(t, `http://127.0.0.1:${port}/`);
    assert.deepEqual([stepsOf(byAddress), lastOf(byAddress)], [['!tcp'], 'ECONNREFUSED']);
    assert.equal(stepsOf(await runPreflight(t, `http://localhost:${port}/`)).at(-1), '!tcp');
  });

  test('fails at the step tcp if an address is unreachable', async () => {
    class Nowhere extends Agent {
      override createConnection() {
        const socket = new Socket();
        process.nextTick(() => socket.destroy(Object.assign(new Error(), { code: 'EHOSTUNREACH' })));
        return socket;
      }
    }
    const report = await preflight({ url: 'http://127.0.0.1:9/', agent: new Nowhere() });
    assert.deepEqual([stepsOf(report), lastOf(report)], [['!tcp'], 'EHOSTUNREACH']);
  });

  test('fails at the step tls if the bank does not use TLS', async (t) => {
    const url = await startServer(t, status(200));
    const report = await runPreflight(t, url.replace('http:', 'https:'));
    assert.deepEqual(stepsOf(report), ['tcp', '!tls']);
  });

  test('fails at the step certificate if the issuer is not trusted', async (t) => {
    const agent = new TlsAgent();
    t.after(() => agent.destroy());
    const report = await preflight({ url: await startServer(t, status(200), certificate), agent });
    assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!certificate']]);
    assert.match(lastOf(report), /SELF_SIGNED/);
  });

  test('fails at the step certificate if the certificate is for another host name', async (t) => {
    const agent = new TlsAgent({ ca: certificate, servername: 'elsewhere.example' });
    t.after(() => agent.destroy());
    const report = await preflight({ url: await startServer(t, status(200), certificate), agent });
    assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!certificate']]);
    assert.equal(lastOf(report), 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  for (const [why, from, until] of [
    ['has expired', '2020-01-01', '2020-12-31'],
    ['is not valid yet', '2040-01-01', '2049-12-31'],
  ] as const) {
    test(`fails at the step certificate if it ${why}`, async (t) => {
      const cert = certificateValid(from, until);
      const report = await runPreflight(t, await startServer(t, status(200), cert), cert);
      assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!certificate']]);
      assert.match(lastOf(report), /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/);
    });
  }

  for (const [what, head] of [
    ['to a named one', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'],
    ['to an unnamed one', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ] as const) {
    test(`fails at the step answer if the bank switches protocols, ${what}`, async (t) => {
      const { port } = await startPlainServer(t, (socket) => void socket.write(head));
      const report = await runPreflight(t, `http://127.0.0.1:${port}/`);
      assert.deepEqual([stepsOf(report), lastOf(report)], [['tcp', '!answer'], 'status 101']);
    });
  }

  for (const code of [500, 503]) {
    test(`fails at the step answer if the status is ${code}`, async (t) => {
      const report = await runPreflight(t, await startServer(t, status(code)));
      assert.deepEqual(
        [report.ok, stepsOf(report), lastOf(report)],
        [false, ['tcp', '!answer'], `status ${code}`],
      );
    });
  }

  test('fails at the step answer if the connection ends without a response', async (t) => {
    const server = await startPlainServer(t, (socket) => void socket.end());
    const report = await runPreflight(t, `http://127.0.0.1:${server.port}/`);
    assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!answer']]);
  });

  for (const [scheme, step] of [
    ['http', '!answer'],
    ['https', '!tls'],
  ] as const) {
    test(`fails after five seconds without a response and closes the connection, over ${scheme}`, async (t) => {
      const limit = new AbortController();
      const timeout = t.mock.method(AbortSignal, 'timeout', () => limit.signal);
      const server = await startPlainServer(t);
      const report = runPreflight(t, `${scheme}://127.0.0.1:${server.port}/`);
      await until(5_000, 'the bank has received data', () => server.received !== '');
      assert.deepEqual(timeout.mock.calls[0]?.arguments, [5_000]);
      limit.abort();
      assert.deepEqual(stepsOf(await report), ['tcp', step]);
      assert.equal(lastOf(await report), 'timed out after 5000 ms');
      await until(5_000, 'the connection is closed', () => server.connections[0]?.destroyed === true);
    });
  }
});
