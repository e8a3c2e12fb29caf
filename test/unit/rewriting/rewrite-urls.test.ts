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

/** What leaves the stage when the bank gave this answer. */
const passed = (response: PisResponse) => stage(request, async () => response);

const json = ['Content-Type', 'application/json'] as const;
const ofBank = '{"amount":123.50,"_links":{"self":{"href":"/psd2/berlingroup/v1/payments/p/1"}}}';
const ofGateway =
  '{"amount":123.50,"_links":{"self":{"href":"https://gateway.example/berlingroup/v1/payments/p/1"}}}';
const foreign = '{"_links":{"scaRedirect":{"href":"https://www.bank.example/authorise/1"}}}';

describe('rewriteUrls', () => {
  test('hands the request on as it is', async () => {
    const seen = await stage(request, async (handed) => {
      assert.equal(handed, request);
      return bankResponse([]);
    });

    assert.deepEqual(seen, bankResponse([]));
  });

  test('rewrites every Location and Content-Location that points into the API, and keeps the others', async () => {
    const api = 'https://api.bank.example/psd2/berlingroup/v1/payments/p/1';
    const { headers } = await passed(
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
    test(`rewrites the links of ${type}`, async () => {
      const { body } = await passed(bankResponse([['content-type', type]], ofBank));

      assert.equal(body.toString(), ofGateway);
    });
  }

  test('leaves bodies of any other type alone', async () => {
    for (const type of [
      'application/xml',
      'text/plain',
      'application/jsonp',
      'multipart/form-data',
      'json',
      '',
    ]) {
      const response = bankResponse([['Content-Type', type]], ofBank);
      assert.deepEqual(await passed(response), response, type);
    }
    assert.deepEqual(await passed(bankResponse([], ofBank)), bankResponse([], ofBank));
  });

  test('drops the fields that were true of the old bytes only', async () => {
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

    assert.deepEqual((await passed(bankResponse([...kept, ...stale], ofBank))).headers, kept);
    assert.deepEqual((await passed(bankResponse([...kept, ...stale], foreign))).headers, [...kept, ...stale]);
  });

  test('gives an answer without links back byte for byte', async () => {
    for (const text of [foreign, '{"transactionStatus":"ACSP"}', '{"broken":', '']) {
      const response = bankResponse([json, ['ETag', '"1"']], text);
      const result = await passed(response);
      assert.equal(result.body, response.body);
      assert.deepEqual(result, response);
    }
  });

  test('gives the same result for the same request and answer, and changes neither', async () => {
    const response = bankResponse([json, ['Location', '/v1/payments/p/1']], ofBank);
    const before = structuredClone(response);

    assert.deepEqual(await passed(response), await passed(response));
    assert.deepEqual(structuredClone(response), before);
  });

  test('lets the errors behind it through', async () => {
    const error = new GatewayError('OUTCOME_UNKNOWN', 'no answer');

    await assert.rejects(
      stage(request, () => Promise.reject(error)),
      error,
    );
  });
});

describe('an encoded answer', () => {
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
    test(`in ${coding} goes out decoded if a link changes, else as it came`, async () => {
      const headers: HeaderFields = [json, ['Content-Encoding', coding]];
      const changed = await passed(bankResponse(headers, encode(ofBank)));
      const same = bankResponse(headers, encode(foreign));

      assert.equal(changed.body.toString(), ofGateway);
      assert.deepEqual(changed.headers, [json]);
      assert.deepEqual(await passed(same), same);
    });
  }

  test('in deflate may lack the zlib format around it', async () => {
    const { body } = await passed(
      bankResponse([json, ['Content-Encoding', 'deflate']], deflateRawSync(ofBank)),
    );

    assert.equal(body.toString(), ofGateway);
  });

  test('in an unknown coding passes as it is', async () => {
    for (const coding of ['zstd', 'aes128gcm', 'gzip, zstd', '"gzip"']) {
      const response = bankResponse([json, ['Content-Encoding', coding]], zstdCompressSync(ofBank));
      assert.deepEqual(await passed(response), response, coding);
    }
  });

  test('that is not JSON is not even looked at', async () => {
    const response = bankResponse(
      [
        ['Content-Type', 'application/xml'],
        ['Content-Encoding', 'gzip'],
      ],
      'not gzip',
    );

    assert.deepEqual(await passed(response), response);
  });

  test('without a body, as 204 is, passes', async () => {
    const response = { ...bankResponse([json, ['Content-Encoding', 'gzip']]), status: 204 };

    assert.deepEqual(await passed(response), response);
  });

  for (const [coding, encode] of Object.entries({
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
  })) {
    test(`that is not what it says (${coding}), or is cut off, is the bank's fault`, async () => {
      const encoded = encode(ofBank);
      for (const body of [Buffer.from('no such thing'), encoded.subarray(0, -6)]) {
        await assert.rejects(passed(bankResponse([json, ['Content-Encoding', coding]], body)), (error) => {
          assert.ok(error instanceof GatewayError && error.cause instanceof Error);
          assert.equal(error.code, 'UPSTREAM_MALFORMED');
          assert.equal(error.proxyError, 'http_response_content_coding');
          assert.equal(error.environment, 'sandbox');
          return true;
        });
      }
    });
  }

  test('E6: that grows beyond the limit when decoded is refused, one at the limit is not', async () => {
    const bomb = (bytes: number) =>
      bankResponse([json, ['Content-Encoding', 'gzip']], gzipSync(Buffer.alloc(bytes, ' ')));
    const fits = bomb(maxDecodedBytes);

    assert.deepEqual(await passed(fits), fits);
    await assert.rejects(passed(bomb(maxDecodedBytes + 1)), {
      code: 'UPSTREAM_MALFORMED',
      proxyError: 'http_response_body_size',
    });
    const nested = bankResponse([json, ['Content-Encoding', 'gzip, gzip']], gzipSync(bomb(100_000_000).body));
    await assert.rejects(passed(nested), { code: 'UPSTREAM_MALFORMED' });
  });
});
