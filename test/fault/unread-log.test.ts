import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { within } from '../kit/within.ts';

/** Produce more lines than fit into a pipe. */
const requests = 3_000;

describe('a log that nobody reads', () => {
  test('H12: delays neither requests nor the shutdown', async (t) => {
    const bank = await startBank(t);
    const { url, command } = await startGatewayProcess(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
    });
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    command.stopReading();

    for (let sent = 0; sent < requests; sent++) {
      const { status } = await call(url, { method: 'GET', path: '/nowhere' }, agent);
      assert.equal(status, 404);
    }
    agent.destroy();
    command.kill('SIGTERM');

    assert.equal(await within(10_000, 'the process to exit', command.exitCode()), 0);
    assert.ok(command.stdout().length < requests * 100, 'the pipe was never full');
  });
});
