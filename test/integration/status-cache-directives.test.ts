/** What requests and responses say about caching, from outside: which reads reach the bank. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { setBankResponse } from '../kit/raw-bank-response.ts';
import { statusRead } from '../kit/request.ts';

/** Whether the second of two reads is served from the cache, if the bank answers with these fields. */
async function isSecondReadCached(
  t: TestContext,
  responseFields: readonly Field[],
  cacheControl?: string,
): Promise<boolean> {
  const { bank, gateway } = await startGatewayWithBank(t);
  const body = '{"transactionStatus":"ACCC"}'; // final: fresh for an hour
  setBankResponse(bank, { headers: [['Content-Type', 'application/json'], ...responseFields], body });
  assert.equal((await call(gateway.url, statusRead)).status, 200);
  const headers: readonly Field[] = cacheControl === undefined ? [] : [['Cache-Control', cacheControl]];
  const second = await call(gateway.url, { ...statusRead, headers });
  const fetches = bank.requests.length;
  assert.deepEqual([second.status, second.text], [200, body]);
  assert.equal(second.header('Cache-Status')?.startsWith('penstock; hit') ? 1 : 2, fetches);
  return fetches === 1;
}

describe('the age of a status that the bank sends', () => {
  test('is the first member of Age: a status older than its lifetime is not served from the cache', async (t) => {
    assert.equal(await isSecondReadCached(t, [['Age', '7200, 0']]), false);
    assert.equal(await isSecondReadCached(t, [['Age', '0, 7200']]), true);
  });
});

describe('the date until which the bank allows a status to be served', () => {
  for (const expires of ['3600', '0', 'Thu, 18-Aug-2050 02:01:18 GMT', '2050-08-18 02:01'])
    test(`is in the past if it is no date of HTTP: ${expires}`, async (t) => {
      assert.equal(await isSecondReadCached(t, [['Expires', expires]]), false);
    });

  for (const expires of [
    'Thu, 18 Aug 2050 02:01:18 GMT',
    'Thursday, 18-Aug-50 02:01:18 GMT',
    'Thu Aug 18 02:01:18 2050',
  ])
    test(`may be in each format of HTTP: ${expires}`, async (t) => {
      assert.equal(await isSecondReadCached(t, [['Expires', expires]]), true);
    });
});

describe('a status with a Vary', () => {
  const origin: Field = ['Origin', 'https://shop.example'];
  const varying = (vary: string) => async (t: TestContext) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const body = '{"transactionStatus":"ACCC"}';
    setBankResponse(bank, {
      headers: [
        ['Content-Type', 'application/json'],
        ['Vary', vary],
      ],
      body,
    });
    return { bank, read: (...headers: readonly Field[]) => call(gateway.url, { ...statusRead, headers }) };
  };

  test('is cached if no request has the fields that it names, and serves only requests without them', async (t) => {
    const { bank, read } = await varying('Origin, Access-Control-Request-Method, Accept')(t);
    for (let times = 0; times < 10; times++) assert.equal((await read()).status, 200);
    assert.equal(bank.requests.length, 1);
    for (const expected of [2, 3]) {
      assert.equal((await read(origin)).header('Cache-Status'), 'penstock; fwd=miss');
      assert.equal(bank.requests.length, expected);
    }
    assert.match((await read()).header('Cache-Status') ?? '', /^penstock; hit/);
  });

  test('is shared at the same time only by requests without the fields that it names', async (t) => {
    const { bank, read } = await varying('Origin')(t);
    await Promise.all([read(), read(), read(), read(origin), read(origin)]);
    assert.equal(bank.requests.length, 3);
  });

  test('is never cached if it varies with everything', async (t) => {
    const { bank, read } = await varying('*')(t);
    for (let times = 0; times < 3; times++) await read();
    assert.equal(bank.requests.length, 3);
  });
});

describe('a read that limits the age of its status', () => {
  const hundredSecondsOld = [['Age', '100']] as const;

  test('is served from the cache by max-age up to that age, and from the bank beyond', async (t) => {
    assert.equal(await isSecondReadCached(t, hundredSecondsOld, 'max-age=99'), false);
    assert.equal(await isSecondReadCached(t, hundredSecondsOld, 'max-age=3600'), true);
  });

  test('is served from the cache if the status stays fresh for min-fresh seconds, otherwise from the bank', async (t) => {
    assert.equal(await isSecondReadCached(t, hundredSecondsOld, 'min-fresh=3501'), false);
    assert.equal(await isSecondReadCached(t, hundredSecondsOld, 'min-fresh=3000'), true);
  });

  test('is served from the cache if the limit is not a number', async (t) => {
    assert.equal(await isSecondReadCached(t, hundredSecondsOld, 'max-age=soon, min-fresh'), true);
  });
});
