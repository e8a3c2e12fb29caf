/** Cached payments in the shared state: what they reveal, and what happens to values that no gateway wrote. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { encryptKeyValues } from '../../../src/state/encryption.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import {
  type CachedResponse,
  parseCachedPayment,
  serializeCachedPayment,
} from '../../../src/status-cache/cached-payment.ts';
import { recordObservation, recordRead } from '../../../src/status-cache/observation-rules.ts';
import { createFailingState, type FailingState } from '../../kit/failing-state.ts';
import { bankStatusResponse, createCacheInstance, statusRead } from './cache-instance.ts';

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

/** A text together with the decoded parts of it that look like base64. */
const readable = (stored: string) =>
  `${stored} ${stored.replaceAll(/[\w+/=-]{16,}/g, (text) => Buffer.from(text, 'base64').toString())}`;

const keysOf = ({ operations }: FailingState) => [
  ...new Set(operations.map((one) => one.split(' ')[1] ?? '')),
];

describe('the stored keys and values', () => {
  test('reveals no token, consent, PSU, tenant or payment id in any key or value', async () => {
    const state = createFailingState();
    const { send } = createCacheInstance(state, async () => bankStatusResponse('ACTC'));
    await send(secretRead);
    for (const key of keysOf(state)) {
      const stored = readable(`${key} ${await state.keyValues.read(key)}`);
      for (const secret of secrets) assert.ok(!stored.includes(secret), `${secret} in ${key}`);
      if (key !== 'status') assert.match(key, /^status:/);
    }
  });

  test('stores the response readably without encryption keys, unreadably with them, and serves it in both cases', async () => {
    const answer = bankStatusResponse('ACTC', [['X-Of-The-Bank', 'a-header']], { psuName: 'Anna Example' });
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
      assert.equal(/"[gse]":/.test(stored), !key, 'the shape of a cached payment');
    }
  });

  test('hashes the same read differently in another installation', async () => {
    const variants = async () => {
      const state = createFailingState();
      await createCacheInstance(state, async () => bankStatusResponse('ACTC')).send(secretRead);
      const paymentKey = keysOf(state).find((key) => /^status:[\w-]{43}$/.test(key)) ?? assert.fail();
      return Object.keys(parseCachedPayment(await state.keyValues.read(paymentKey)).responses);
    };
    assert.notDeepEqual(await variants(), await variants());
  });
});

describe('an invalid secret in the shared state', () => {
  for (const [what, value] of [
    ['empty', ''],
    ['short', 'c2hvcnQ='],
    ['not base64', '*'.repeat(44)],
    ['too long', 'A'.repeat(10_000)],
  ] as const) {
    test(`replaces a secret that is ${what}, so that hashed values cannot be guessed`, async () => {
      const state = createMemoryState();
      await state.keyValues.write('status:secret', value);
      const bank = async () => bankStatusResponse('ACTC');
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

describe('an invalid payment in the shared state', () => {
  for (const [what, value] of [
    ['not JSON', 'garbage'],
    ['empty', ''],
    ['of a later version', '{"v":2,"g":"1","a":0,"e":{}}'],
    ['of another shape', '{"v":1,"g":7,"a":"x","e":[]}'],
    [
      'with a body that is not base64',
      '{"v":1,"g":"1","a":0,"e":{"x":{"h":[],"b":"%","f":0,"t":9e99,"c":""}}}',
    ],
    ['too large', JSON.stringify({ v: 1, g: 'x'.repeat(300_000), a: 0, e: {} })],
    ['deeply nested', '['.repeat(100_000)],
  ] as const) {
    test(`ignores a value that is ${what}, and replaces it by the bank's response`, async () => {
      const state = createFailingState(createMemoryState());
      const { send, counts } = createCacheInstance(state, async () => bankStatusResponse('ACTC'));
      await send(statusRead());
      const key = keysOf(state).find((one) => /^status:[\w-]{43}$/.test(one)) ?? assert.fail();
      await state.keyValues.write(key, value);
      assert.equal((await send(statusRead())).servedFrom, 'bank');
      assert.equal((await send(statusRead())).servedFrom, 'cache');
      assert.equal(counts.get('miss'), 2);
    });
  }

  test('ignores a well-formed value that is larger than the limit', async () => {
    const state = createFailingState(createMemoryState());
    const { send } = createCacheInstance(state, async () => bankStatusResponse('ACCC'));
    await send(statusRead());
    const key = keysOf(state).find((one) => /^status:[\w-]{43}$/.test(one)) ?? assert.fail();
    const stored = JSON.parse((await state.keyValues.read(key)) ?? '');
    await state.keyValues.write(key, JSON.stringify({ ...stored, padding: 'x'.repeat(300_000) }));
    assert.equal((await send(statusRead())).servedFrom, 'bank');
    assert.equal((await send(statusRead())).servedFrom, 'cache');
  });

  test('gives each invalid value its own generation, the same at each read', () => {
    const [one, other] = ['garbage', 'other garbage'].map((text) => parseCachedPayment(text).generation);
    assert.notEqual(one, other);
    assert.equal(parseCachedPayment('garbage').generation, one);
    assert.notEqual(one, parseCachedPayment(undefined).generation);
  });
});

describe('serialization of a cached payment', () => {
  const response = (fetchedAtMs: number, size = 10): CachedResponse => {
    return { headers: [], body: Buffer.alloc(size * 3), fetchedAtMs, ttlMs: 1_000, credential: 'c' };
  };

  const known = { generation: 'g', statusHash: 's', statusSinceMs: 7, endedAuthorisations: ['a'] };

  test('parses a serialized payment to the same value', () => {
    const observation = { statusHash: 's', observedAtMs: 5, responses: { variant: response(5) } };
    const [, observed] = recordRead(parseCachedPayment(undefined), '', observation);
    const ended = { what: 'authorisation-ended', authorisation: 'a' } as const;
    for (const payment of [observed, recordObservation(parseCachedPayment(undefined), ended)]) {
      assert.ok(payment);
      assert.deepEqual(parseCachedPayment(serializeCachedPayment(payment)), payment);
    }
  });

  test('keeps the newest responses within the size limit', () => {
    const responses = Object.fromEntries(
      Array.from({ length: 400 }, (_, index) => [
        `v${index}`,
        { ...response(index, 1_000), credential: `caller ${index}` },
      ]),
    );
    const text = serializeCachedPayment({ ...known, responses });
    assert.ok(text.length <= 64 * 1024);
    const stored = Object.keys(parseCachedPayment(text).responses);
    assert.ok(stored.length >= 8 && stored.includes('v399') && !stored.includes('v0'));
  });

  test('keeps the eight newest responses of each caller', () => {
    const of = (credential: string, from: number) =>
      Array.from({ length: 20 }, (_, index) => [
        `${credential}${index}`,
        { ...response(from + index), credential },
      ]);
    const responses = Object.fromEntries([...of('one', 0), ...of('other', 1_000)]);
    const stored = Object.keys(parseCachedPayment(serializeCachedPayment({ ...known, responses })).responses);
    const expected = Array.from({ length: 8 }, (_, index) => [
      `one${12 + index}`,
      `other${12 + index}`,
    ]).flat();
    assert.deepEqual(stored.toSorted(), expected.toSorted());
  });

  test('keeps a limited number of small responses', () => {
    const responses = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [
        `v${index}`,
        { ...response(index), credential: `caller ${index}` },
      ]),
    );
    const stored = Object.keys(parseCachedPayment(serializeCachedPayment({ ...known, responses })).responses);
    assert.ok(stored.length >= 32 && stored.length <= 100, `${stored.length} are stored`);
    assert.ok(stored.includes('v1999') && !stored.includes('v0'));
  });

  test('keeps only the status if the response is too large', () => {
    const responses = { variant: response(0, 100_000) };
    const text = serializeCachedPayment({ ...known, responses });
    assert.deepEqual(parseCachedPayment(text), { ...known, responses: {} });
  });
});
