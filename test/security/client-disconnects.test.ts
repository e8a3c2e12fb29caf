import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  assertServes,
  initiation,
  type Line,
  newStatusPath,
  requestText,
  statusRead,
} from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { connectRaw, onConnection } from '../kit/raw.ts';
import { until } from '../kit/within.ts';

const body = '{"amount":1}';
const whole = () => initiation(body, `Content-Length: ${body.length}`);
const slowly = { name: 'latency', ms: 150, strikes: 'before-effect' } as const;

/** Waits for a line of the log that says all of this. */
async function assertLogged({ gateway }: Line, ...words: readonly string[]): Promise<void> {
  const says = (line: string) => words.every((word) => line.includes(word));
  await until(2_000, `the log says ${words}`, () => gateway.logLines.some(says));
}

/** Fails the test if anything is thrown that nobody catches. */
function watchProcess(t: TestContext): void {
  const thrown: unknown[] = [];
  const hear = (error: unknown) => void thrown.push(error);
  process.on('uncaughtException', hear).on('unhandledRejection', hear);
  t.after(() => {
    process.off('uncaughtException', hear).off('unhandledRejection', hear);
    assert.deepEqual(thrown, []);
  });
}

/*
 * The story: the attacker, or a bad line, breaks off a payment in the middle. Half a payment that is sent on would be
 * another payment; a payment torn down on its way would have an outcome that nobody knows.
 */
describe('a TPP that leaves', () => {
  const halves: Readonly<Record<string, string>> = {
    'in the middle of a body': initiation(body.slice(0, 5), `Content-Length: ${body.length}`),
    'before the body': initiation('', `Content-Length: ${body.length}`),
    'in the middle of a chunk': initiation('c\r\n{"amo', 'Transfer-Encoding: chunked'),
    'between two chunks': initiation('2\r\n{}\r\n', 'Transfer-Encoding: chunked'),
    'before the last line end': initiation('2\r\n{}\r\n0\r\n', 'Transfer-Encoding: chunked'),
  };
  for (const [name, bytes] of Object.entries(halves)) {
    test(`E7: ${name}, politely: is told so, and the bank sees nothing`, async (t) => {
      watchProcess(t);
      const line = await startLine(t);
      await onConnection(line.gateway.port, async (connection) => {
        connection.send(bytes);
        connection.end();
        const { status, headers } = await connection.answer();
        assert.deepEqual([status, headers.get('penstock-error')], [408, 'REQUEST_TIMEOUT']);
        await connection.closed(1_000);
      });
      assert.equal(line.bank.requests.length, 0);
      await assertLogged(line, 'REQUEST_TIMEOUT', 'not sent to its end');
      await assertServes(line);
    });

    test(`E7: ${name}, by hanging up: the log says so, and the bank sees nothing`, async (t) => {
      watchProcess(t);
      const line = await startLine(t);
      const connection = await connectRaw(line.gateway.port);
      connection.send(bytes.replace('\r\n', '\r\nExpect: 100-continue\r\n'));
      await until(2_000, 'the gateway has begun to read', () => connection.unread() !== '');
      connection.destroy();
      await assertLogged(line, 'REQUEST_TIMEOUT', 'not sent to its end');
      assert.equal(line.bank.requests.length, 0);
      await assertServes(line);
    });
  }

  test('E7: in the middle of the head is told so', async (t) => {
    const line = await startLine(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(`GET ${newStatusPath()} HTTP/1.1\r\nHost: ga`);
      connection.end();
      assert.equal((await connection.answer()).status, 408);
    });
    assert.equal(line.bank.requests.length, 0);
  });

  test('E7: before it says a word is no event at all', async (t) => {
    const line = await startLine(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.end();
      await connection.closed(1_000);
    });
    await assertServes(line);
    assert.ok(line.gateway.logLines.every((text) => !text.includes('refused')));
  });
});

describe('a TPP that has sent everything and ends its side', () => {
  for (const [name, bytes, status] of [
    ['a payment', whole, 201],
    ['a read', statusRead, 404],
    ['a refused read', () => requestText('GET /nowhere HTTP/1.1'), 404],
  ] as const) {
    test(`E7: still gets its answer to ${name}, and then the connection is closed`, async (t) => {
      const { bank, gateway } = await startLine(t);
      bank.injectFault(slowly);
      await onConnection(gateway.port, async (connection) => {
        connection.send(bytes());
        connection.end();
        assert.equal((await connection.answer()).status, status);
        await connection.closed();
      });
    });
  }

  test('E7: gets all its answers, if it asked several times', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault(slowly);
    await onConnection(gateway.port, async (connection) => {
      connection.send(statusRead() + whole() + statusRead());
      connection.end();
      const statuses = [];
      for (const _ of [1, 2, 3]) statuses.push((await connection.answer()).status);
      assert.deepEqual(statuses, [404, 201, 404]);
      await connection.closed();
    });
  });
});

describe('a TPP that hangs up while the bank is at work', () => {
  test('E7: its payment is carried out, once and to the end', async (t) => {
    watchProcess(t);
    const line = await startLine(t);
    line.bank.injectFault(slowly);
    const connection = await connectRaw(line.gateway.port);
    connection.send(whole());
    await line.bank.waitUntil(() => line.bank.requests.length === 1);
    connection.destroy();
    await line.bank.waitUntil(() => line.bank.payments.length === 1);
    await assertLogged(line, '"request"', '"status":201');
    line.bank.clearFaults();
    await assertServes(line);
    assert.deepEqual(
      line.bank.requests.map(({ method }) => method),
      ['POST', 'GET'],
    );
  });

  test('E7: its read is finished, too, and harms nobody', async (t) => {
    watchProcess(t);
    const line = await startLine(t);
    line.bank.injectFault(slowly);
    const connection = await connectRaw(line.gateway.port);
    connection.send(statusRead());
    await line.bank.waitUntil(() => line.bank.requests.length === 1);
    connection.destroy();
    await assertLogged(line, '"request"', '"status":404');
    line.bank.clearFaults();
    await assertServes(line);
  });

  test('E7: in the middle of a large answer harms nobody', async (t) => {
    watchProcess(t);
    const line = await startLine(t);
    line.bank.injectFault({ name: 'huge-answer', bytes: 3 * 1024 * 1024 }, { times: 1 });
    const connection = await connectRaw(line.gateway.port);
    connection.send(whole());
    await until(5_000, 'the answer has begun', () => connection.unread() !== '');
    connection.destroy();
    await assertServes(line);
  });
});
