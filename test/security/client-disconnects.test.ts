import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  type AttackTarget,
  assertServes,
  initiation,
  newStatusPath,
  requestText,
  statusRead,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { connectRaw, onConnection } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

const body = '{"amount":1}';
const payment = () => initiation(body, `Content-Length: ${body.length}`);
const slowBank = { name: 'latency', ms: 150, strikes: 'before-effect' } as const;

/** Waits for a log line that contains all words. */
async function assertLogged({ gateway }: AttackTarget, ...words: readonly string[]): Promise<void> {
  const matches = (line: string) => words.every((word) => line.includes(word));
  await until(2_000, `the log contains ${words}`, () => gateway.logLines.some(matches));
}

/** Fails the test if an error is not caught. */
function watchProcess(t: TestContext): void {
  const thrown: unknown[] = [];
  const record = (error: unknown) => void thrown.push(error);
  process.on('uncaughtException', record).on('unhandledRejection', record);
  t.after(() => {
    process.off('uncaughtException', record).off('unhandledRejection', record);
    assert.deepEqual(thrown, []);
  });
}

/*
 * Attack: the attacker, or a bad network, breaks off a payment. Half a payment that is forwarded would be another payment; a
 * payment that is aborted on its way to the bank would have an unknown outcome.
 */
describe('a TPP that stops in the middle of its request', () => {
  const halves: Readonly<Record<string, string>> = {
    'in the middle of a body': initiation(body.slice(0, 5), `Content-Length: ${body.length}`),
    'before the body': initiation('', `Content-Length: ${body.length}`),
    'in the middle of a chunk': initiation('c\r\n{"amo', 'Transfer-Encoding: chunked'),
    'between two chunks': initiation('2\r\n{}\r\n', 'Transfer-Encoding: chunked'),
    'before the last line end': initiation('2\r\n{}\r\n0\r\n', 'Transfer-Encoding: chunked'),
  };
  for (const [name, bytes] of Object.entries(halves)) {
    test(`E7: gets 408 if it ends its side ${name}, and the bank receives nothing`, async (t) => {
      watchProcess(t);
      const line = await startGatewayWithBank(t);
      await onConnection(line.gateway.port, async (connection) => {
        connection.send(bytes);
        connection.end();
        const { status, headers } = await connection.answer();
        assert.deepEqual([status, headers.get('penstock-error')], [408, 'REQUEST_TIMEOUT']);
        await connection.closed(1_000);
      });
      assert.equal(line.bank.requests.length, 0);
      await assertLogged(line, 'REQUEST_TIMEOUT', 'is incomplete');
      await assertServes(line);
    });

    test(`E7: is logged as REQUEST_TIMEOUT if it disconnects ${name}, and the bank receives nothing`, async (t) => {
      watchProcess(t);
      const line = await startGatewayWithBank(t);
      const connection = await connectRaw(line.gateway.port);
      connection.send(bytes.replace('\r\n', '\r\nExpect: 100-continue\r\n'));
      await until(2_000, 'the gateway reads the body', () => connection.unread() !== '');
      connection.destroy();
      await assertLogged(line, 'REQUEST_TIMEOUT', 'is incomplete');
      assert.equal(line.bank.requests.length, 0);
      await assertServes(line);
    });
  }

  test('E7: gets 408 if it ends its side in the middle of the head', async (t) => {
    const line = await startGatewayWithBank(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(`GET ${newStatusPath()} HTTP/1.1\r\nHost: ga`);
      connection.end();
      assert.equal((await connection.answer()).status, 408);
    });
    assert.equal(line.bank.requests.length, 0);
  });

  test('E7: is not logged if it has sent nothing', async (t) => {
    const line = await startGatewayWithBank(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.end();
      await connection.closed(1_000);
    });
    await assertServes(line);
    assert.ok(line.gateway.logLines.every((text) => !text.includes('refused')));
  });
});

describe('a TPP that ends its side after its requests', () => {
  for (const [name, bytes, status] of [
    ['a payment', payment, 201],
    ['a read', statusRead, 404],
    ['a refused read', () => requestText('GET /nowhere HTTP/1.1'), 404],
  ] as const) {
    test(`E7: gets the response to ${name}, and then the connection is closed`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      bank.injectFault(slowBank);
      await onConnection(gateway.port, async (connection) => {
        connection.send(bytes());
        connection.end();
        assert.equal((await connection.answer()).status, status);
        await connection.closed();
      });
    });
  }

  test('E7: gets the responses to all its requests', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault(slowBank);
    await onConnection(gateway.port, async (connection) => {
      connection.send(statusRead() + payment() + statusRead());
      connection.end();
      const statuses = [];
      for (const _ of [1, 2, 3]) statuses.push((await connection.answer()).status);
      assert.deepEqual(statuses, [404, 201, 404]);
      await connection.closed();
    });
  });
});

describe('a TPP that disconnects while the bank processes its request', () => {
  test('E7: has its payment completed exactly once', async (t) => {
    watchProcess(t);
    const line = await startGatewayWithBank(t);
    line.bank.injectFault(slowBank);
    const connection = await connectRaw(line.gateway.port);
    connection.send(payment());
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

  test('E7: has its read completed, and other TPPs are served', async (t) => {
    watchProcess(t);
    const line = await startGatewayWithBank(t);
    line.bank.injectFault(slowBank);
    const connection = await connectRaw(line.gateway.port);
    connection.send(statusRead());
    await line.bank.waitUntil(() => line.bank.requests.length === 1);
    connection.destroy();
    await assertLogged(line, '"request"', '"status":404');
    line.bank.clearFaults();
    await assertServes(line);
  });

  test('E7: does not affect other TPPs if it disconnects during a large response', async (t) => {
    watchProcess(t);
    const line = await startGatewayWithBank(t);
    line.bank.injectFault({ name: 'huge-answer', bytes: 3 * 1024 * 1024 }, { times: 1 });
    const connection = await connectRaw(line.gateway.port);
    connection.send(payment());
    await until(5_000, 'the response has begun', () => connection.unread() !== '');
    connection.destroy();
    await assertServes(line);
  });
});
