/** The rules of RFC 9111 that concern status reads, one test for each. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { headerValue } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import type { Field } from '../../kit/fields.ts';
import { bankResponse, bankStatusResponse, createCacheInstance, statusRead } from './cache-instance.ts';

const token = ['Authorization', 'Bearer one'] as const;
const withFields = (...headers: readonly Field[]) => statusRead({ headers });

/** The number of fetches for two reads, one after the other. */
async function countFetches(
  [first, second]: readonly [readonly Field[], readonly Field[]],
  responseFields: readonly Field[] = [],
): Promise<number> {
  let fetches = 0;
  const { send } = createCacheInstance(createMemoryState(), async () =>
    bankStatusResponse('ACTC', responseFields, { n: fetches++ }),
  );
  await send(withFields(...first));
  await send(withFields(...second));
  return fetches;
}

const twice = [[token], [token]] as const;
const fetchesWith = (...responseFields: readonly Field[]) => countFetches(twice, responseFields);

describe('the caching fields of a response', () => {
  for (const control of ['no-store', 'private, no-store', 'No-Store', 'no-cache', 'no-cache="set-cookie"']) {
    test(`does not store a response with Cache-Control: ${control} (section 5.2.2)`, async () => {
      assert.equal(await fetchesWith(['Cache-Control', control]), 2);
    });
  }

  test('stores a private response for its credentials only (section 5.2.2.7)', async () => {
    const isPrivate = [['Cache-Control', 'private']] as const;
    assert.equal(await countFetches(twice, isPrivate), 1);
    assert.equal(await countFetches([[token], [['Authorization', 'Bearer two']]], isPrivate), 2);
  });

  test('does not store a private response to a request without credentials', async () => {
    assert.equal(await countFetches([[], []], [['Cache-Control', 'private']]), 2);
  });

  test('does not store a response that sets a cookie (section 7.3)', async () => {
    assert.equal(await fetchesWith(['Set-Cookie', 'session=1']), 2);
  });

  for (const [vary, fetches] of [
    ['*', 2],
    ['Accept, *', 2],
    ['Origin, Access-Control-Request-Method', 1],
    ['Accept, X-Device', 1],
    ['accept, Accept-Encoding, PSU-ID, Consent-ID, Authorization, Accept-Language', 1],
  ] as const) {
    test(`${fetches === 1 ? 'stores' : 'does not store'} a response with Vary: ${vary} (section 4.1)`, async () => {
      assert.equal(await fetchesWith(['Vary', vary]), fetches);
    });
  }

  test('serves a response only to requests without the fields of Vary that are not in the key (section 4.1)', async () => {
    const vary = ['Vary', 'Accept, X-Device'] as const;
    const device = [token, ['x-device', 'phone'] as const];
    assert.equal(await countFetches([[token], device], [vary]), 2);
    assert.equal(await countFetches([device, [token]], [vary]), 2);
    assert.equal(await countFetches([device, device], [vary]), 2);
    assert.equal(await countFetches([[token, ['X-Other', '1']], [token]], [vary]), 1);
  });

  test('serves no stale response to a request with a field of its Vary while the bank fails', async () => {
    let isDown = false;
    const { send } = createCacheInstance(createMemoryState(), async () => {
      if (isDown) throw new GatewayError('UPSTREAM_UNREACHED', 'connection refused');
      return bankStatusResponse('ACTC', [
        ['Vary', 'X-Device'],
        ['Cache-Control', 'max-age=0'],
      ]);
    });
    await send(withFields(token));
    isDown = true;
    assert.equal((await send(withFields(token))).servedFrom, 'stale-cache');
    await assert.rejects(send(withFields(token, ['X-Device', 'phone'])), { code: 'UPSTREAM_UNREACHED' });
  });

  test('keeps a response for other requests while a request with a field of its Vary asks the bank', async () => {
    let fetches = 0;
    const state = createMemoryState();
    const bank = async () => bankStatusResponse('ACTC', [['Vary', 'X-Device']], { n: fetches++ });
    const [one, other] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    await one.send(withFields(token));
    assert.equal((await other.send(withFields(token, ['X-Device', 'phone']))).servedFrom, 'bank');
    assert.equal((await other.send(withFields(token))).servedFrom, 'cache');
    assert.equal(fetches, 2);
  });

  for (const [field, value] of [
    ['Cache-Control', 'max-age=0'],
    ['Cache-Control', 'max-age="0"'],
    ['Cache-Control', 's-maxage=0, max-age=60'],
    ['Cache-Control', 'max-age=0, max-age=60'],
    ['Cache-Control', 'max-age=soon'],
    ['Expires', '0'],
    ['Expires', 'Thu, 01 Dec 1994 16:00:00 GMT'],
    ['Age', '3600'],
    ['Age', '99999999999999999999'],
    ['Age', '7200, 0'],
    ['Age', ' , 7200, 0'],
    ['Expires', '3600'],
    ['Expires', ''],
    ['Expires', 'Thu, 18-Aug-2050 02:01:18 GMT'],
    ['Expires', '2050-08-18 02:01'],
    ['Expires', 'Thu, 18 Aug 2050 02:01:18 UTC'],
    ['Expires', 'Thu, 18 Aug 50 02:01:18 GMT'],
    ['Cache-Control', 'no-cache; max-age=60'],
  ] as const) {
    test(`does not serve a response with ${field}: ${value} (sections 4.2 and 5.1)`, async () => {
      assert.equal(await fetchesWith([field, value]), 2);
    });
  }

  for (const [field, value] of [
    ['Cache-Control', 'max-age=60'],
    ['Cache-Control', 'max-age="60"'],
    ['Cache-Control', 'max-age=99999999999999999999'],
    ['Age', 'old'],
    ['Age', '-1'],
    ['Age', '0, 7200'],
    ['Age', '7200;a=b'],
    ['Expires', 'Thu, 18 Aug 2050 02:01:18 GMT'],
    ['Expires', 'Thursday, 18-Aug-50 02:01:18 GMT'],
    ['Expires', 'Thu Aug 18 02:01:18 2050'],
    ['Expires', new Date(Date.now() + 86_400_000).toUTCString()],
  ] as const) {
    test(`serves a response with ${field}: ${value}`, async () => {
      assert.equal(await fetchesWith([field, value]), 1);
    });
  }

  test('counts the lifetime of Expires from Date, or from the arrival if Date is invalid (section 4.2.1)', async () => {
    const expires = ['Expires', 'Thu, 01 Dec 1994 16:00:00 GMT'] as const;
    assert.equal(await fetchesWith(expires, ['Date', 'Thu, 01 Dec 1994 15:00:00 GMT']), 1);
    assert.equal(await fetchesWith(expires, ['Date', 'Thu, 01-Dec-1994 15:00:00 GMT']), 2);
  });

  test('uses the first of several Age fields (section 5.1)', async () => {
    assert.equal(await fetchesWith(['Age', '7200'], ['Age', '0']), 2);
    assert.equal(await fetchesWith(['Age', '0'], ['Age', '7200']), 1);
  });

  for (const status of [201, 203, 204, 206, 301, 304, 400, 404, 429, 500]) {
    test(`does not store a response with status ${status}`, async () => {
      let fetches = 0;
      const { send } = createCacheInstance(createMemoryState(), async () =>
        bankResponse(status, [], String(fetches++)),
      );
      await send(statusRead());
      assert.equal((await send(statusRead())).status, status);
      assert.equal(fetches, 2);
    });
  }
});

describe('the caching fields of a request', () => {
  for (const field of [
    ['Cache-Control', 'no-store'],
    ['Range', 'bytes=0-9'],
    ['If-None-Match', '"1"'],
    ['If-Match', '"1"'],
    ['If-Modified-Since', 'Thu, 01 Dec 1994 16:00:00 GMT'],
    ['If-Unmodified-Since', 'Thu, 01 Dec 1994 16:00:00 GMT'],
    ['If-Range', '"1"'],
    ['Signature', 'keyId="1",signature="a"'],
  ] as const) {
    test(`neither serves from the cache nor stores for a read with ${field[0]}: ${field[1]}`, async () => {
      assert.equal(await countFetches([[token], [token, field]]), 2);
      assert.equal(await countFetches([[token, field], [token]]), 2);
      assert.equal(
        await countFetches([
          [token, field],
          [token, field],
        ]),
        2,
      );
    });
  }

  for (const control of ['no-cache', 'max-age=0', 'No-Cache, max-stale=60']) {
    test(`fetches and stores for a read with Cache-Control: ${control} (section 5.2.1)`, async () => {
      const field = ['Cache-Control', control] as const;
      assert.equal(await countFetches([[token], [token, field]]), 2);
      assert.equal(await countFetches([[token, field], [token]]), 1);
    });
  }

  /** A status with a lifetime of 100 s that was cached 10 s ago; then a read with this field. */
  async function readWith(control: string, bankFails = false) {
    let nowMs = 1_000_000_000;
    let fetches = 0;
    const answer = () => bankStatusResponse('ACCC', [['Cache-Control', 'max-age=100']], { n: fetches });
    const bank = async () => {
      if (fetches++ > 0 && bankFails) throw new GatewayError('CIRCUIT_OPEN', 'the bank fails');
      return answer();
    };
    const { send } = createCacheInstance(createMemoryState(), bank, {}, () => nowMs);
    await send(withFields(token));
    nowMs += 10_000;
    const { servedFrom, headers } = await send(withFields(token, ['Cache-Control', control]));
    const next = (await send(withFields(token))).headers;
    return {
      servedFrom,
      cacheStatus: headerValue(headers, 'cache-status'),
      nextAge: headerValue(next, 'age'),
    };
  }

  for (const control of [
    'max-age=10',
    'max-age=99',
    'Max-Age="10"',
    'min-fresh=90',
    'max-age=10, min-fresh=90',
  ]) {
    test(`serves a response of 10 s with a lifetime of 100 s for Cache-Control: ${control} (section 5.2.1)`, async () => {
      assert.deepEqual(await readWith(control), {
        servedFrom: 'cache',
        cacheStatus: 'penstock; hit; ttl=90',
        nextAge: '10',
      });
    });
  }

  for (const control of [
    ...[
      'max-age=9',
      'max-age=1',
      'max-age=0',
      'max-age=00',
      'min-fresh=91',
      'min-fresh=99999999999999999999',
    ],
    ...[
      'max-age=9, min-fresh=1',
      'max-age=99, min-fresh=91',
      'max-age=9, max-stale',
      'max-age=9, max-age=99',
    ],
  ]) {
    test(`fetches and stores instead of a response of 10 s with a lifetime of 100 s for Cache-Control: ${control}`, async () => {
      assert.deepEqual(await readWith(control), {
        servedFrom: 'bank',
        cacheStatus: 'penstock; fwd=request',
        nextAge: '0',
      });
    });
  }

  for (const control of ['max-age', 'max-age=', 'max-age=-1', 'max-age=1.5', 'max-age=soon', 'max-age=1s']) {
    test(`ignores the invalid directive ${control}, and likewise for min-fresh`, async () => {
      for (const directive of [control, control.replace('max-age', 'min-fresh')])
        assert.equal((await readWith(directive)).servedFrom, 'cache', directive);
    });
  }

  test('combines the limits with only-if-cached: within them from the cache, otherwise NOT_CACHED', async () => {
    assert.equal((await readWith('only-if-cached, max-age=10, min-fresh=90')).servedFrom, 'cache');
    for (const limit of ['max-age=9', 'min-fresh=91', 'max-age=0'])
      await assert.rejects(readWith(`only-if-cached, ${limit}`), { code: 'NOT_CACHED' }, limit);
  });

  test('serves no response outside of the limits while the bank fails, and no stale one', async () => {
    assert.equal((await readWith('max-age=10', true)).servedFrom, 'cache');
    for (const limit of ['max-age=9', 'min-fresh=91'])
      await assert.rejects(readWith(limit, true), { code: 'CIRCUIT_OPEN' }, limit);
  });

  test('makes one fetch for reads outside of their limits that arrive together, and none for the others', async () => {
    const gate = Promise.withResolvers<void>();
    let fetches = 0;
    const { send } = createCacheInstance(createMemoryState(), async () => {
      if (fetches++ > 0) await gate.promise;
      return bankStatusResponse('ACCC', [['Age', '50']]);
    });
    await send(withFields(token));
    const limited = ['max-age=10', 'max-age=20', 'min-fresh=9999', 'no-cache'].map((control) =>
      send(withFields(token, ['Cache-Control', control])),
    );
    await setImmediate();
    assert.equal((await send(withFields(token, ['Cache-Control', 'max-age=60']))).servedFrom, 'cache');
    assert.equal((await send(withFields(token))).servedFrom, 'cache');
    gate.resolve();
    const sources = (await Promise.all(limited)).map(({ servedFrom }) => servedFrom);
    assert.deepEqual(sources.toSorted(), ['bank', 'shared', 'shared', 'shared']);
    assert.equal(fetches, 2);
  });

  test('serves a read with only-if-cached from the cache, or refuses it with NOT_CACHED (section 5.2.1.7)', async () => {
    let fetches = 0;
    const { send } = createCacheInstance(createMemoryState(), async () =>
      bankStatusResponse('ACTC', [], { n: fetches++ }),
    );
    const only = ['Cache-Control', 'only-if-cached'] as const;
    await assert.rejects(send(withFields(only)), { code: 'NOT_CACHED' });
    await send(withFields());
    assert.equal((await send(withFields(only))).servedFrom, 'cache');
    for (const unsatisfiable of [
      ['Cache-Control', 'no-cache'],
      ['Signature', 'keyId="1"'],
      ['If-None-Match', '"1"'],
    ] as const) {
      await assert.rejects(send(withFields(only, unsatisfiable)), { code: 'NOT_CACHED' });
    }
    assert.equal(fetches, 1);
  });
});

describe('a response from the cache', () => {
  async function hitAfter(ms: number, responseFields: readonly Field[] = []) {
    let nowMs = 1_000_000_000;
    const instance = createCacheInstance(
      createMemoryState(),
      async () => bankStatusResponse('ACCC', responseFields),
      {},
      () => nowMs,
    );
    const first = await instance.send(withFields(token));
    nowMs += ms;
    return { first, hit: await instance.send(withFields(token)) };
  }

  test('sends the age in seconds and the remaining lifetime of a cached response', async () => {
    const { first, hit } = await hitAfter(12_900);
    assert.equal(headerValue(first.headers, 'age'), undefined);
    assert.equal(headerValue(hit.headers, 'age'), '12');
    assert.equal(headerValue(hit.headers, 'cache-status'), 'penstock; hit; ttl=3588');
  });

  test("replaces the bank's Age by the total age", async () => {
    const { first, hit } = await hitAfter(12_900, [['Age', '100']]);
    assert.equal(headerValue(first.headers, 'age'), '100');
    assert.deepEqual(
      hit.headers.filter(([name]) => name === 'Age'),
      [['Age', '112']],
    );
  });

  test('serves the bytes and fields of the first response, except its Age and X-Request-ID', async () => {
    const responseFields = [
      ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'],
      ['ASPSP-SCA-Approach', 'REDIRECT'],
      ['Date', 'Thu, 01 Dec 1994 16:00:00 GMT'],
    ] as const;
    const { first, hit } = await hitAfter(0, responseFields);
    assert.deepEqual(hit.body, first.body);
    const names = hit.headers.map(([name]) => name);
    assert.deepEqual(names, ['Content-Type', 'ASPSP-SCA-Approach', 'Date', 'ETag', 'Cache-Status', 'Age']);
  });
});

describe('credentials that the bank refuses', () => {
  for (const status of [401, 403]) {
    test(`deletes the responses fetched with credentials that got ${status}, and no others`, async () => {
      let response = bankStatusResponse('ACTC');
      const { send, counts } = createCacheInstance(createMemoryState(), async () => response);
      const two = ['Authorization', 'Bearer two'] as const;
      for (const credential of [token, two]) await send(withFields(credential));
      response = bankResponse(status);
      await send(withFields(token, ['Cache-Control', 'no-cache']));
      assert.equal((await send(withFields(token))).status, status);
      assert.equal((await send(withFields(two))).servedFrom, 'cache');
      assert.equal(counts.get('hit'), 1);
    });
  }

  for (const known of ['something', 'nothing'] as const) {
    test(`does not store a response in progress to refused credentials, where ${known} was cached`, async () => {
      const gate = Promise.withResolvers<void>();
      let response = bankStatusResponse('ACTC');
      const { send } = createCacheInstance(createMemoryState(), async ({ headers }) => {
        const decided = response;
        if (headers.includes(token) && decided.status === 200) await gate.promise;
        return decided;
      });
      if (known === 'something') await send(withFields(['Authorization', 'Bearer two']));
      const slow = send(withFields(token));
      await setImmediate();
      response = bankResponse(401);
      await send(withFields(token, ['Cache-Control', 'no-cache']));
      gate.resolve();
      await slow;
      assert.equal((await send(withFields(token))).status, 401);
    });
  }

  test('deletes the responses to refused credentials although the state rejected the change', async () => {
    let response = bankStatusResponse('ACTC');
    const state = createFailingState();
    const { send } = createCacheInstance(state, async () => response);
    await send(withFields(token));
    response = bankResponse(401);
    state.fail('write', 'replace');
    await send(withFields(token, ['Cache-Control', 'no-cache']));
    state.recover();
    assert.equal((await send(withFields(token))).status, 401);
  });
});
