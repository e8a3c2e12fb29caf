import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { statusRead } from '../kit/attack.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { connectRaw, sendRaw } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

describe('gateway without free file descriptors', () => {
  test('keeps running, and serves requests again when descriptors are free', async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments }, { shell: 'ulimit -n 60; exec' });
    const connections = await Promise.all(Array.from({ length: 100 }, () => connectRaw(port)));
    for (const connection of connections) connection.send('GET / HT');
    await assert.rejects(sendRaw(port, statusRead()), /closed|waited/);

    for (const connection of connections) connection.destroy();
    await until(10_000, 'it serves requests', () =>
      sendRaw(port, statusRead()).then(({ headers }) => !headers.has('penstock-error'), no),
    );
    command.kill('SIGTERM');
    assert.equal(await command.exitCode(), 0);
  });
});

const no = () => false;
