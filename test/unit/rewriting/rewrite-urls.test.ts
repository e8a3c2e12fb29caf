import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { maxDecodedBytes } from '../../../src/request/content-coding.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { rewriteUrls } from '../../../src/rewriting/rewrite-urls.ts';
import { bankResponse, createMapper, publicUrl, routedRequest } from './messages.ts';

const stage = rewriteUrls(createMapper().mapLinksOf, publicUrl);
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

  test('rewrites the links of JSON under every label, in the encoding of the bank', async () => {
    for (const type of ['application/xml', 'text/plain', 'application/json;charset=x-foo', '']) {
      const { body } = await rewrite(bankResponse([['Content-Type', type]], bankBody));
      assert.equal(body.toString(), gatewayBody, type);
    }
    const swap = (text: string) => Buffer.from(text, 'utf16le').swap16();
    const utf16 = (text: string) => Buffer.from(text, 'utf16le');
    const marks = {
      utf8: Buffer.from([0xef, 0xbb, 0xbf]),
      le: Buffer.from([0xff, 0xfe]),
      be: Buffer.from([0xfe, 0xff]),
    };
    const named = (body: string) => body.replace('123.50', '"Müller"');
    const encodings: readonly ((text: string) => Buffer)[] = [
      (text) => Buffer.concat([marks.utf8, Buffer.from(text)]),
      (text) => Buffer.concat([marks.le, utf16(text)]),
      (text) => Buffer.concat([marks.be, swap(text)]),
      utf16,
      swap,
      (text) => Buffer.from(text, 'latin1'),
    ];
    for (const encode of encodings) {
      const { body } = await rewrite(bankResponse([json], encode(named(bankBody))));
      assert.deepEqual(body, encode(named(gatewayBody)));
    }
  });

  test('does not change bodies that are not JSON', async () => {
    const good = '{"_links":{"self":{"href":"/v1/payments/p/1"}}}';
    const bad = [
      '',
      '{',
      good.slice(0, -1),
      `${good}}`,
      `${good},`,
      `x${good}`,
      `'${good}`,
      '"_links"',
      good.replace('"/v1', '"\t/v1'),
    ];
    for (const text of [...bad, good.replace('v1', '\\x'), `<a>${good}</a>`]) {
      const response = bankResponse([json], text);
      assert.deepEqual(await rewrite(response), response, text);
    }
    const cut = '{"a":["x\\"",1],"_links":{"self":{"href":"/v1/payments/p/1","t":"\\u0041"}}}';
    for (let length = 0; length < cut.length; length++) {
      const response = bankResponse([json], cut.slice(0, length));
      assert.equal(await rewrite(response), response);
    }
  });

  test('does not change an answer that leaves the outcome in doubt', async () => {
    const meaning = { outcome: 'in-doubt', paymentId: undefined, why: 'the bank answered 302' } as const;
    const response = { ...bankResponse([json, ['Location', '/v1/payments/p/1']], bankBody), meaning };
    assert.equal(await rewrite(response), response);
  });

  test('rewrites the href of a Location in JSON in place', async () => {
    const { headers } = await rewrite(
      bankResponse([
        ['Location', '{"href": "/v1/payments/p/1" }'],
        ['Location', '{"href":"https://www.bank.example/"}'],
        ['Location', '{"href":"/v1/payments/p/1"'],
        ['Location', '["/v1/payments/p/1"]'],
      ]),
    );
    assert.deepEqual(
      headers.map(([, value]) => value),
      [
        '{"href": "https://gateway.example/berlingroup/v1/payments/p/1" }',
        '{"href":"https://www.bank.example/"}',
        '{"href":"/v1/payments/p/1"',
        '["/v1/payments/p/1"]',
      ],
    );
  });

  test('notes the ids that must be recorded, of links and of the lists in the body', async () => {
    const authorisations = routedRequest('/berlingroup/v1/payments/p/1/authorisations');
    const body =
      '{"authorisationIds":["a/b","plain"],"authorisationId":"c;d","_links":{"scaStatus":"/v1/payments/p/1/authorisations/e%3Df"}}';
    const { bankIds } = await stage(authorisations, async () => bankResponse([json], body));
    assert.deepEqual(bankIds, { authorisations: ['e%3Df', 'c%3Bd', 'a%2Fb'] });
    const meaning = { outcome: 'accepted', paymentId: 'x/1', why: undefined } as const;
    const created = { ...bankResponse([['Location', '/v1/payments/p/x%2f1']]), meaning };
    const initiation = routedRequest('/berlingroup/v1/payments/p');
    assert.deepEqual((await stage(initiation, async () => created)).bankIds, {
      payment: 'x%2f1',
      authorisations: [],
    });
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
    zstd: zstdCompressSync,
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
    for (const coding of ['compress', 'aes128gcm', 'gzip, compress', '"gzip"']) {
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

  test('keeps the bytes of an answer that cannot be decoded if a field names the new payment', async () => {
    const meaning = { outcome: 'accepted', paymentId: '1', why: undefined } as const;
    const headers: HeaderFields = [json, ['Content-Encoding', 'gzip'], ['Location', '/v1/payments/p/1']];
    const response = { ...bankResponse(headers, 'no gzip'), meaning };
    const result = await stage(routedRequest('/berlingroup/v1/payments/p'), async () => response);
    assert.equal(result.body, response.body);
    assert.deepEqual(result.headers.at(-1), ['Location', `${publicUrl}/berlingroup/v1/payments/p/1`]);
  });

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
