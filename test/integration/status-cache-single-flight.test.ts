/** A thousand equal reads at once on two instances, of a payment that nobody has read before. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sendAtOnce } from '../kit/at-once.ts';
import { type Call, call } from '../kit/call.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

const credentials = [['Authorization', 'Bearer one']] as const;
const read: Call = { ...statusRead, headers: credentials };
const reads = 1_000;

/** Two instances before a bank whose answers wait until they are let go. */
async function startPair(t: TestContext, says: () => StubResponse) {
  const gate = Promise.withResolvers<void>();
  const bank = await startStubBank(t, async () => {
    await gate.promise;
    return says();
  });
  const instances = await startInstances(t, bank, await sharedRedisUrl(t));
  return { bank, instances, letGo: gate.resolve };
}

describe('a thousand equal reads at once on two instances', { skip: skipWithoutRedis }, () => {
  test('are one request at the bank, and each gets its answer under its own X-Request-ID', async (t) => {
    const { bank, instances, letGo } = await startPair(t, () => statusResponse('ACTC'));
    const { replies } = await sendAtOnce(t, instances, read, reads);
    letGo();

    const all = await replies;
    assert.equal(bank.requests.length, 1);
    assert.ok(all.every(({ status, text }) => status === 200 && text.includes('ACTC')));
    assert.equal(new Set(all.map(({ header }) => header('X-Request-ID'))).size, reads);
    const told = all.map(({ header }) => header('Cache-Status') ?? '');
    assert.equal(told.filter((one) => one === 'penstock; fwd=miss').length, 1);
    assert.equal(told.filter((one) => one === 'penstock; fwd=miss; collapsed').length, reads - 1);
  });

  test('fail over at most once an instance if the bank fails', async (t) => {
    const { bank, instances, letGo } = await startPair(t, () => ({ status: 503, body: 'broken' }));
    const { replies } = await sendAtOnce(t, instances, read, reads);
    assert.equal(bank.requests.length, 1);
    letGo();

    assert.ok((await replies).every(({ status, text }) => status === 503 && text === 'broken'));
    assert.equal(bank.requests.length, 2, 'one an instance');
  });

  test('are answered although the TPP that came first hangs up', async (t) => {
    const { bank, instances, letGo } = await startPair(t, () => statusResponse('ACTC'));
    const hangUp = new AbortController();
    const first: Call = { ...statusRead, headers: [['Authorization', 'Bearer one']], signal: hangUp.signal };
    const left = call(instances[0].url, first);
    await until(5_000, 'the bank is asked', () => bank.requests.length > 0);
    const { replies } = await sendAtOnce(t, instances, read, reads);
    hangUp.abort();
    await assert.rejects(left, { name: 'AbortError' });
    letGo();

    assert.ok((await replies).every(({ status }) => status === 200));
    assert.equal(bank.requests.length, 1);
  });
});
