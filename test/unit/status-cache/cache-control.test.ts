/** What RFC 9111 asks of a cache, as far as it concerns status reads: one test a rule. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { headerValue } from '../../../src/pis/headers.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import type { Field } from '../../kit/fields.ts';
import { bankResponse, createCacheInstance, statusRead, statusResponse } from './cache-instance.ts';

const token = ['Authorization', 'Bearer one'] as const;
const withFields = (...headers: readonly Field[]) => statusRead({ headers });

/** How often the bank is asked when one read is followed by another. */
async function askedFor(
  [first, second]: readonly [readonly Field[], readonly Field[]],
  answered: readonly Field[] = [],
): Promise<number> {
  let asked = 0;
  const { send } = createCacheInstance(createMemoryState(), async () =>
    statusResponse('ACTC', answered, { n: asked++ }),
  );
  await send(withFields(...first));
  await send(withFields(...second));
  return asked;
}

const again = [[token], [token]] as const;
const bankSays = (...fields: readonly Field[]) => askedFor(again, fields);

describe('the bank', () => {
  for (const control of ['no-store', 'private, no-store', 'No-Store', 'no-cache', 'no-cache="set-cookie"']) {
    test(`says Cache-Control: ${control}, and the answer is not kept (section 5.2.2)`, async () => {
      assert.equal(await bankSays(['Cache-Control', control]), 2);
    });
  }

  test('says private, and the answer is kept for those credentials alone (section 5.2.2.7)', async () => {
    const answered = [['Cache-Control', 'private']] as const;
    assert.equal(await askedFor(again, answered), 1);
    assert.equal(await askedFor([[token], [['Authorization', 'Bearer two']]], answered), 2);
  });

  test('says private where nobody named himself, and the answer is not kept', async () => {
    assert.equal(await askedFor([[], []], [['Cache-Control', 'private']]), 2);
  });

  test('sets a cookie, and the answer is not kept (section 7.3)', async () => {
    assert.equal(await bankSays(['Set-Cookie', 'session=1']), 2);
  });

  for (const [vary, asked] of [
    ['*', 2],
    ['X-Device', 2],
    ['Accept, X-Device', 2],
    ['accept, Accept-Encoding, PSU-ID, Consent-ID, Authorization, Accept-Language', 1],
  ] as const) {
    test(`says Vary: ${vary}, and is asked ${asked === 1 ? 'once' : 'again'} (section 4.1)`, async () => {
      assert.equal(await bankSays(['Vary', vary]), asked);
    });
  }

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
    ['Cache-Control', 'no-cache; max-age=60'],
  ] as const) {
    test(`says ${field}: ${value}, and the answer is not fresh any more (sections 4.2 and 5.1)`, async () => {
      assert.equal(await bankSays([field, value]), 2);
    });
  }

  for (const [field, value] of [
    ['Cache-Control', 'max-age=60'],
    ['Cache-Control', 'max-age="60"'],
    ['Cache-Control', 'max-age=99999999999999999999'],
    ['Age', 'old'],
    ['Age', '-1'],
    ['Expires', new Date(Date.now() + 60_000).toUTCString()],
  ] as const) {
    test(`says ${field}: ${value}, and the answer is kept`, async () => {
      assert.equal(await bankSays([field, value]), 1);
    });
  }

  for (const status of [201, 203, 204, 206, 301, 304, 400, 404, 429, 500]) {
    test(`answers ${status}, which is not kept: only 200 is`, async () => {
      let asked = 0;
      const { send } = createCacheInstance(createMemoryState(), async () =>
        bankResponse(status, [], String(asked++)),
      );
      await send(statusRead());
      assert.equal((await send(statusRead())).status, status);
      assert.equal(asked, 2);
    });
  }
});

describe('a read', () => {
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
    test(`with ${field[0]}: ${field[1]} passes the cache by: it takes nothing and leaves nothing`, async () => {
      assert.equal(await askedFor([[token], [token, field]]), 2);
      assert.equal(await askedFor([[token, field], [token]]), 2);
      assert.equal(
        await askedFor([
          [token, field],
          [token, field],
        ]),
        2,
      );
    });
  }

  for (const control of ['no-cache', 'max-age=0', 'No-Cache, max-stale=60']) {
    test(`with Cache-Control: ${control} goes to the bank, and its answer serves the next (section 5.2.1)`, async () => {
      const field = ['Cache-Control', control] as const;
      assert.equal(await askedFor([[token], [token, field]]), 2);
      assert.equal(await askedFor([[token, field], [token]]), 1);
    });
  }

  test('with only-if-cached gets what is known, else NOT_CACHED, and the bank is not asked (section 5.2.1.7)', async () => {
    let asked = 0;
    const { send } = createCacheInstance(createMemoryState(), async () =>
      statusResponse('ACTC', [], { n: asked++ }),
    );
    const only = ['Cache-Control', 'only-if-cached'] as const;
    await assert.rejects(send(withFields(only)), { code: 'NOT_CACHED' });
    await send(withFields());
    assert.equal((await send(withFields(only))).servedFrom, 'cache');
    for (const impossible of [
      ['Cache-Control', 'no-cache'],
      ['Signature', 'keyId="1"'],
      ['If-None-Match', '"1"'],
    ] as const) {
      await assert.rejects(send(withFields(only, impossible)), { code: 'NOT_CACHED' });
    }
    assert.equal(asked, 1);
  });
});

describe('an answer from the cache', () => {
  async function hitAfter(ms: number, answered: readonly Field[] = []) {
    let nowMs = 1_000_000_000;
    const instance = createCacheInstance(
      createMemoryState(),
      async () => statusResponse('ACCC', answered),
      {},
      () => nowMs,
    );
    const first = await instance.send(withFields(token));
    nowMs += ms;
    return { first, hit: await instance.send(withFields(token)) };
  }

  test('tells its age in whole seconds, and for how long it is fresh', async () => {
    const { first, hit } = await hitAfter(12_900);
    assert.equal(headerValue(first.headers, 'age'), undefined);
    assert.equal(headerValue(hit.headers, 'age'), '12');
    assert.equal(headerValue(hit.headers, 'cache-status'), 'penstock; hit; ttl=3588');
  });

  test("counts the bank's own Age, which it replaces", async () => {
    const { first, hit } = await hitAfter(12_900, [['Age', '100']]);
    assert.equal(headerValue(first.headers, 'age'), '100');
    assert.deepEqual(
      hit.headers.filter(([name]) => name === 'Age'),
      [['Age', '112']],
    );
  });

  test('has the very bytes and fields of the first, but for those of one answer only', async () => {
    const answered = [
      ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'],
      ['ASPSP-SCA-Approach', 'REDIRECT'],
      ['Date', 'Thu, 01 Dec 1994 16:00:00 GMT'],
    ] as const;
    const { first, hit } = await hitAfter(0, answered);
    assert.deepEqual(hit.body, first.body);
    const names = hit.headers.map(([name]) => name);
    assert.deepEqual(names, ['Content-Type', 'ASPSP-SCA-Approach', 'Date', 'Cache-Status', 'Age']);
  });
});

describe('a refusal of credentials', () => {
  for (const status of [401, 403]) {
    test(`with ${status} drops what was fetched with them, and with no others`, async () => {
      let answer = statusResponse('ACTC');
      const { send, counts } = createCacheInstance(createMemoryState(), async () => answer);
      const two = ['Authorization', 'Bearer two'] as const;
      for (const credential of [token, two]) await send(withFields(credential));
      answer = bankResponse(status);
      await send(withFields(token, ['Cache-Control', 'no-cache']));
      assert.equal((await send(withFields(token))).status, status);
      assert.equal((await send(withFields(two))).servedFrom, 'cache');
      assert.equal(counts.get('hit'), 1);
    });
  }

  for (const known of ['something', 'nothing'] as const) {
    test(`drops what is on its way with them, too, where ${known} was known`, async () => {
      const gate = Promise.withResolvers<void>();
      let answer = statusResponse('ACTC');
      const { send } = createCacheInstance(createMemoryState(), async ({ headers }) => {
        const decided = answer;
        if (headers.includes(token) && decided.status === 200) await gate.promise;
        return decided;
      });
      if (known === 'something') await send(withFields(['Authorization', 'Bearer two']));
      const slow = send(withFields(token));
      await setImmediate();
      answer = bankResponse(401);
      await send(withFields(token, ['Cache-Control', 'no-cache']));
      gate.resolve();
      await slow;
      assert.equal((await send(withFields(token))).status, 401);
    });
  }

  test('drops what was fetched with them, although the state took no change meanwhile', async () => {
    let answer = statusResponse('ACTC');
    const state = createFailingState();
    const { send } = createCacheInstance(state, async () => answer);
    await send(withFields(token));
    answer = bankResponse(401);
    state.fail('write', 'replace');
    await send(withFields(token, ['Cache-Control', 'no-cache']));
    state.recover();
    assert.equal((await send(withFields(token))).status, 401);
  });
});
