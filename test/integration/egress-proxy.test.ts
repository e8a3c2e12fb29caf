/** A proxy between the gateway and a bank that requires client certificates. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { createAuthority } from '../kit/openssl.ts';
import { listen } from '../kit/ports.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { skipWithoutTinyproxy, startTinyproxy } from '../kit/tinyproxy.ts';
import { outcomeOf } from '../kit/writes.ts';

const authority = createAuthority(scopeOfAllTests());
const [own, qwac] = [authority.issue('bank'), authority.issue('qwac')];

/** A bank that accepts only the client certificate, and its environment. */
async function startBankWithTls(t: TestContext, host = '127.0.0.1') {
  const tls = {
    cert: own.cert,
    key: own.key,
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: true,
  };
  const bank = await startBank(t, { tls });
  const { port } = new URL(bank.baseUrl);
  const environment = {
    baseUrl: `https://${host}:${port}`,
    tls: {
      caFile: authority.certFile,
      certFile: qwac.certFile,
      keyFile: qwac.keyFile,
      ...(host !== '127.0.0.1' && { serverName: 'localhost' }),
    },
  };
  return { bank, environments: { sandbox: environment } };
}

/** Sends a payment, and its repeat. @returns the outcomes */
async function payTwice(gateway: { readonly url: string }): Promise<readonly string[]> {
  const requestId = randomUUID();
  const pay = async () => outcomeOf(await call(gateway.url, { ...initiation, requestId }));
  return [await pay(), await pay()];
}

function credentialsFile(t: TestContext, credentials: string): string {
  const file = join(temporaryFolder(t), 'proxy-credentials');
  writeFileSync(file, `${credentials}\n`);
  return file;
}

describe('calls through a proxy', { skip: skipWithoutTinyproxy }, () => {
  test('reach a bank that requires a client certificate, on connections that are used again', async (t) => {
    const { bank, environments } = await startBankWithTls(t);
    const proxy = await startTinyproxy(t, 'BasicAuth gateway secret-of-the-proxy');
    const proxyCredentialsFile = credentialsFile(t, 'gateway:secret-of-the-proxy');
    const gateway = await startGateway(t, {
      environments,
      upstream: { proxy: proxy.url, proxyCredentialsFile },
    });
    assert.deepEqual(await payTwice(gateway), ['201', '201 replayed']);
    const path = `${transfersPath}/${bank.payments[0]?.paymentId}`;
    for (let count = 0; count < 20; count++)
      assert.equal((await call(gateway.url, { method: 'GET', path })).status, 200);
    assert.equal(bank.requests.length, 21);
    assert.ok(bank.connections < 21, `${bank.connections} connections`);
    const { rawHeaders } = bank.requests[0] ?? assert.fail();
    assert.ok(
      !rawHeaders.some((field) => /^(proxy-|via$)/i.test(field)),
      'the bank learns nothing of the proxy',
    );
    assert.ok(!gateway.logLines.some((line) => line.includes('secret-of-the-proxy')));
  });

  test('also reach a bank without TLS, and large bodies pass', async (t) => {
    const bank = await startBank(t);
    const proxy = await startTinyproxy(t);
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      upstream: { proxy: proxy.url },
    });
    const body = JSON.stringify({ ...JSON.parse(String(initiation.body)), more: 'x'.repeat(900_000) });
    const reply = await call(gateway.url, { ...initiation, body });
    assert.equal(reply.status, 201);
    assert.equal(bank.requests[0]?.body.length, body.length);
    const read = await call(gateway.url, {
      method: 'GET',
      path: `${transfersPath}/${jsonOf(reply).paymentId}`,
    });
    assert.ok(read.body.length > 900_000);
  });

  for (const [why, lines, credentials] of [
    ['refuses the port of the bank', ['ConnectPort 1'], undefined],
    ['refuses the credentials', ['BasicAuth gateway right'], 'gateway:wrong'],
    ['demands credentials', ['BasicAuth gateway right'], undefined],
  ] as const)
    test(`are not sent if the proxy ${why}, and can be repeated`, async (t) => {
      const { bank, environments } = await startBankWithTls(t);
      const proxy = await startTinyproxy(t, ...lines);
      const proxyCredentialsFile = credentials === undefined ? null : credentialsFile(t, credentials);
      const gateway = await startGateway(t, {
        environments,
        upstream: { proxy: proxy.url, proxyCredentialsFile },
      });
      assert.deepEqual(await payTwice(gateway), ['502 UPSTREAM_UNREACHED', '502 UPSTREAM_UNREACHED']);
      assert.equal(bank.connections, 0);
      const { text } = await call(gateway.url, initiation);
      assert.match(text, /The proxy refused the connection to the bank \(40[137]\); nothing was sent/);
    });

  test('are in doubt if the proxy ends after a payment was sent', async (t) => {
    const { bank, environments } = await startBankWithTls(t);
    const proxy = await startTinyproxy(t);
    const gateway = await startGateway(t, { environments, upstream: { proxy: proxy.url } });
    const requestId = randomUUID();
    bank.injectFault({ name: 'never-answer' }, { times: 1 });
    const first = call(gateway.url, { ...initiation, requestId });
    await bank.waitUntil(() => bank.requests.length === 1);
    proxy.kill();
    assert.equal(outcomeOf(await first), '504 OUTCOME_UNKNOWN');
    assert.equal(outcomeOf(await call(gateway.url, { ...initiation, requestId })), '409 DUPLICATE_IN_DOUBT');
    assert.deepEqual(await payTwice(gateway), ['502 UPSTREAM_UNREACHED', '502 UPSTREAM_UNREACHED']);
    assert.equal(bank.requests.length, 1);
  });

  test('use HTTPS_PROXY and NO_PROXY if the configuration says so; otherwise a warning says that they do not', async (t) => {
    const { bank, environments } = await startBankWithTls(t);
    const proxy = await startTinyproxy(t, 'ConnectPort 1');
    const start = (upstream: object, variables: Readonly<Record<string, string>>) =>
      startGatewayProcess(
        t,
        { environments, upstream },
        { variables: { HTTPS_PROXY: proxy.url, ...variables } },
      );
    const [used, exempt, unused] = await Promise.all([
      start({ proxy: 'environment' }, {}),
      start({ proxy: 'environment' }, { NO_PROXY: '127.0.0.1' }),
      start({}, {}),
    ]);
    assert.deepEqual((await payTwice(used))[0], '502 UPSTREAM_UNREACHED');
    assert.equal(bank.connections, 0);
    assert.deepEqual((await payTwice(exempt))[0], '201');
    assert.deepEqual((await payTwice(unused))[0], '201');
    const warns = ({ logged }: typeof used) =>
      logged().some((line) => /HTTPS_PROXY is set/.test(JSON.stringify(line)));
    assert.deepEqual([used, exempt, unused].map(warns), [false, false, true]);
  });
});

describe('a tunnel', () => {
  /** A proxy that knows one name of its own. */
  async function startNamingProxy(t: TestContext, onTunnel: (client: Socket) => void) {
    const targets: string[] = [];
    const server = createServer().on('connect', ({ url = '' }: IncomingMessage, client: Socket) => {
      targets.push(url);
      const upstream = connect(Number(url.split(':')[1]), '127.0.0.1', () => {
        onTunnel(client);
        client.pipe(upstream).pipe(client);
      });
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        one.on('error', () => other.destroy()).on('close', () => other.destroy());
    });
    const port = await listen(server);
    t.after(() => server.close());
    return { url: `http://127.0.0.1:${port}`, targets };
  }

  test('leaves it to the proxy to look up the name of the bank', async (t) => {
    const { environments } = await startBankWithTls(t, 'bank.only-the-proxy-knows.invalid');
    const proxy = await startNamingProxy(t, (client) =>
      client.write('HTTP/1.1 200 Connection established\r\n\r\n'),
    );
    const gateway = await startGateway(t, { environments, upstream: { proxy: proxy.url } });
    assert.deepEqual(await payTwice(gateway), ['201', '201 replayed']);
    const { host } = new URL(environments.sandbox.baseUrl);
    assert.deepEqual([...new Set(proxy.targets)], [host]);
  });

  test('that does not open in time is UPSTREAM_UNREACHED after deadlines.connect', async (t) => {
    const { bank, environments } = await startBankWithTls(t);
    const proxy = await startNamingProxy(t, () => {});
    const gateway = await startGateway(t, {
      environments,
      upstream: { proxy: proxy.url },
      deadlines: { connect: '200ms' },
    });
    assert.deepEqual(await payTwice(gateway), ['502 UPSTREAM_UNREACHED', '502 UPSTREAM_UNREACHED']);
    assert.equal(bank.requests.length, 0);
  });

  test('to a server that is no proxy is UPSTREAM_UNREACHED', async (t) => {
    const { bank, environments } = await startBankWithTls(t);
    const other = await startBank(t);
    const gateway = await startGateway(t, { environments, upstream: { proxy: other.baseUrl } });
    assert.deepEqual((await payTwice(gateway))[0], '502 UPSTREAM_UNREACHED');
    assert.equal(bank.connections, 0);
  });

  const established = 'HTTP/1.1 200 Connection established\r\n\r\n';
  for (const [what, misbehave] of [
    ['closes the connection instead of an answer', (client) => client.destroy()],
    ['answers with something that is not HTTP', (client) => client.end('garbage\r\n\r\n')],
    [
      'answers with an endless header',
      (client) => client.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`),
    ],
    ['closes the tunnel at once', (client) => client.end(established)],
    ['resets the tunnel at once', (client) => client.write(established, () => client.resetAndDestroy())],
    [
      'sends data of its own through the tunnel',
      (client) => client.write(`${established}HTTP/1.1 201 Created\r\n\r\n`),
    ],
    ['opens the tunnel and then stays silent', (client) => client.write(established)],
    [
      'asks to switch protocols',
      (client) => client.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'),
    ],
  ] as const satisfies readonly (readonly [string, (client: Socket) => unknown])[])
    test(`of a proxy that ${what} is UPSTREAM_UNREACHED, and the gateway serves on`, async (t) => {
      const { bank, environments } = await startBankWithTls(t);
      const server = createServer().on('connect', (_request, client: Socket) => {
        client.on('error', () => {});
        misbehave(client);
      });
      const port = await listen(server);
      t.after(() => server.close());
      const upstream = { proxy: `http://127.0.0.1:${port}` };
      const gateway = await startGateway(t, { environments, upstream, deadlines: { connect: '500ms' } });
      assert.deepEqual(await payTwice(gateway), ['502 UPSTREAM_UNREACHED', '502 UPSTREAM_UNREACHED']);
      assert.equal(bank.requests.length, 0);
    });
});
