/** Single flight: a thousand concurrent reads of an uncached payment on two instances. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type Call, call } from '../kit/call.ts';
import { sendConcurrently } from '../kit/concurrent-requests.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

const credentials = [['Authorization', 'Bearer one']] as const;
const read: Call = { ...statusRead, headers: credentials };
const reads = 1_000;

/** Two instances in front of a bank that responds only after `release` was called. */
async function startPair(t: TestContext, respond: () => StubResponse) {
  const gate = Promise.withResolvers<void>();
  const bank = await startStubBank(t, async () => {
    await gate.promise;
    return respond();
  });
  // On a busy machine it takes long to send all reads, and to pass the response of one instance on to the other.
  const patient = {
    deadlines: { status: '60s' },
    statusCache: { pendingTtl: '1min', pendingTtlMax: '1min' },
  };
  const instances = await startInstances(t, bank, await sharedRedisUrl(t), patient);
  return { bank, instances, release: gate.resolve };
}

/**
 * Runs `act` while the event loop never waits. An instance that has waited for more than 15 ms to read from Redis asks the
 * bank without a lease, and on a busy machine Redis takes longer than that.
 */
async function withoutIdling<Value>(act: () => Promise<Value>): Promise<Value> {
  const ended = new AbortController();
  const spin = async () => {
    while (!ended.signal.aborted) await setImmediate();
  };
  const spinning = spin();
  try {
    return await act();
  } finally {
    ended.abort();
    await spinning;
  }
}

describe('a thousand concurrent equal reads on two instances', { skip: skipWithoutRedis }, () => {
  test('sends one request to the bank, and gives each response its own X-Request-ID', async (t) => {
    const { bank, instances, release } = await startPair(t, () => statusResponse('ACTC'));
    const { replies } = await withoutIdling(() => sendConcurrently(t, instances, read, reads));
    release();

    const all = await replies;
    assert.equal(bank.requests.length, 1);
    assert.ok(all.every(({ status, text }) => status === 200 && text.includes('ACTC')));
    assert.equal(new Set(all.map(({ header }) => header('X-Request-ID'))).size, reads);
    const marks = all.map(({ header }) => header('Cache-Status') ?? '');
    assert.equal(marks.filter((mark) => mark === 'penstock; fwd=miss').length, 1);
    // A read that is looked up only after the response was stored is a hit.
    const isShared = (mark: string) =>
      mark === 'penstock; fwd=miss; collapsed' || mark.startsWith('penstock; hit;');
    assert.equal(marks.filter(isShared).length, reads - 1);
    assert.ok(marks.some((mark) => mark === 'penstock; fwd=miss; collapsed'));
  });

  test('sends one request per instance if the bank fails', async (t) => {
    const { bank, instances, release } = await startPair(t, () => ({ status: 503, body: 'broken' }));
    const { replies } = await withoutIdling(() => sendConcurrently(t, instances, read, reads));
    assert.equal(bank.requests.length, 1);
    release();

    const all = await replies;
    assert.ok(all.every(({ status, text }) => status === 503 && text === 'broken'));
    // A read whose environment is found only after the bank has failed asks again: few, and each is marked.
    const asked = all.filter(({ header }) => header('Cache-Status')?.includes('collapsed') !== true);
    assert.equal(bank.requests.length, asked.length);
    assert.ok(asked.length >= 2 && asked.length <= reads / 100, `one per instance, not ${asked.length}`);
  });

  test('answers all reads although the TPP of the first one disconnects', async (t) => {
    const { bank, instances, release } = await startPair(t, () => statusResponse('ACTC'));
    const disconnect = new AbortController();
    const disconnected = call(instances[0].url, { ...read, signal: disconnect.signal });
    await until(5_000, 'the bank receives the read', () => bank.requests.length > 0);
    const { replies } = await withoutIdling(() => sendConcurrently(t, instances, read, reads));
    disconnect.abort();
    await assert.rejects(disconnected, { name: 'AbortError' });
    release();

    assert.ok((await replies).every(({ status }) => status === 200));
    assert.equal(bank.requests.length, 1);
  });
});
