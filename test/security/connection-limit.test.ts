import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { requestText } from '../kit/attack.ts';
import { startPlainListener } from '../kit/plain-listener.ts';
import { connectRaw, type RawConnection, sendRaw } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

const maxConnections = 20;
const get = (path = '/') => requestText(`GET ${path} HTTP/1.1`);

/** A listener with few connections, which answers every request except `/never`. */
async function startSmallDoor(t: TestContext) {
  const dropped = { count: 0 };
  const limits = { maxConnections, headersTimeout: 60_000, requestTimeout: 60_000 };
  const plainListener = await startPlainListener(
    t,
    (request, response) => {
      if (request.url !== '/never') response.end('ok');
    },
    limits,
  );
  plainListener.listener.server.on('drop', () => dropped.count++);
  const hold = async (bytes: string): Promise<RawConnection> => {
    const connection = await connectRaw(plainListener.port);
    t.after(connection.destroy);
    connection.send(bytes);
    return connection;
  };
  return { ...plainListener, dropped, hold };
}

/*
 * Attack: the attacker opens as many connections as possible and leaves them open. Each costs memory and a file
 * descriptor, and when those are used up, no other client can connect.
 */
describe('connections beyond the limit', () => {
  test('E4: are closed without a response, and new ones are accepted after others are closed', async (t) => {
    const { port, dropped, hold } = await startSmallDoor(t);
    const held = [];
    for (let count = 0; count < maxConnections; count++) held.push(await hold('GET / HT'));
    const excess = await hold(get());
    await excess.closed();
    assert.equal(excess.unread(), '');
    assert.equal(dropped.count, 1);

    held[7]?.send(`TP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal((await held[7]?.answer())?.status, 200);
    held[0]?.destroy();
    await until(5_000, 'a connection is accepted', () =>
      sendRaw(port, get()).then(({ status }) => status === 200, refused),
    );
  });

  test('E4: close the connections that are idle for longest, and none that waits for a response', async (t) => {
    const { dropped, hold } = await startSmallDoor(t);
    const busy = await hold(get('/never'));
    const idle = [];
    for (let count = 0; count < maxConnections - 2; count++) {
      const connection = await hold(get());
      assert.equal((await connection.answer()).status, 200);
      idle.push(connection);
    }
    idle[0]?.send(get());
    assert.equal((await idle[0]?.answer())?.status, 200);

    for (let count = 0; count < 3; count++) {
      const newcomer = await hold(get());
      assert.equal((await newcomer.answer()).status, 200);
    }
    await idle[1]?.closed();
    idle[0]?.send(get());
    assert.equal((await idle[0]?.answer())?.status, 200);
    assert.equal(busy.unread(), '');
    assert.equal(dropped.count, 0);
  });
});

const refused = () => false;
