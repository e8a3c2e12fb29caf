/** A single instance, with its state in memory, is a fleet of one. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from '../kit/call.ts';
import { readInstances, readSnapshot, readTimeline } from '../kit/fleet-view.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

test('an instance alone shows itself with its figures, its circuits and its start', async (t) => {
  const { bank, gateway } = await startGatewayWithBank(t, { circuit: { minimumCalls: 3, openFor: '1min' } });
  const [{ name } = assert.fail()] = await readInstances(gateway);
  await bank.stop();
  await until(20_000, 'the circuit opens', async () => {
    const reply = await call(gateway.url, newCall('GET', `${transfersPath}/1234-wertiq-983`));
    return reply.header('Penstock-Error') === 'CIRCUIT_OPEN';
  });
  await until(20_000, 'the figures of the calls and the open circuit are shown', async () => {
    const [shown, ...others] = await readInstances(gateway);
    assert.deepEqual(others, []);
    const [circuit] = shown?.circuits ?? [];
    return (
      shown?.status === 'up' &&
      Number(shown.figures.requestsPerSecond) > 0 &&
      Number(shown.figures.refusedPerSecond) > 0 &&
      circuit?.lane === 'read' &&
      circuit.state === 'open' &&
      circuit.cause?.count === 3
    );
  });
  const { instances, fleet } = await readSnapshot(gateway);
  assert.deepEqual([instances[0]?.name, fleet], [name, { isComplete: true, why: null }]);
  assert.deepEqual(
    (await readTimeline(gateway)).map(({ kind, instance }) => [kind, instance]),
    [
      ['circuit', name],
      ['start', name],
    ],
  );
});
