import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { statusRead } from '../kit/attack.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { connectRaw, sendRaw } from '../kit/raw.ts';
import { until } from '../kit/within.ts';

describe('a process that has no file descriptor left', () => {
  test('H13: survives, and serves again when some are free', async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments }, { shell: 'ulimit -n 60; exec' });
    const crowd = await Promise.all(Array.from({ length: 100 }, () => connectRaw(port)));
    for (const one of crowd) one.send('GET / HT');
    await assert.rejects(sendRaw(port, statusRead()), /closed|waited/);

    for (const one of crowd) one.destroy();
    await until(10_000, 'it serves', () =>
      sendRaw(port, statusRead()).then(({ headers }) => !headers.has('penstock-error'), no),
    );
    command.kill('SIGTERM');
    assert.equal(await command.exitCode(), 0);
  });
});

const no = () => false;
