/** An instance is killed while it sends a payment: its TPP learns from another instance that the payment is in doubt. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { callOnce } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { lookUpPatiently, reportOf, selfService } from '../kit/look-up.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

test('a payment of a killed instance, of which there is no record, is reported as in doubt, and the report as incomplete', {
  skip: skipWithoutRedisServer || skipWithoutPostgres,
}, async (t) => {
  const redis = await startSingleRedis(t);
  const bank = await startBank(t);
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    shaping: { expectedInstances: 2 },
    state: {
      ...{ postgres: await newMigratedPostgres(), redis: redis.settings },
      prefix: `look-up-${randomUUID()}:`,
    },
    ...selfService,
  };
  const [killed, other] = await Promise.all([1, 2].map(() => startGatewayProcess(t, sections)));
  if (!killed || !other) assert.fail();
  for (const { url } of [killed, other])
    await until(20_000, 'the instance executes a payment', async () => {
      return (await callOnce(url, { ...initiation, requestId: randomUUID() })).status === 201;
    });

  bank.injectFault({ name: 'never-answer' });
  const requestId = randomUUID();
  const sent = callOnce(killed.url, { ...initiation, requestId }).catch(() => 'broken');
  const isSent = () => bank.requests.some(({ rawHeaders }) => rawHeaders.includes(requestId));
  await until(20_000, 'the bank has received the payment', isSent);
  const running = await reportOf(other, undefined, requestId);
  assert.deepEqual([running.initiation?.state, running.requests], ['in-progress', []]);
  assert.deepEqual([running.complete, running.missing], [true, []]);

  await killed.stop('SIGKILL');
  await sent;
  let report = running;
  await until(30_000, 'the payment is in doubt, and the instance is known to be lost', async () => {
    report = await reportOf(other, undefined, requestId);
    return report.initiation?.state === 'in-doubt' && !report.complete;
  });
  assert.match(report.initiation?.advice ?? '', /Do not initiate it again with another X-Request-ID/);
  assert.match(report.missing.join(), /An instance of the gateway is unreachable/);
  const unknown = await lookUpPatiently(other, undefined, randomUUID());
  assert.equal(unknown.status, 404);
  assert.match(unknown.text, /An instance of the gateway is unreachable/);
});
