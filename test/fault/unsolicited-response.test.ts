import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { callOn, methods, startWithPayment } from './fault-contract.ts';

/**
 * Response queue poisoning, by an attack or a bug of the bank: a second response waits on an idle connection, and the next
 * call, possibly of another tenant, would receive it.
 */
describe('unsolicited second response of the bank', { concurrency: 8 }, () => {
  for (const method of methods) {
    test(`is discarded if it follows the response to a ${method} immediately`, async (t) => {
      const setup = await startWithPayment(t);
      const { bank, gateway } = setup;
      const before = bank.requests.length;
      bank.injectFault({ name: 'two-answers' }, { times: 1 });

      const first = await within(4_000, 'an answer', call(gateway.url, callOn(setup, method)));
      assert.ok(first.status < 300);
      assert.doesNotMatch(first.text, /ACCC/);

      for (let round = 0; round < 5; round++) {
        const next = await within(4_000, 'the next answer', call(gateway.url, callOn(setup, 'GET')));
        assert.equal(next.status, 200);
        assert.match(next.text, /instructedAmount/, 'its own response');
      }
      assert.equal(bank.requests.length - before, 6);
    });
  }

  test('is discarded if it follows a moment later, while the next call waits for the connection', async (t) => {
    const bank = await startPlainServer(t, (socket) => {
      socket.write(
        responseWith('own'),
        () => void setTimeout(() => socket.write(responseWith('foreign')), 1),
      );
    });
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: `http://127.0.0.1:${bank.port}` } },
      upstream: { maxSockets: 1 },
      shaping: { maxConcurrent: 1 },
    });
    const request = () => call(gateway.url, newCall('GET', `${transfersPath}/one`));
    const replies = await within(8_000, 'all responses', Promise.all(Array.from({ length: 50 }, request)));
    assert.deepEqual(new Set(replies.map(({ text }) => text)), new Set(['"own"']));
  });

  test('is discarded if it arrives on an idle connection', async (t) => {
    const bank = await startPlainServer(t, (socket) => void socket.write(responseWith('own')));
    const environments = { sandbox: { baseUrl: `http://127.0.0.1:${bank.port}` } };
    const gateway = await startGateway(t, { environments });
    const get = () =>
      within(4_000, 'an answer', call(gateway.url, newCall('GET', `${transfersPath}/a-payment`)));

    for (let round = 0; round < 20; round++) {
      assert.equal((await get()).text, '"own"');
      const socket = bank.connections.at(-1);
      await new Promise<void>((sent) => socket?.write(responseWith('foreign'), () => sent()));
      await until(2_000, 'it has left the bank', () => socket?.writableLength === 0);
    }
    assert.equal((await get()).text, '"own"');
  });
});

const responseWith = (word: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${word.length + 2}\r\n\r\n"${word}"`;
