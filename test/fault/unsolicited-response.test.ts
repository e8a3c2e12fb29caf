import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { newCall, transfers } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { callOn, methods, startWithPayment } from './fault-contract.ts';

/**
 * The attack, or the bank's bug (response queue poisoning): a second answer lies on a kept connection, and
 * whoever calls next, perhaps another tenant, is given what was never meant for them.
 */
describe('a second answer to one request never reaches anybody', { concurrency: true }, () => {
  for (const method of methods) {
    test(`sent right behind the answer to a ${method}`, async (t) => {
      const line = await startWithPayment(t);
      const { bank, gateway } = line;
      const before = bank.requests.length;
      bank.injectFault({ name: 'two-answers' }, { times: 1 });

      const first = await within(4_000, 'an answer', call(gateway.url, callOn(line, method)));
      assert.ok(first.status < 300);
      assert.doesNotMatch(first.text, /ACCC/);

      for (let round = 0; round < 5; round++) {
        const next = await within(4_000, 'the next answer', call(gateway.url, callOn(line, 'GET')));
        assert.equal(next.status, 200);
        assert.match(next.text, /instructedAmount/, 'its own answer');
      }
      assert.equal(bank.requests.length - before, 6);
    });
  }

  test('sent a moment after every answer, although the next call waits for the connection', async (t) => {
    const bank = await startPlainServer(t, (socket) => {
      socket.write(answerOf('own'), () => void setTimeout(() => socket.write(answerOf('foreign')), 1));
    });
    const gateway = await startGateway(t, {
      environments: { sandbox: { baseUrl: `http://127.0.0.1:${bank.port}` } },
      upstream: { maxSockets: 1 },
      shaping: { maxConcurrent: 1 },
    });
    const request = () => call(gateway.url, newCall('GET', `${transfers}/one`));
    const replies = await within(8_000, 'all answers', Promise.all(Array.from({ length: 50 }, request)));
    assert.deepEqual(new Set(replies.map(({ text }) => text)), new Set(['"own"']));
  });

  test('sent later, while the connection lies unused', async (t) => {
    const bank = await startPlainServer(t, (socket) => void socket.write(answerOf('own')));
    const environments = { sandbox: { baseUrl: `http://127.0.0.1:${bank.port}` } };
    const gateway = await startGateway(t, { environments });
    const get = () => within(4_000, 'an answer', call(gateway.url, newCall('GET', `${transfers}/a-payment`)));

    for (let round = 0; round < 20; round++) {
      assert.equal((await get()).text, '"own"');
      const socket = bank.connections.at(-1);
      await new Promise<void>((sent) => socket?.write(answerOf('foreign'), () => sent()));
      await until(2_000, 'it has left the bank', () => socket?.writableLength === 0);
    }
    assert.equal((await get()).text, '"own"');
  });
});

const answerOf = (word: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${word.length + 2}\r\n\r\n"${word}"`;
