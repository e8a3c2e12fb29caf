import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { maxDecodedBytes } from '../../../src/request/content-coding.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { rewriteUrls } from '../../../src/rewriting/rewrite-urls.ts';
import { bankResponse, routedRequest } from './messages.ts';

const stage = rewriteUrls('https://gateway.example', 'berlingroup');
const request = routedRequest('/berlingroup/v1/payments/p/1');

/** The response of the stage for a response of the bank. */
const rewrite = (response: PisResponse) => stage(request, async () => response);

const json = ['Content-Type', 'application/json'] as const;
const bankBody = '{"amount":123.50,"_links":{"self":{"href":"/psd2/berlingroup/v1/payments/p/1"}}}';
const gatewayBody =
  '{"amount":123.50,"_links":{"self":{"href":"https://gateway.example/berlingroup/v1/payments/p/1"}}}';
const foreign = '{"_links":{"scaRedirect":{"href":"https://www.bank.example/authorise/1"}}}';

describe('rewriteUrls', () => {
  test('passes the request on unchanged', async () => {
    const seen = await stage(request, async (handed) => {
      assert.equal(handed, request);
      return bankResponse([]);
    });

    assert.deepEqual(seen, bankResponse([]));
  });

  test('rewrites every Location and Content-Location that points into the API, and no other', async () => {
    const api = 'https://api.bank.example/psd2/berlingroup/v1/payments/p/1';
    const { headers } = await rewrite(
      bankResponse([
        ['Location', api],
        ['X-Request-ID', 'r'],
        ['location', '/v1/payments/p/1/status'],
        ['CONTENT-LOCATION', api],
        ['Location', 'https://www.bank.example/authorise?return=/v1/payments/p/1'],
        ['Location', 'http://['],
        ['Link', `<${api}>`],
      ]),
    );

    assert.deepEqual(headers, [
      ['Location', 'https://gateway.example/berlingroup/v1/payments/p/1'],
      ['X-Request-ID', 'r'],
      ['location', 'https://gateway.example/berlingroup/v1/payments/p/1/status'],
      ['CONTENT-LOCATION', 'https://gateway.example/berlingroup/v1/payments/p/1'],
      ['Location', 'https://www.bank.example/authorise?return=/v1/payments/p/1'],
      ['Location', 'http://['],
      ['Link', `<${api}>`],
    ]);
  });

  for (const type of [
    'application/json',
    'application/problem+json',
    'Application/HAL+JSON; charset=UTF-8',
    'application/json;charset=utf-8',
  ]) {
    test(`rewrites the links of a body in ${type}`, async () => {
      const { body } = await rewrite(bankResponse([['content-type', type]], bankBody));

      assert.equal(body.toString(), gatewayBody);
    });
  }

  test('does not change bodies of other types', async () => {
    for (const type of [
      'application/xml',
      'text/plain',
      'application/jsonp',
      'multipart/form-data',
      'json',
      '',
    ]) {
      const response = bankResponse([['Content-Type', type]], bankBody);
      assert.deepEqual(await rewrite(response), response, type);
    }
    assert.deepEqual(await rewrite(bankResponse([], bankBody)), bankResponse([], bankBody));
  });

  test('removes fields that describe the original bytes if the body changes', async () => {
    const kept: HeaderFields = [json, ['X-Request-ID', 'r'], ['ASPSP-SCA-Approach', 'REDIRECT']];
    const stale: HeaderFields = [
      ['ETag', '"1"'],
      ['Digest', 'SHA-256=x'],
      ['Content-Digest', 'sha-256=:x:'],
      ['Repr-Digest', 'sha-256=:x:'],
      ['Content-MD5', 'x'],
      ['Signature', 'sig1=:x:'],
      ['Signature-Input', 'sig1=()'],
      ['Content-Encoding', 'identity'],
    ];

    assert.deepEqual((await rewrite(bankResponse([...kept, ...stale], bankBody))).headers, kept);
    assert.deepEqual((await rewrite(bankResponse([...kept, ...stale], foreign))).headers, [
      ...kept,
      ...stale,
    ]);
  });

  test('returns a response without links byte for byte', async () => {
    for (const text of [foreign, '{"transactionStatus":"ACSP"}', '{"broken":', '']) {
      const response = bankResponse([json, ['ETag', '"1"']], text);
      const result = await rewrite(response);
      assert.equal(result.body, response.body);
      assert.deepEqual(result, response);
    }
  });

  test('has the same result for the same request and response, and changes neither', async () => {
    const response = bankResponse([json, ['Location', '/v1/payments/p/1']], bankBody);
    const before = structuredClone(response);

    assert.deepEqual(await rewrite(response), await rewrite(response));
    assert.deepEqual(structuredClone(response), before);
  });

  test('passes errors of later stages on', async () => {
    const error = new GatewayError('OUTCOME_UNKNOWN', 'no answer');

    await assert.rejects(
      stage(request, () => Promise.reject(error)),
      error,
    );
  });
});

describe('rewriteUrls of an encoded response', () => {
  const codings = {
    gzip: gzipSync,
    'x-gzip': gzipSync,
    GZip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    'deflate, gzip': (body: Buffer | string) => gzipSync(deflateSync(body)),
    'identity, gzip': gzipSync,
  };
  for (const [coding, encode] of Object.entries(codings)) {
    test(`decodes ${coding} if a link changes, and returns the encoded bytes otherwise`, async () => {
      const headers: HeaderFields = [json, ['Content-Encoding', coding]];
      const changed = await rewrite(bankResponse(headers, encode(bankBody)));
      const same = bankResponse(headers, encode(foreign));

      assert.equal(changed.body.toString(), gatewayBody);
      assert.deepEqual(changed.headers, [json]);
      assert.deepEqual(await rewrite(same), same);
    });
  }

  test('decodes deflate without the zlib format', async () => {
    const { body } = await rewrite(
      bankResponse([json, ['Content-Encoding', 'deflate']], deflateRawSync(bankBody)),
    );

    assert.equal(body.toString(), gatewayBody);
  });

  test('does not change a body in an unknown coding', async () => {
    for (const coding of ['zstd', 'aes128gcm', 'gzip, zstd', '"gzip"']) {
      const response = bankResponse([json, ['Content-Encoding', coding]], zstdCompressSync(bankBody));
      assert.deepEqual(await rewrite(response), response, coding);
    }
  });

  test('does not decode a body that is not JSON', async () => {
    const response = bankResponse(
      [
        ['Content-Type', 'application/xml'],
        ['Content-Encoding', 'gzip'],
      ],
      'not gzip',
    );

    assert.deepEqual(await rewrite(response), response);
  });

  test('does not decode an empty body', async () => {
    const response = { ...bankResponse([json, ['Content-Encoding', 'gzip']]), status: 204 };

    assert.deepEqual(await rewrite(response), response);
  });

  for (const [coding, encode] of Object.entries({
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
  })) {
    test(`fails with UPSTREAM_MALFORMED if the body is not valid ${coding} or is cut off`, async () => {
      const encoded = encode(bankBody);
      for (const body of [Buffer.from('no such thing'), encoded.subarray(0, -6)]) {
        await assert.rejects(rewrite(bankResponse([json, ['Content-Encoding', coding]], body)), (error) => {
          assert.ok(error instanceof GatewayError && error.cause instanceof Error);
          assert.equal(error.code, 'UPSTREAM_MALFORMED');
          assert.equal(error.proxyError, 'http_response_content_coding');
          assert.equal(error.environment, 'sandbox');
          return true;
        });
      }
    });
  }

  test('E6: fails with UPSTREAM_MALFORMED if the decoded body exceeds the limit', async () => {
    const bomb = (bytes: number) =>
      bankResponse([json, ['Content-Encoding', 'gzip']], gzipSync(Buffer.alloc(bytes, ' ')));
    const fits = bomb(maxDecodedBytes);

    assert.deepEqual(await rewrite(fits), fits);
    await assert.rejects(rewrite(bomb(maxDecodedBytes + 1)), {
      code: 'UPSTREAM_MALFORMED',
      proxyError: 'http_response_body_size',
    });
    const nested = bankResponse([json, ['Content-Encoding', 'gzip, gzip']], gzipSync(bomb(100_000_000).body));
    await assert.rejects(rewrite(nested), { code: 'UPSTREAM_MALFORMED' });
  });
});
