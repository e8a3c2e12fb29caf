import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createUrlMapper } from '../../../src/rewriting/url-mapper.ts';
import { environment, routedRequest } from './messages.ts';

const gateway = 'https://gateway.example';
const toPublicUrl = createUrlMapper(gateway, 'berlingroup')(routedRequest('/berlingroup/v1/payments/p/1'));

const bank = 'https://api.bank.example/psd2/berlingroup/v1';
const publicBase = `${gateway}/berlingroup/v1`;

/** Every row: a URL of the bank, and the expected public URL. */
function assertMapped(rows: Readonly<Record<string, string>>): void {
  for (const [url, expected] of Object.entries(rows)) assert.equal(toPublicUrl(url), expected, url);
}

function assertUnmapped(urls: readonly string[]): void {
  for (const url of urls) assert.equal(toPublicUrl(url), undefined, url);
}

describe("a URL of the bank's API", () => {
  test('is mapped to a URL of the gateway, with its query and fragment', () => {
    assertMapped({
      [`${bank}/payments/p/1`]: `${publicBase}/payments/p/1`,
      [`${bank}/payments/p/1/status?a=b&c=%2F#top`]: `${publicBase}/payments/p/1/status?a=b&c=%2F#top`,
      [`${bank}/payments/p/1?`]: `${publicBase}/payments/p/1?`,
      [`${bank}/`]: `${publicBase}/`,
      [`${bank}/payments1234-wertiq-983/authorisations`]: `${publicBase}/payments1234-wertiq-983/authorisations`,
      [`${bank}/payments/p/GJv0KO..Fg==_=_bS6`]: `${publicBase}/payments/p/GJv0KO..Fg==_=_bS6`,
    });
  });

  test('is mapped alike whether or not the URL parser is needed', () => {
    const part = fc.constantFrom(
      ...['https://api.bank.example', 'https:', '//', '/', 'psd2', 'berlingroup', 'v1', 'payments', '1'],
      ...['.', '..', '%2e', '@', ':', '=', '-', 'evil.example', 'https://api.bank.example.evil.example'],
    );
    const text = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''));
    const start = fc.constantFrom('', '/', bank, '/psd2/berlingroup/v1/', '/berlingroup/v1/', '/v1/');
    const property = fc.property(start, text, (begin, rest) => {
      const url = begin + rest;
      if (url === '') return; // with a query, it would be another URL than the empty one
      const parsed = toPublicUrl(`${url}?`); // the parser reads every URL with a query
      assert.equal(toPublicUrl(url), parsed?.slice(0, -1), url);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  test('is recognised in every spelling of its origin', () => {
    assertMapped({
      'HTTPS://API.Bank.Example/psd2/berlingroup/v1/payments/p/1': `${publicBase}/payments/p/1`,
      'https://api.bank.example:443/psd2/berlingroup/v1/payments/p/1': `${publicBase}/payments/p/1`,
      '//api.bank.example/psd2/berlingroup/v1/payments/p/1': `${publicBase}/payments/p/1`,
      [`${bank}/payments/./x/../p/1`]: `${publicBase}/payments/p/1`,
    });
  });

  test('may be relative, with or without the base path and the segment', () => {
    assertMapped({
      '/psd2/berlingroup/v1/payments/p/1': `${publicBase}/payments/p/1`,
      '/berlingroup/v1/payments/p/1': `${publicBase}/payments/p/1`,
      '/v1/payments/1234-wertiq-983/authorisations?x#y': `${publicBase}/payments/1234-wertiq-983/authorisations?x#y`,
    });
  });

  test('may have the base path without the segment, relative or absolute', () => {
    assertMapped({
      '/psd2/v1/payments/p/1?x#y': `${publicBase}/payments/p/1?x#y`,
      'https://api.bank.example/psd2/v1/payments/p/1': `${publicBase}/payments/p/1`,
      '//api.bank.example/psd2/v1/payments/p/1': `${publicBase}/payments/p/1`,
      '../../../../v1/payments/p/1': `${publicBase}/payments/p/1`,
    });
    assertUnmapped([
      '/psd2/v2/payments/p/1',
      '/psd2/v1',
      '/psd2/v1x/payments',
      '/psd2x/v1/payments',
      '/other/v1/payments/p/1',
      'https://evil.example/psd2/v1/payments/p/1',
    ]);
  });

  test('with a segment that begins with v1 is not another version of the API if it is absolute', () => {
    const n26 = createUrlMapper(gateway, 'v1/berlin-group')(routedRequest('/v1/berlin-group/v1/payments/p'));
    assert.equal(n26('https://api.bank.example/psd2/v1/berlin-group/v2/payments/p/1'), undefined);
    assert.equal(n26('/psd2/v1/payments/p/1'), `${gateway}/v1/berlin-group/v1/payments/p/1`);
  });

  test('may be relative to the URL of the request at the bank', () => {
    assertMapped({
      '1/status': `${publicBase}/payments/p/1/status`,
      './2': `${publicBase}/payments/p/2`,
      '../q/3': `${publicBase}/payments/q/3`,
      '?x=1': `${publicBase}/payments/p/1?x=1`,
      '#part': `${publicBase}/payments/p/1#part`,
    });
  });

  test('is matched with the complete prefix before shortened prefixes', () => {
    const n26 = createUrlMapper(gateway, 'v1/berlin-group');
    const own = n26({
      ...routedRequest('/v1/berlin-group/v1/payments/p'),
      environment: { ...environment, basePath: '' },
    });

    assert.equal(own('/v1/berlin-group/v1/payments/p/1'), `${gateway}/v1/berlin-group/v1/payments/p/1`);
    assert.equal(own('/v1/payments/p/1'), `${gateway}/v1/berlin-group/v1/payments/p/1`);
    assert.equal(own('https://api.bank.example/v1/payments/p/1'), undefined);

    const below = {
      ...routedRequest('/berlingroup/v1/payments/p'),
      environment: { ...environment, basePath: '/v1' },
    };
    const versioned = createUrlMapper(gateway, 'berlingroup')(below);
    assert.equal(versioned('/v1/berlingroup/v1/payments/p/1'), `${publicBase}/payments/p/1`);
  });
});

describe('a URL is not mapped', () => {
  test("if it is on the bank's origin, but outside the API", () => {
    assertUnmapped([
      'https://api.bank.example/',
      'https://api.bank.example/psd2/berlingroup/v1',
      'https://api.bank.example/psd2x/berlingroup/v1/payments/p/1',
      'https://api.bank.example/psd2/berlingroup/v1x/payments/p/1',
      'https://api.bank.example/psd2/berlingroup/v10/payments/p/1',
      'https://api.bank.example/psd2/Berlingroup/v1/payments/p/1',
      'https://api.bank.example/berlingroup/v1/payments/p/1',
      'https://api.bank.example/v1/payments/p/1',
      '//api.bank.example/v1/payments/p/1',
      `${bank}/../../admin`,
      `${bank}/payments/%2e%2e/%2E%2e/.%2e/admin`,
      '/authorise/1',
      '/v1',
      '/v2/payments/p/1',
      '../../../../../login',
      '../../../../v2/payments/p/1',
      '../../../../x/v1/payments/p/1',
    ]);
  });

  test('if it is on a foreign origin, in any disguise', () => {
    const path = '/psd2/berlingroup/v1/payments/p/1';
    assertUnmapped([
      `https://evil.example${path}`,
      `https://api.bank.example.evil.com${path}`,
      `https://api.bank.example@evil.example${path}`,
      `https://api.bank.example:443@evil.example${path}`,
      `https://user:secret@api.bank.example${path}`,
      `https://api.bank.example.${path}`,
      `https://api.bank.example:8443${path}`,
      `http://api.bank.example${path}`,
      `ftp://api.bank.example${path}`,
      `blob:https://api.bank.example${path}`,
      `//evil.example${path}`,
      '//evil/v1/payments/p/1',
      '///evil/v1/payments/p/1',
      `///api.bank.example${path}`,
      `https:///api.bank.example${path}`,
      `https:///evil.example${path}`,
      `https:/evil.example${path}`,
      `https:${path}`,
      'https:1/status',
      'https:?x',
      `\\\\evil.example${path}`,
      '/\\evil.example/v1/payments/p/1',
      `https:\\\\api.bank.example${path}`,
      `https://api.bank.example\\@evil.example${path}`,
      `https://evil.example#@api.bank.example${path}`,
      `https://evil.example?@api.bank.example${path}`,
    ]);
  });

  test('if it is malformed or not a web address', () => {
    assertUnmapped([
      '',
      'http://[',
      'https://',
      '//',
      'https://%',
      'http://a:99999999/',
      'urn:x:y',
      'mailto:a@b.example',
    ]);
    assertUnmapped([
      ' /v1/x',
      '/v1/x y',
      '/v1/\tx',
      '/v1/x\n',
      '/v1/\u0000',
      '\ufeff/v1/x',
      'javascript:alert(1)',
    ]);
  });
});

describe('the URL mapper, for any text', () => {
  const pieces = fc.constantFrom(
    'https:',
    'http:',
    '//',
    '/',
    '\\',
    '@',
    ':',
    '..',
    '%2e',
    '?',
    '#',
    '[',
    ']',
    ' ',
  );
  const names = fc.constantFrom(
    'api.bank.example',
    'evil.example',
    'psd2',
    'berlingroup',
    'v1',
    'payments',
    '443',
  );
  const text = fc
    .array(fc.oneof(pieces, names, fc.string({ unit: 'binary', maxLength: 3 })), { maxLength: 14 })
    .map((parts) => parts.join(''));

  test('never throws, and returns only URLs below the public prefix', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: 'binary' }), fc.webUrl()), (url) => {
        const found = toPublicUrl(url);
        if (found !== undefined) assert.ok(new URL(found).href.startsWith(`${publicBase}/`), found);
      }),
      { numRuns: 3000 },
    );
  });

  test('never maps a URL of a foreign origin', () => {
    const foreign = fc.webUrl({ withQueryParameters: true, withFragments: true });
    const suffix = fc.constantFrom('', '/', '/psd2/berlingroup/v1/payments/p/1', '/v1/payments/p/1');
    fc.assert(
      fc.property(foreign, suffix, (url, path) => {
        assert.equal(toPublicUrl(url), undefined);
        assert.equal(toPublicUrl(new URL(url).origin + path), undefined);
        assert.equal(toPublicUrl(`//${new URL(url).host}${path}`), undefined);
      }),
    );
  });

  test('does not map a public URL again', () => {
    fc.assert(
      fc.property(text, (path) => {
        const found = toPublicUrl(`/v1/${path}`);
        if (found !== undefined) assert.equal(toPublicUrl(found), undefined);
      }),
    );
  });
});

describe('the configured public URL', () => {
  test('may have a path and trailing slashes', () => {
    for (const publicUrl of ['https://gateway.example/banks/one', 'https://gateway.example/banks/one//']) {
      const own = createUrlMapper(publicUrl, '/xs2a/')(routedRequest('/xs2a/v1/payments/p'));
      assert.equal(
        own('/psd2/xs2a/v1/payments/p/1'),
        'https://gateway.example/banks/one/xs2a/v1/payments/p/1',
      );
    }
  });

  test('is used without a segment if the segment is empty', () => {
    const own = createUrlMapper(gateway, '')(routedRequest('/v1/payments/p'));

    assert.equal(own('/psd2/v1/payments/p/1'), `${gateway}/v1/payments/p/1`);
    assert.equal(own('/v1/payments/p/1'), `${gateway}/v1/payments/p/1`);
  });
});
