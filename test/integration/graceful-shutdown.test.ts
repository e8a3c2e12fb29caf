/** A gateway that is told to end, by an operator or by the machine that it runs on. */

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { connectRaw } from '../kit/raw.ts';
import { statusRead } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';

const request = `GET ${statusRead.path} HTTP/1.1\r\nHost: gateway\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\n\r\n`;
const answer =
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{"transactionStatus":"ACSC"}';

/** A gateway with one request on its way, which the bank answers when it is told to. */
async function startBusy(t: TestContext) {
  const asked: Socket[] = [];
  const bank = await startPlainServer(t, (socket, piece) => {
    if (piece.includes('\r\n\r\n')) asked.push(socket);
  });
  const served = await startGatewayProcess(t, {
    environments: { bank: { baseUrl: `http://127.0.0.1:${bank.port}` } },
  });
  const tpp = await connectRaw(served.port);
  t.after(tpp.destroy);
  tpp.send(request);
  await until(10_000, 'the bank has been asked', () => asked.length === 1);
  return { ...served, tpp, answerIt: () => void asked[0]?.write(answer) };
}

describe('a gateway that is told to end (H1)', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`by ${signal} is not ready any more, lets the running request end with Connection: close, and exits with 0`, async (t) => {
      const { command, adminUrl, tpp, answerIt } = await startBusy(t);
      command.kill(signal);
      let last = '';
      await until(5_000, 'it is not ready any more', async () => {
        const { status, text } = await call(adminUrl, { method: 'GET', path: '/health/ready' });
        last = text;
        return status === 503;
      });
      const { status: readiness, reasons } = JSON.parse(last);
      assert.deepEqual([readiness, reasons[0]], ['not ready', 'draining']);
      assert.equal((await call(adminUrl, { method: 'GET', path: '/health/live' })).status, 200);

      answerIt();
      const { status, headers, body } = await tpp.answer();
      assert.deepEqual(
        [status, headers.get('connection'), body],
        [200, 'close', '{"transactionStatus":"ACSC"}'],
      );
      assert.equal(await command.exitCode(), 0);
      assert.match(command.stdout(), /"stopped"/);
      assert.equal(command.stderr(), '');
    });
  }

  test('still takes a new connection for as long as load balancers need to notice, and closes it behind the answer', async (t) => {
    const { command, url, answerIt } = await startBusy(t);
    command.kill('SIGTERM');
    await command.waitForOutput('"stopping');
    const { status, header } = await call(url, { method: 'GET', path: '/nothing' });
    assert.deepEqual([status, header('Connection')], [404, 'close']);
    answerIt();
    assert.equal(await command.exitCode(), 0);
  });

  test('a second time ends at once, whatever still runs, and says by its exit code that it was not done', async (t) => {
    const { command } = await startBusy(t);
    command.kill('SIGTERM');
    await command.waitForOutput('"stopping');
    command.kill('SIGTERM');
    assert.equal(await within(2_000, 'the end', command.exitCode()), 1);
  });
});
