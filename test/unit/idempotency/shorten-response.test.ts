import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { shortenResponse } from '../../../src/idempotency/shorten-response.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { bankResponse } from './bank-response.ts';

const mebibytes = (count: number) => 'x'.repeat(count * 1024 * 1024);
const created = {
  transactionStatus: 'RCVD',
  paymentId: 'a-payment',
  _links: { status: { href: '/status' } },
};
const bodyOf = ({ body }: PisResponse) => JSON.parse(body.toString()) as Record<string, unknown>; // written by the code under test

const shortened = async (status: number, body: string | object): Promise<PisResponse> =>
  shortenResponse(bankResponse(status, typeof body === 'string' ? body : JSON.stringify(body)));

describe('of a response that is too long to be stored', () => {
  test('the short members of its JSON are stored, with a warning that the others are missing', async () => {
    const response = await shortened(201, { padding: mebibytes(4), ...created });
    const { tppMessages, ...members } = bodyOf(response);
    assert.deepEqual(members, created);
    assert.match(JSON.stringify(tppMessages), /"WARNING".*stored only a part.*4194\d{3} bytes/);
    assert.equal(response.status, 201);
  });

  test('the first messages of an error are stored', async () => {
    const messages = Array.from({ length: 10_000 }, () => ({
      category: 'ERROR',
      code: 'PAYMENT_FAILED',
      text: 'No',
    }));
    const { tppMessages } = bodyOf(await shortened(400, { tppMessages: messages }));
    assert.ok(Array.isArray(tppMessages) && tppMessages.length > 5 && tppMessages.length < 50);
    assert.deepEqual(tppMessages, messages.slice(0, tppMessages.length));
  });

  test('an error of the standard with the same status is stored if it is not JSON, or is one long value', async () => {
    const text = { tppMessages: [{ category: 'ERROR', code: 'FORMAT_ERROR', text: mebibytes(1) }] };
    for (const body of [mebibytes(1), `"${mebibytes(1)}"`, `${'['.repeat(200_000)}`, text]) {
      const response = await shortened(404, body);
      assert.equal(response.status, 404);
      assert.match(
        response.body.toString(),
        /^\{"tppMessages":\[\{"category":"ERROR","code":"RESOURCE_UNKNOWN"/,
      );
    }
  });

  test('the headers that a repeat needs are stored, and none that describes the bytes of the body', async () => {
    const wanted = [
      ['Location', 'https://bank.example/psd2/v1/payments/x'],
      ['ASPSP-SCA-Approach', 'REDIRECT'],
      ['Content-Type', 'application/json; charset=utf-8'],
    ] as const;
    const others = [
      ['Content-Encoding', 'gzip'],
      ['Digest', 'SHA-256=x'],
      ['Signature', 'x'],
      ['ETag', '"x"'],
      ['Retry-After', mebibytes(1)],
    ] as const;
    const body = gzipSync(JSON.stringify({ padding: mebibytes(1), ...created }));
    const response = await shortenResponse({ ...bankResponse(201), headers: [...wanted, ...others], body });
    assert.deepEqual(response.headers, wanted);
    assert.equal(bodyOf(response).paymentId, 'a-payment');
  });

  test('a few kilobytes are stored, whatever it contains', async () => {
    const members = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, n) => [`m${n}`, 'é'.repeat(n % 500)]),
    );
    const tppMessages = Array.from({ length: 3_000 }, () => 'é');
    const response = await shortened(201, { ...members, tppMessages });
    assert.ok(response.body.length < 8_192, `${response.body.length} bytes`);
  });
});
