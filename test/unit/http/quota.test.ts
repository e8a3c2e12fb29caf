import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createQuotaCheck } from '../../../src/http/quota.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';

const shop = { name: 'shop', tenant: 'shop', environments: ['sandbox'] };

function startQuotas(rate: number, burst: number) {
  const world = { nowMs: 0 };
  const check = createQuotaCheck(
    [{ name: 'shop', quota: { rate, burst } }, { name: 'rival' }],
    createMemoryTokenBuckets(() => world.nowMs),
  );
  const send = async (client = shop) => {
    const fields = new Map<string, string>();
    const refusal = await check(client, ([name, value]) => fields.set(name, value)).catch(
      (thrown: unknown) => thrown,
    );
    return { refusal, policy: fields.get('RateLimit-Policy'), limit: fields.get('RateLimit') };
  };
  return { world, send };
}

describe('a client with a quota', () => {
  test('gets RateLimit fields with its quota, the remaining requests, and the time until the quota is full again', async () => {
    const { world, send } = startQuotas(20, 40);
    assert.deepEqual(await send(), {
      refusal: undefined,
      policy: '"default";q=40;w=2',
      limit: '"default";r=39;t=1',
    });
    for (let one = 0; one < 29; one++) await send();
    assert.equal((await send()).limit, '"default";r=9;t=2');
    world.nowMs = 2_000;
    assert.equal((await send()).limit, '"default";r=39;t=1');
  });

  test('is refused with Retry-After when its quota is used up, and accepted after that time', async () => {
    const { world, send } = startQuotas(0.5, 2);
    await send();
    await send();
    const { refusal, limit } = await send();
    assert.ok(refusal instanceof Error && 'code' in refusal && 'headers' in refusal);
    assert.deepEqual([refusal.code, refusal.headers], ['QUOTA_EXCEEDED', [['Retry-After', '2']]]);
    assert.equal(limit, '"default";r=0;t=4');
    world.nowMs = 2_000;
    assert.equal((await send()).refusal, undefined);
  });
});

test('a client without a quota is never refused and gets no RateLimit fields', async () => {
  const { send } = startQuotas(1, 1);
  for (let one = 0; one < 100; one++) {
    const { refusal, policy, limit } = await send({ ...shop, name: 'rival' });
    assert.deepEqual([refusal, policy, limit], [undefined, undefined, undefined]);
  }
});
