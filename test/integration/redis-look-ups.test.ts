/** Look-ups of two instances on one Redis: each finds the requests of both, and none answers wrongly while Redis is away. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { startBank } from '../kit/gateway.ts';
import { startInstances } from '../kit/instances.ts';
import { lookUp, lookUpPatiently, reportOf, selfService } from '../kit/look-up.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

describe('two instances on one Redis', { skip: skipWithoutRedisServer }, () => {
  test('show a tenant its requests of both, and nothing of another tenant with the same id', async (t) => {
    const { url } = await startRedis(t);
    const sections = { clients: clientSettings(), ...selfService };
    const [one, other] = await startInstances(t, await startBank(t), url, sections);
    const requestId = randomUUID();
    const pay = async (gateway: { readonly url: string }, client: ClientName) => {
      const headers = [...initiation.headers, ['X-API-Key', apiKeyOf(client)]] as const;
      return String(jsonOf(await call(gateway.url, { ...initiation, requestId, headers })).paymentId);
    };
    const ofShop = await pay(one, 'shop');
    assert.equal(await pay(other, 'shop'), ofShop, 'a replay');
    const ofRival = await pay(one, 'rival');

    for (const gateway of [one, other]) {
      const both = async () => (await reportOf(gateway, 'shop', requestId)).requests.length === 2;
      await until(20_000, 'the requests of both instances are listed', both);
      const shown = await reportOf(gateway, 'shop', requestId);
      assert.deepEqual(
        [shown.initiation?.paymentId, shown.complete, shown.requests.map(({ servedFrom }) => servedFrom)],
        [ofShop, true, ['ledger', 'bank']],
      );
      const single = async () => (await reportOf(gateway, 'rival', requestId)).requests.length === 1;
      await until(20_000, 'the request of the rival is listed', single);
      const report = await reportOf(gateway, 'rival', requestId);
      assert.deepEqual([report.initiation?.paymentId, report.requests[0]?.paymentId], [ofRival, ofRival]);
      assert.doesNotMatch(JSON.stringify(report), new RegExp(ofShop));
      const foreign = await lookUpPatiently(gateway, 'rival', randomUUID());
      assertRefused(foreign, 404, 'REQUEST_UNKNOWN', 'RESOURCE_UNKNOWN');
    }
  });

  test('share the rate of a tenant', async (t) => {
    const { url } = await startRedis(t);
    const sections = { clients: clientSettings(), ...selfService };
    const instances = await startInstances(t, await startBank(t), url, sections);
    // Ten at once and one per second: both instances together allow fewer than twice that.
    const startedAtMs = performance.now();
    let allowed = 0;
    for (let refusals = 0; refusals < 2; )
      for (const gateway of instances) {
        const reply = await lookUp(gateway, 'shop', randomUUID());
        if (reply.status === 404) allowed += 1;
        else refusals += 1;
      }
    const seconds = (performance.now() - startedAtMs) / 1_000;
    assert.ok(allowed <= 10 + seconds + 1, `${allowed} look-ups in ${seconds} s`);
    assert.ok(allowed >= 10, `${allowed} look-ups`);
  });

  test('answer look-ups while Redis does not answer, also about requests of that time', async (t) => {
    const redis = await startRedis(t);
    const [gateway] = await startInstances(t, await startBank(t), redis.url, selfService);
    const requestId = randomUUID();
    const path = `${transfersPath}/unknown/status`;
    await call(gateway.url, { method: 'GET', path, requestId });
    assert.equal((await reportOf(gateway, undefined, requestId)).requests.length, 1);

    redis.freeze();
    const during = randomUUID();
    await call(gateway.url, { method: 'GET', path, requestId: during });
    for (const id of [requestId, during])
      assert.equal((await reportOf(gateway, undefined, id)).requests.length, 1);
    const unknown = await lookUpPatiently(gateway, undefined, randomUUID());
    assertRefused(unknown, 404, 'REQUEST_UNKNOWN', 'RESOURCE_UNKNOWN');
  });
});
