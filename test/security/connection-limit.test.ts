import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { requestText } from '../kit/attack.ts';
import { startDoor } from '../kit/plain-door.ts';
import { connectRaw, type RawConnection, sendRaw } from '../kit/raw.ts';
import { until } from '../kit/within.ts';

const maxConnections = 20;
const ask = (path = '/') => requestText(`GET ${path} HTTP/1.1`);

/** A door with few places that answers at once, but `/never`. */
async function startSmallDoor(t: TestContext) {
  const dropped = { count: 0, asked: 0 };
  const limits = { maxConnections, headersTimeout: 60_000, requestTimeout: 60_000 };
  const door = await startDoor(
    t,
    (request, answer) => {
      dropped.asked++;
      if (request.url !== '/never') answer.end('well');
    },
    limits,
  );
  door.listener.server.on('drop', () => dropped.count++);
  const hold = async (bytes: string): Promise<RawConnection> => {
    const connection = await connectRaw(door.port);
    t.after(connection.destroy);
    connection.send(bytes);
    return connection;
  };
  return { ...door, dropped, hold };
}

/*
 * The story: the attacker opens as many connections as its machine can, and leaves them open. Each costs memory and a
 * file descriptor, and when those are used up nobody else gets in.
 */
describe('more connections than the door takes', () => {
  test('E4: are closed, the others go on, and there is room again when some have left', async (t) => {
    const { port, dropped, hold } = await startSmallDoor(t);
    const held = [];
    for (let count = 0; count < maxConnections; count++) held.push(await hold('GET / HT'));
    const tooMany = await hold(ask());
    await tooMany.closed();
    assert.equal(tooMany.unread(), '');
    assert.equal(dropped.count, 1);

    held[7]?.send(`TP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal((await held[7]?.answer())?.status, 200);
    held[0]?.destroy();
    await until(5_000, 'there is room', () =>
      sendRaw(port, ask()).then(({ status }) => status === 200, refused),
    );
  });

  test('E4: make those go that only rest, the one that has rested longest first, and nobody who waits', async (t) => {
    const { dropped, hold } = await startSmallDoor(t);
    const busy = await hold(ask('/never'));
    const resting = [];
    for (let count = 0; count < maxConnections - 2; count++) {
      const connection = await hold(ask());
      assert.equal((await connection.answer()).status, 200);
      resting.push(connection);
    }
    resting[0]?.send(ask());
    assert.equal((await resting[0]?.answer())?.status, 200);

    for (let count = 0; count < 3; count++) {
      const latecomer = await hold(ask());
      assert.equal((await latecomer.answer()).status, 200);
    }
    await resting[1]?.closed();
    resting[0]?.send(ask());
    assert.equal((await resting[0]?.answer())?.status, 200);
    assert.equal(busy.unread(), '');
    assert.equal(dropped.count, 0);
  });
});

const refused = () => false;
