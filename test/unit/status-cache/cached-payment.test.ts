/** What stands in the shared state, and what becomes of it if somebody else has written there. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { encryptKeyValues } from '../../../src/state/encryption.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import {
  type CachedResponse,
  parseCachedPayment,
  serializeCachedPayment,
  withObservation,
} from '../../../src/status-cache/cached-payment.ts';
import { createFailingState, type FailingState } from '../../kit/failing-state.ts';
import { createCacheInstance, statusRead, statusResponse } from './cache-instance.ts';

const secrets = ['payment-42', 'Bearer-token', 'anna@example', 'consent-7', 'session-9', 'shop-tenant'];

const secretRead = statusRead({
  tenant: 'shop-tenant',
  payment: 'payment-42',
  headers: [
    ['Authorization', 'Bearer-token'],
    ['PSU-ID', 'anna@example'],
    ['Consent-ID', 'consent-7'],
    ['Cookie', 'session-9'],
  ],
});

/** A text, and what its parts say that look like base64. */
const readable = (stored: string) =>
  `${stored} ${stored.replaceAll(/[\w+/=-]{16,}/g, (text) => Buffer.from(text, 'base64').toString())}`;

const keysOf = ({ operations }: FailingState) => [
  ...new Set(operations.map((one) => one.split(' ')[1] ?? '')),
];

describe('in the shared state', () => {
  test('no key and no value shows a token, a consent, the PSU, the tenant or the payment', async () => {
    const state = createFailingState();
    const { send } = createCacheInstance(state, async () => statusResponse('ACTC'));
    await send(secretRead);
    for (const key of keysOf(state)) {
      const stored = readable(`${key} ${await state.keyValues.read(key)}`);
      for (const secret of secrets) assert.ok(!stored.includes(secret), `${secret} in ${key}`);
      if (key !== 'status') assert.match(key, /^status:/);
    }
  });

  test('the answer can be read, and cannot if it is encrypted; it is served all the same', async () => {
    const answer = statusResponse('ACTC', [['X-Of-The-Bank', 'a-header']], { psuName: 'Anna Example' });
    const parts = ['ACTC', 'transactionStatus', 'a-header', 'Anna Example'];
    for (const [keys, expected] of [
      [[], parts],
      [[randomBytes(32)], []],
    ] as const) {
      const state = createFailingState();
      const [key] = keys;
      const keyValues = key ? encryptKeyValues(state.keyValues, [key]) : state.keyValues;
      const { send } = createCacheInstance({ ...state, keyValues }, async () => answer);
      await send(secretRead);
      assert.deepEqual((await send(secretRead)).body, answer.body);
      const values = await Promise.all(keysOf(state).map((name) => state.keyValues.read(name)));
      const stored = readable(values.join(' '));
      assert.deepEqual(
        parts.filter((part) => stored.includes(part)),
        expected,
      );
      assert.equal(/"[gse]":/.test(stored), !key, 'the shape of a document');
    }
  });

  test('the same read stands elsewhere in another installation: the secret differs', async () => {
    const variants = async () => {
      const state = createFailingState();
      await createCacheInstance(state, async () => statusResponse('ACTC')).send(secretRead);
      const document = keysOf(state).find((key) => /^status:[\w-]{43}$/.test(key)) ?? assert.fail();
      return Object.keys(parseCachedPayment(await state.keyValues.read(document)).entries);
    };
    assert.notDeepEqual(await variants(), await variants());
  });
});

describe('a secret that is not ours', () => {
  for (const [what, value] of [
    ['empty', ''],
    ['short', 'c2hvcnQ='],
    ['no base64', '*'.repeat(44)],
    ['too long', 'A'.repeat(10_000)],
  ] as const) {
    test(`(${what}) is replaced, so that nobody can guess what was hashed`, async () => {
      const state = createMemoryState();
      await state.keyValues.write('status:secret', value);
      const bank = async () => statusResponse('ACTC');
      const [here, there] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
      await Promise.all([here.send(secretRead), there.send(secretRead)]);
      assert.match((await state.keyValues.read('status:secret')) ?? '', /^[\w+/]{43}=$/);
      await here.runMaintenance();
      await there.runMaintenance();
      await here.send(secretRead);
      assert.equal((await there.send(secretRead)).servedFrom, 'cache');
    });
  }
});

describe('a value that is not ours', () => {
  for (const [what, value] of [
    ['no JSON', 'garbage'],
    ['empty', ''],
    ['of a later version', '{"v":2,"g":"1","a":0,"e":{}}'],
    ['of another shape', '{"v":1,"g":7,"a":"x","e":[]}'],
    [
      'with a body that is no base64',
      '{"v":1,"g":"1","a":0,"e":{"x":{"h":[],"b":"%","f":0,"t":9e99,"c":""}}}',
    ],
    ['too large', JSON.stringify({ v: 1, g: 'x'.repeat(300_000), a: 0, e: {} })],
    ['deep', '['.repeat(100_000)],
  ] as const) {
    test(`(${what}) counts as nothing, and is replaced by what the bank says`, async () => {
      const state = createFailingState(createMemoryState());
      const { send, counts } = createCacheInstance(state, async () => statusResponse('ACTC'));
      await send(statusRead());
      const key = keysOf(state).find((one) => /^status:[\w-]{43}$/.test(one)) ?? assert.fail();
      await state.keyValues.write(key, value);
      assert.equal((await send(statusRead())).servedFrom, 'bank');
      assert.equal((await send(statusRead())).servedFrom, 'cache');
      assert.equal(counts.get('miss'), 2);
    });
  }

  test('is not ours although it looks so, if it is larger than any of ours', async () => {
    const state = createFailingState(createMemoryState());
    const { send } = createCacheInstance(state, async () => statusResponse('ACCC'));
    await send(statusRead());
    const key = keysOf(state).find((one) => /^status:[\w-]{43}$/.test(one)) ?? assert.fail();
    const ours = JSON.parse((await state.keyValues.read(key)) ?? '');
    await state.keyValues.write(key, JSON.stringify({ ...ours, padding: 'x'.repeat(300_000) }));
    assert.equal((await send(statusRead())).servedFrom, 'bank');
    assert.equal((await send(statusRead())).servedFrom, 'cache');
  });

  test('has a generation of its own, and the same one each time', () => {
    const [one, other] = ['garbage', 'other garbage'].map((text) => parseCachedPayment(text).generation);
    assert.notEqual(one, other);
    assert.equal(parseCachedPayment('garbage').generation, one);
    assert.notEqual(one, parseCachedPayment(undefined).generation);
  });
});

describe('a document', () => {
  const entry = (fetchedAt: number, size = 10): CachedResponse => {
    return { headers: [], body: 'A'.repeat(size * 4), fetchedAt, ttlMs: 1_000, credential: 'c' };
  };

  test('comes back as it was written', () => {
    const sighting = { standing: 's', seenAt: 5, entries: { variant: entry(5) } };
    const document = withObservation(parseCachedPayment(undefined), sighting);
    assert.deepEqual(parseCachedPayment(serializeCachedPayment(document)), document);
  });

  test('never grows beyond its bound: the newest answers stay', () => {
    const entries = Object.fromEntries(
      Array.from({ length: 400 }, (_, index) => [`v${index}`, entry(index, 1_000)]),
    );
    const text = serializeCachedPayment({ generation: 'g', standing: 's', since: 0, entries });
    assert.ok(text.length <= 256 * 1024);
    const kept = Object.keys(parseCachedPayment(text).entries);
    assert.ok(kept.length >= 30 && kept.includes('v399') && !kept.includes('v0'));
  });

  test('holds no more kinds of small answers than it can be read with at once, however many are asked for', () => {
    const entries = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [`v${index}`, entry(index)]),
    );
    const kept = Object.keys(
      parseCachedPayment(serializeCachedPayment({ generation: 'g', standing: 's', since: 0, entries }))
        .entries,
    );
    assert.ok(kept.length >= 32 && kept.length <= 100, `${kept.length} are kept`);
    assert.ok(kept.includes('v1999') && !kept.includes('v0'));
  });

  test('keeps the status alone if the answer is too large', () => {
    const entries = { variant: entry(0, 100_000) };
    const text = serializeCachedPayment({ generation: 'g', standing: 's', since: 7, entries });
    assert.deepEqual(parseCachedPayment(text), { generation: 'g', standing: 's', since: 7, entries: {} });
  });
});
