import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { paymentIdOf } from '../../../src/environments/payment-id.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { bankResponse } from './requests.ts';

const body = Buffer.from('{"transactionStatus":"RCVD","paymentId":"1234-wertiq-983","_links":{}}');

const coded = (bytes: Buffer, coding: string): PisResponse => ({
  ...bankResponse('sandbox', bytes),
  headers: [['Content-Encoding', coding]],
});

describe("a payment's id", () => {
  test('is read from the body, whatever the links say', async () => {
    assert.equal(await paymentIdOf(bankResponse('sandbox', body)), '1234-wertiq-983');
  });

  test('is read from a compressed body', async () => {
    assert.equal(await paymentIdOf(coded(gzipSync(body), 'gzip')), '1234-wertiq-983');
    assert.equal(await paymentIdOf(coded(deflateSync(body), 'deflate')), '1234-wertiq-983');
    assert.equal(await paymentIdOf(coded(brotliCompressSync(body), 'br')), '1234-wertiq-983');
  });

  test('may hold whatever characters the bank likes', async () => {
    for (const id of ['GJv0KO..Fg==_=_bS6p6XvTWI', 'ü-1', '🏦', 'a"b\\c', ' ']) {
      assert.equal(await paymentIdOf(bankResponse('sandbox', { paymentId: id })), id);
    }
  });

  test('is not made up where there is none: no such member, an empty one, another type, another level', async () => {
    const bodies = [
      {},
      { paymentId: '' },
      { paymentId: 17 },
      { paymentId: null },
      { payment: { paymentId: 'p' } },
    ];
    for (const one of bodies) assert.equal(await paymentIdOf(bankResponse('sandbox', one)), undefined);
  });

  test('is not found in what is no JSON object, and nothing fails by that', async () => {
    const bodies = ['', ' ', 'null', '[]', '"paymentId"', '17', '{"paymentId":"p"', '<Document/>', '\ufeff{'];
    for (const one of bodies)
      assert.equal(await paymentIdOf(bankResponse('sandbox', Buffer.from(one))), undefined);
  });

  test('is not found in a body whose coding nobody knows', async () => {
    assert.equal(await paymentIdOf(coded(gzipSync(body), 'zstd')), undefined);
  });

  test('is not found in a body that is not what its coding says, and the answer is not lost by that', async () => {
    assert.equal(await paymentIdOf(coded(body, 'gzip')), undefined);
    assert.equal(await paymentIdOf(coded(gzipSync(body).subarray(0, 20), 'gzip')), undefined);
  });
});
