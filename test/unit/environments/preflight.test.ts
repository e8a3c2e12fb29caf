import assert from 'node:assert/strict';
import { Agent, createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer, Agent as TlsAgent } from 'node:https';
import { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { type PreflightReport, preflight } from '../../../src/environments/preflight.ts';
import { startPlainServer } from '../../kit/plain-server.ts';
import { freePort, listen } from '../../kit/ports.ts';
import { until, within } from '../../kit/within.ts';
import { certificate, certificateValid, key } from '../simulated-bank/certificate.ts';

/** A bank that gives this answer; on https with this certificate, if there is one. @returns its address */
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

/** One pre-flight over connections of its own, believing this authority. */
async function flight(t: TestContext, url: string, ca = certificate): Promise<PreflightReport> {
  const agent = url.startsWith('https:')
    ? new TlsAgent({ ca, keepAlive: true })
    : new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  return within(10_000, 'the report', preflight({ url, agent }));
}

/** The steps in short: `tcp`, or `!tcp` where it ended. */
const stepsOf = ({ steps }: PreflightReport) => steps.map(({ step, ok }) => (ok ? step : `!${step}`));
const lastOf = ({ steps }: PreflightReport) => steps.at(-1)?.detail ?? '';

describe('a pre-flight succeeds', () => {
  test('if the bank answers, and tells each step', async (t) => {
    const report = await flight(t, await startServer(t, status(200)));
    assert.equal(report.ok, true);
    assert.deepEqual(stepsOf(report), ['tcp', 'answer']);
    assert.equal(lastOf(report), 'status 200');
  });

  test('over TLS, and tells the version and until when the certificate is valid', async (t) => {
    const report = await flight(t, await startServer(t, status(200), certificate));
    assert.equal(report.ok, true);
    assert.deepEqual(stepsOf(report), ['tcp', 'tls', 'certificate', 'answer']);
    assert.deepEqual(
      report.steps.slice(1, 3).map(({ detail }) => detail),
      ['TLSv1.3', 'valid until Dec 31 23:59:59 2049 GMT'],
    );
  });

  test('with a name that has to be found first, and tells the address', async (t) => {
    const url = await startServer(t, status(200));
    const report = await flight(t, url.replace('127.0.0.1', 'localhost'));
    assert.deepEqual(stepsOf(report), ['dns', 'tcp', 'answer']);
    assert.match(report.steps[0]?.detail ?? '', /^(127\.0\.0\.1|::1)$/);
  });

  for (const code of [301, 401, 404, 499]) {
    test(`if the answer is ${code}: whoever answers is there`, async (t) => {
      assert.equal((await flight(t, await startServer(t, status(code)))).ok, true);
    });
  }

  test('without reading the answer to its end', async (t) => {
    const endless: RequestListener = (_request, response) => void response.writeHead(200).write('it goes on');
    assert.equal((await flight(t, await startServer(t, endless))).ok, true);
  });

  test('with one GET of the given path, which carries nothing', async (t) => {
    const seen: string[] = [];
    const url = await startServer(t, (request, response) => {
      seen.push(`${request.method} ${request.url} ${JSON.stringify(request.headers.authorization)}`);
      response.end();
    });
    await flight(t, `${url}psd2/probe`);
    assert.deepEqual(seen, ['GET /psd2/probe undefined']);
  });
});

describe('a pre-flight fails', () => {
  test('if the name cannot be found', async (t) => {
    const report = await flight(t, 'https://nowhere.invalid/');
    assert.equal(report.ok, false);
    assert.deepEqual(stepsOf(report), ['!dns']);
  });

  test('if the connection is refused, by address or by name', async (t) => {
    const port = await freePort();
    const byAddress = await flight(t, `http://127.0.0.1:${port}/`);
    assert.deepEqual([stepsOf(byAddress), lastOf(byAddress)], [['!tcp'], 'ECONNREFUSED']);
    assert.equal(stepsOf(await flight(t, `http://localhost:${port}/`)).at(-1), '!tcp');
  });

  test('if no connection can be made to an address: no name is to blame', async () => {
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

  test('if the bank speaks no TLS where it should', async (t) => {
    const url = await startServer(t, status(200));
    const report = await flight(t, url.replace('http:', 'https:'));
    assert.deepEqual(stepsOf(report), ['tcp', '!tls']);
  });

  test('if nobody vouches for the certificate', async (t) => {
    const agent = new TlsAgent();
    t.after(() => agent.destroy());
    const report = await preflight({ url: await startServer(t, status(200), certificate), agent });
    assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!certificate']]);
    assert.match(lastOf(report), /SELF_SIGNED/);
  });

  test('if the certificate is for another name', async (t) => {
    const agent = new TlsAgent({ ca: certificate, servername: 'elsewhere.example' });
    t.after(() => agent.destroy());
    const report = await preflight({ url: await startServer(t, status(200), certificate), agent });
    assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!certificate']]);
    assert.equal(lastOf(report), 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  for (const [why, from, until] of [
    ['has expired', '200101000000Z', '201231235959Z'],
    ['is not valid yet', '400101000000Z', '491231235959Z'],
  ] as const) {
    test(`if the certificate ${why}`, async (t) => {
      const cert = certificateValid(from, until);
      const report = await flight(t, await startServer(t, status(200), cert), cert);
      assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!certificate']]);
      assert.match(lastOf(report), /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/);
    });
  }

  for (const [what, head] of [
    [
      'of another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n',
    ],
    ['that says so without naming one', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ] as const) {
    test(`if the answer is the beginning ${what}: no payment would get another one`, async (t) => {
      const { port } = await startPlainServer(t, (socket) => void socket.write(head));
      const report = await flight(t, `http://127.0.0.1:${port}/`);
      assert.deepEqual([stepsOf(report), lastOf(report)], [['tcp', '!answer'], 'status 101']);
    });
  }

  for (const code of [500, 503]) {
    test(`if the answer is ${code}`, async (t) => {
      const report = await flight(t, await startServer(t, status(code)));
      assert.deepEqual(
        [report.ok, stepsOf(report), lastOf(report)],
        [false, ['tcp', '!answer'], `status ${code}`],
      );
    });
  }

  test('if the connection ends without an answer', async (t) => {
    const server = await startPlainServer(t, (socket) => void socket.end());
    const report = await flight(t, `http://127.0.0.1:${server.port}/`);
    assert.deepEqual([report.ok, stepsOf(report)], [false, ['tcp', '!answer']]);
  });

  for (const [scheme, step] of [
    ['http', '!answer'],
    ['https', '!tls'],
  ] as const) {
    test(`after five seconds if the bank is silent, over ${scheme}, and hangs up`, async (t) => {
      const limit = new AbortController();
      const timeout = t.mock.method(AbortSignal, 'timeout', () => limit.signal);
      const server = await startPlainServer(t);
      const report = flight(t, `${scheme}://127.0.0.1:${server.port}/`);
      await until(5_000, 'the bank has heard something', () => server.received !== '');
      assert.deepEqual(timeout.mock.calls[0]?.arguments, [5_000]);
      limit.abort();
      assert.deepEqual(stepsOf(await report), ['tcp', step]);
      assert.equal(lastOf(await report), 'no success within 5000 ms');
      await until(5_000, 'the connection is closed', () => server.connections[0]?.destroyed === true);
    });
  }
});
