import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { EncryptionKeys } from '../../../src/config/encryption-keys.ts';
import type { PisRequest } from '../../../src/request/messages.ts';
import { bankResponse } from './bank-response.ts';
import { startInstance } from './instance.ts';
import { authorisationUpdate, initiation } from './requests.ts';

const [one, two] = [randomBytes(32), randomBytes(32)];
const secret = 'DE89370400440532013000';
const created = bankResponse(201, JSON.stringify({ paymentId: 'a-payment', iban: secret }), [
  ['X-Secret', secret],
]);

/** A write that an instance with these keys has stored with its response. */
async function startStored(t: TestContext, keys: EncryptionKeys | undefined, request?: PisRequest) {
  const started = await startInstance(t, keys && { keys });
  const begun = await started.instance.begin(request);
  await begun.respond(created);
  return started;
}

describe('a stored response', () => {
  test('cannot be read in the database if there is a key, and is replayed byte for byte', async (t) => {
    const { instance, rowOf } = await startStored(t, [one]);
    const row = await rowOf();
    assert.ok(!String(row?.headers).includes(secret));
    assert.ok(row?.body instanceof Uint8Array && !Buffer.from(row.body).includes(secret));
    const response = await instance.send(initiation(), () => assert.fail('it is sent'));
    assert.deepEqual([response.headers, response.body], [created.headers, created.body]);
  });

  test('is replayed with an older key of the file, and without a key if there was none', async (t) => {
    for (const earlier of [[one], undefined] as const)
      await t.test(earlier ? 'an older key' : 'no key', async (step) => {
        const { newInstance } = await startStored(step, earlier);
        const later = await newInstance({ keys: [two, one] });
        assert.equal(await later.repeat(), '201 from ledger');
        assert.equal(await later.repeat(initiation({ body: 'another' })), 'DUPLICATE_MISMATCH');
      });
  });

  for (const [what, keys] of [
    ['another key', { keys: [two] }],
    ['no key', {}],
  ] as const)
    test(`is in doubt with ${what}, also for another body, because a new X-Request-ID might pay twice`, async (t) => {
      const { newInstance } = await startStored(t, [one]);
      const later = await newInstance(keys);
      assert.equal(await later.repeat(), 'DUPLICATE_IN_DOUBT');
      assert.equal(await later.repeat(initiation({ body: 'another' })), 'DUPLICATE_IN_DOUBT');
    });

  for (const [what, change] of [
    ['was modified', `UPDATE ledger SET body = x'${'00'.repeat(64)}'`],
    ['was cut off', `UPDATE ledger SET body = x'00'`],
    ['has headers that are not JSON', `UPDATE ledger SET headers = '{'`],
    ['has headers of another shape', `UPDATE ledger SET headers = '{"fields":[1]}'`],
    ['has no body', 'UPDATE ledger SET headers = NULL, body = NULL'],
    ['is that of another attempt', `UPDATE ledger SET attempt = 'another'`],
  ] as const)
    test(`is in doubt if it ${what}`, async (t) => {
      const { instance, database } = await startStored(t, [one]);
      await database.query(change);
      assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
    });
});

describe('the fingerprints in the database', () => {
  const tan = (value: string) => authorisationUpdate({ body: `{"scaAuthenticationData":"${value}"}` });

  test('notice another TAN under a used X-Request-ID if there is a key, and leave it out if there is none', async (t) => {
    for (const [keys, expected] of [
      [[one], 'DUPLICATE_MISMATCH'],
      [undefined, '201 from ledger'],
    ] as const)
      await t.test(keys ? 'with a key' : 'without a key', async (step) => {
        const { instance } = await startStored(step, keys, tan('12345'));
        assert.equal(await instance.repeat(tan('12345')), '201 from ledger');
        assert.equal(await instance.repeat(tan('54321')), expected);
      });
  });
});
