import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { PisResponse } from '../../../src/request/messages.ts';
import { paymentIdOf } from '../../../src/request/payment-id.ts';
import { bankResponse } from '../environments/requests.ts';

const body = Buffer.from('{"transactionStatus":"RCVD","paymentId":"1234-wertiq-983","_links":{}}');

const coded = (bytes: Buffer, coding: string): PisResponse => ({
  ...bankResponse('sandbox', bytes),
  headers: [['Content-Encoding', coding]],
});

describe('the payment id in a response', () => {
  test('is read from the body, not from the links', async () => {
    assert.equal(await paymentIdOf(bankResponse('sandbox', body)), '1234-wertiq-983');
  });

  test('is read from a compressed body', async () => {
    assert.equal(await paymentIdOf(coded(gzipSync(body), 'gzip')), '1234-wertiq-983');
    assert.equal(await paymentIdOf(coded(deflateSync(body), 'deflate')), '1234-wertiq-983');
    assert.equal(await paymentIdOf(coded(brotliCompressSync(body), 'br')), '1234-wertiq-983');
  });

  test('is read from the parsed body if there is one', async () => {
    const response = { ...coded(body, 'gzip'), json: { paymentId: 'p-1' } };
    assert.equal(paymentIdOf(response), 'p-1');
    assert.equal(paymentIdOf({ ...response, json: null }), undefined);
  });

  test('may contain any characters', async () => {
    for (const id of ['GJv0KO..Fg==_=_bS6p6XvTWI', 'ü-1', '🏦', 'a"b\\c', ' ']) {
      assert.equal(await paymentIdOf(bankResponse('sandbox', { paymentId: id })), id);
    }
  });

  test('is undefined if the member is missing, empty, of another type or nested', async () => {
    const bodies = [
      {},
      { paymentId: '' },
      { paymentId: 17 },
      { paymentId: null },
      { payment: { paymentId: 'p' } },
    ];
    for (const one of bodies) assert.equal(await paymentIdOf(bankResponse('sandbox', one)), undefined);
  });

  test('is undefined if the body is not a JSON object', async () => {
    const bodies = ['', ' ', 'null', '[]', '"paymentId"', '17', '{"paymentId":"p"', '<Document/>', '\ufeff{'];
    for (const one of bodies)
      assert.equal(await paymentIdOf(bankResponse('sandbox', Buffer.from(one))), undefined);
  });

  test('is undefined if the content coding is unknown', async () => {
    assert.equal(await paymentIdOf(coded(gzipSync(body), 'zstd')), undefined);
  });

  test('is undefined if the body does not match its content coding', async () => {
    assert.equal(await paymentIdOf(coded(body, 'gzip')), undefined);
    assert.equal(await paymentIdOf(coded(gzipSync(body).subarray(0, 20), 'gzip')), undefined);
  });
});
