import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer, type SecureVersion, TLSSocket } from 'node:tls';
import { createConnector } from '../../../src/upstream/connector.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { listen } from '../../kit/ports.ts';
import { within } from '../../kit/within.ts';

/** A TLS server that sends a word on each connection. @returns its port and its CA certificate */
async function startBank(t: TestContext, maxVersion: SecureVersion = 'TLSv1.3') {
  const authority = createAuthority(t);
  const { cert, key } = authority.issue('bank');
  const server = createServer({ cert, key, maxVersion }, (socket) =>
    socket.on('error', () => {}).end('hello'),
  );
  server.on('tlsClientError', () => {});
  t.after(() => server.close());
  return { port: await listen(server), ca: authority.cert };
}

/** Connects and reads to the end: the session arrives after the handshake. @returns whether a session was resumed */
async function resumesSession(connector: ReturnType<typeof createConnector>): Promise<boolean> {
  const socket = connector();
  assert.ok(socket instanceof TLSSocket);
  await within(2_000, 'a handshake', once(socket, 'secureConnect'));
  const isReused = socket.isSessionReused();
  await within(2_000, 'the end of a connection', once(socket.resume(), 'close'));
  return isReused;
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
  test(`a connector resumes the TLS session of its last connection over ${maxVersion}`, async (t) => {
    const { port, ca } = await startBank(t, maxVersion);
    const connector = createConnector(`https://localhost:${port}`, { ca });
    assert.equal(await resumesSession(connector), false);
    assert.equal(await resumesSession(connector), true);
  });

test('a connector starts without a TLS session after a failed connection', async (t) => {
  const { port, ca } = await startBank(t);
  const connector = createConnector(`https://localhost:${port}`, { ca });
  await resumesSession(connector);
  const failed = connector();
  failed.destroy(new Error('simulated'));
  await assert.rejects(once(failed, 'close'), { message: 'simulated' });
  assert.equal(await resumesSession(connector), false);
});

test('a connector verifies an IP address in the certificate, and refuses one for another name', async (t) => {
  const { port, ca } = await startBank(t);
  await resumesSession(createConnector(`https://127.0.0.1:${port}`, { ca }));
  const withOtherName = createConnector(`https://127.0.0.1:${port}`, { ca, servername: 'bank.example' });
  await assert.rejects(resumesSession(withOtherName), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});

test('a connector accepts an IPv6 address in brackets', async (t) => {
  const server: Server = createTcpServer((socket) => socket.end());
  t.after(() => server.close());
  await once(server.listen(0, '::1'), 'listening');
  const { port } = server.address() as AddressInfo; // an address object, because it listens on a port
  const socket = createConnector(`http://[::1]:${port}`, {})();
  await within(2_000, 'a connection', once(socket, 'connect'));
  assert.equal(socket.remoteAddress, '::1');
  socket.destroy();
});
