/** The shutdown of a gateway process by a signal. */

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { startPlainServer } from '../kit/plain-server.ts';
import { connectRaw } from '../kit/raw-connection.ts';
import { statusRead } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';

const request = `GET ${statusRead.path} HTTP/1.1\r\nHost: gateway\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\n\r\n`;
const answer =
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{"transactionStatus":"ACSC"}';

/** A gateway with one running request, which `respond` lets the bank answer. */
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
  await until(10_000, 'the request reaches the bank', () => asked.length === 1);
  return { ...served, tpp, respond: () => void asked[0]?.write(answer) };
}

describe('a gateway that gets a signal to stop (H1)', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`is not ready after ${signal}, answers the running request with Connection: close, and exits with 0`, async (t) => {
      const { command, adminUrl, tpp, respond } = await startBusy(t);
      command.kill(signal);
      let last = '';
      await until(5_000, 'the gateway is not ready', async () => {
        const { status, text } = await call(adminUrl, { method: 'GET', path: '/health/ready' });
        last = text;
        return status === 503;
      });
      const { status: readiness, reasons } = JSON.parse(last);
      assert.deepEqual([readiness, reasons[0]], ['not ready', 'draining']);
      assert.equal((await call(adminUrl, { method: 'GET', path: '/health/live' })).status, 200);

      respond();
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

  test('accepts new connections for a moment, so that load balancers notice, and closes them after the response', async (t) => {
    const { command, url, respond } = await startBusy(t);
    command.kill('SIGTERM');
    await command.waitForOutput('"stopping');
    const { status, header } = await call(url, { method: 'GET', path: '/nothing' });
    assert.deepEqual([status, header('Connection')], [404, 'close']);
    respond();
    assert.equal(await command.exitCode(), 0);
  });

  test('exits with 1 at the second signal, without waiting for running requests', async (t) => {
    const { command } = await startBusy(t);
    command.kill('SIGTERM');
    await command.waitForOutput('"stopping');
    command.kill('SIGTERM');
    assert.equal(await within(2_000, 'the process to exit', command.exitCode()), 1);
  });
});
