import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { call, callOnce, type Reply } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { until } from '../kit/within.ts';

/** Delays the event loop of this process, in which the gateway runs as well, without any use of CPU. @returns ends that */
function blockEventLoop(t: TestContext, taskMs: number): () => void {
  const neverNotified = new Int32Array(new SharedArrayBuffer(4));
  let busy = true;
  const work = async () => {
    while (busy) {
      Atomics.wait(neverNotified, 0, 0, taskMs);
      await setImmediate();
    }
  };
  work();
  t.after(() => {
    busy = false;
  });
  return () => {
    busy = false;
  };
}

const isShed = ({ status, header }: Reply) => status === 503 && header('Penstock-Error') === 'OVERLOADED';

describe('an overloaded gateway', () => {
  test('H4: refuses status reads with Retry-After, and still accepts payments and health checks', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const stopWork = blockEventLoop(t, 250);
    await until(20_000, 'status reads are shed', async () => isShed(await callOnce(gateway.url, statusRead)));
    const before = bank.requests.length;

    const shed = await callOnce(gateway.url, statusRead);
    assert.equal(shed.header('Retry-After'), '1');
    assert.equal(bank.requests.length, before);
    assert.equal((await call(gateway.url, initiation)).status, 201);
    for (const path of ['/health/live', '/health/ready', '/metrics'])
      assert.equal((await call(gateway.adminUrl, { method: 'GET', path })).status, 200, path);
    const metrics = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
    assert.match(metrics.text, /^penstock_shedding\{what="status-reads"\} 1$/m);

    stopWork();
    await until(20_000, 'nothing is shed', async () => !isShed(await callOnce(gateway.url, statusRead)));
    const changes = gateway.logLines
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message.startsWith('overload'));
    assert.deepEqual(
      changes.map(({ shed }) => shed),
      ['status-reads', 'nothing'],
    );
  });

  test('H4: refuses every request when it is very late, and completes the requests that it has accepted', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'latency', ms: 4_000, strikes: 'before-effect' }, { times: 1 });
    const taken = call(gateway.url, initiation);
    await bank.waitUntil(() => bank.requests.length === 1);
    const stopWork = blockEventLoop(t, 1_200);
    await until(30_000, 'all is shed', async () => isShed(await callOnce(gateway.url, initiation)));
    stopWork();
    assert.equal((await taken).status, 201);
    await until(
      20_000,
      'nothing is shed',
      async () => (await callOnce(gateway.url, initiation)).status === 201,
    );
  });
});
