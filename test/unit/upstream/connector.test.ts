/** How connections to a bank are made: a network on this machine, and certificates of an authority of our own. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer, type SecureVersion, TLSSocket } from 'node:tls';
import { createConnector } from '../../../src/upstream/connector.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { listen } from '../../kit/ports.ts';
import { within } from '../../kit/within.ts';

/** A bank that says a word to everybody, and what to believe of it. */
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

/** Reads a connection to its end: the session comes behind the handshake. @returns whether it went on with an older one */
async function goesOn(connector: ReturnType<typeof createConnector>): Promise<boolean> {
  const socket = connector();
  assert.ok(socket instanceof TLSSocket);
  await within(2_000, 'a handshake', once(socket, 'secureConnect'));
  const isReused = socket.isSessionReused();
  await within(2_000, 'the end of a connection', once(socket.resume(), 'close'));
  return isReused;
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
  test(`the session of one connection goes on in the next: ${maxVersion}`, async (t) => {
    const { port, ca } = await startBank(t, maxVersion);
    const connector = createConnector(`https://localhost:${port}`, { ca });
    assert.equal(await goesOn(connector), false);
    assert.equal(await goesOn(connector), true);
  });

test('after a connection that failed the next one begins without a session', async (t) => {
  const { port, ca } = await startBank(t);
  const connector = createConnector(`https://localhost:${port}`, { ca });
  await goesOn(connector);
  const failed = connector();
  failed.destroy(new Error('on purpose'));
  await assert.rejects(once(failed, 'close'), { message: 'on purpose' });
  assert.equal(await goesOn(connector), false);
});

test('a bank at an address without a name is believed by that address, and none for another name', async (t) => {
  const { port, ca } = await startBank(t);
  await goesOn(createConnector(`https://127.0.0.1:${port}`, { ca }));
  const expectsAnother = createConnector(`https://127.0.0.1:${port}`, { ca, servername: 'bank.example' });
  await assert.rejects(goesOn(expectsAnother), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});

test('an address of IPv6 stands in brackets', async (t) => {
  const server: Server = createTcpServer((socket) => socket.end());
  t.after(() => server.close());
  await once(server.listen(0, '::1'), 'listening');
  const { port } = server.address() as AddressInfo; // an address object, because it listens on a port
  const socket = createConnector(`http://[::1]:${port}`, {})();
  await within(2_000, 'a connection', once(socket, 'connect'));
  assert.equal(socket.remoteAddress, '::1');
  socket.destroy();
});
