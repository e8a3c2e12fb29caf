/** The first failed call of an open circuit is visible on every instance: in the list of instances and in the timeline. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { ask, circuitOf } from '../kit/circuits.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

const minimumCalls = 3;

test('another instance shows the first failed call of an open circuit, and so does the timeline', {
  skip: skipWithoutRedis,
}, async (t) => {
  const bank = await startStubBank(t, () => ({ status: 503 }));
  const circuit = { minimumCalls, openFor: '1min' };
  const [one, other] = await startInstances(t, bank, await sharedRedisUrl(t), { circuit });
  const requestIds: (string | undefined)[] = [];
  for (let calls = 0; calls < minimumCalls; calls++)
    requestIds.push((await ask(one, 'write')).header('X-Request-ID'));
  const { cause: known } = await circuitOf(one, 'write');
  assert.equal(known?.xRequestId, requestIds[0]);

  let circuits: readonly { readonly cause: unknown }[] = [];
  await until(10_000, 'the other instance lists the open circuit', async () => {
    const instances = JSON.parse((await callAdminApi(other, 'GET', '/api/instances')).text);
    circuits = instances.flatMap((instance: { circuits: typeof circuits }) => instance.circuits);
    return circuits.length > 0;
  });
  assert.deepEqual(circuits[0]?.cause, known);

  await until(10_000, 'the timeline has the opening with its cause', async () => {
    const { text } = await callAdminApi(other, 'GET', '/api/timeline');
    return text.includes(`"xRequestId":"${requestIds[0]}"`) && text.includes('"to":"open"');
  });
});
