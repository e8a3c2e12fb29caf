import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createUrlMapper } from '../../../src/rewriting/url-mapper.ts';
import { environment, routedRequest } from './messages.ts';

const gateway = 'https://gateway.example';
const toPublic = createUrlMapper(gateway, 'berlingroup')(routedRequest('/berlingroup/v1/payments/p/1'));

const bank = 'https://api.bank.example/psd2/berlingroup/v1';
const here = `${gateway}/berlingroup/v1`;

/** Every row: what the bank says, what the TPP gets. */
function translates(rows: Readonly<Record<string, string>>): void {
  for (const [address, expected] of Object.entries(rows)) assert.equal(toPublic(address), expected, address);
}

function leaves(addresses: readonly string[]): void {
  for (const address of addresses) assert.equal(toPublic(address), undefined, address);
}

describe("an address of the bank's API", () => {
  test('becomes one of the gateway, with its query and fragment', () => {
    translates({
      [`${bank}/payments/p/1`]: `${here}/payments/p/1`,
      [`${bank}/payments/p/1/status?a=b&c=%2F#top`]: `${here}/payments/p/1/status?a=b&c=%2F#top`,
      [`${bank}/payments/p/1?`]: `${here}/payments/p/1?`,
      [`${bank}/`]: `${here}/`,
      [`${bank}/payments1234-wertiq-983/authorisations`]: `${here}/payments1234-wertiq-983/authorisations`,
      [`${bank}/payments/p/GJv0KO..Fg==_=_bS6`]: `${here}/payments/p/GJv0KO..Fg==_=_bS6`,
    });
  });

  test('is recognised however its origin is written', () => {
    translates({
      'HTTPS://API.Bank.Example/psd2/berlingroup/v1/payments/p/1': `${here}/payments/p/1`,
      'https://api.bank.example:443/psd2/berlingroup/v1/payments/p/1': `${here}/payments/p/1`,
      '//api.bank.example/psd2/berlingroup/v1/payments/p/1': `${here}/payments/p/1`,
      [`${bank}/payments/./x/../p/1`]: `${here}/payments/p/1`,
    });
  });

  test('may be relative, with or without what stands before the segment', () => {
    translates({
      '/psd2/berlingroup/v1/payments/p/1': `${here}/payments/p/1`,
      '/berlingroup/v1/payments/p/1': `${here}/payments/p/1`,
      '/v1/payments/1234-wertiq-983/authorisations?x#y': `${here}/payments/1234-wertiq-983/authorisations?x#y`,
    });
  });

  test('may be relative to the URL that the request had at the bank', () => {
    translates({
      '1/status': `${here}/payments/p/1/status`,
      './2': `${here}/payments/p/2`,
      '../q/3': `${here}/payments/q/3`,
      '?x=1': `${here}/payments/p/1?x=1`,
      '#part': `${here}/payments/p/1#part`,
    });
  });

  test('is looked for below the whole prefix first', () => {
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
    assert.equal(versioned('/v1/berlingroup/v1/payments/p/1'), `${here}/payments/p/1`);
  });
});

describe('any other address stays', () => {
  test("on the bank's origin, outside the API", () => {
    leaves([
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
      '../../../../v1/payments/p/1',
    ]);
  });

  test('on a foreign origin, however it is disguised', () => {
    const path = '/psd2/berlingroup/v1/payments/p/1';
    leaves([
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

  test('if it is not well-formed or no web address at all', () => {
    leaves([
      '',
      'http://[',
      'https://',
      '//',
      'https://%',
      'http://a:99999999/',
      'urn:x:y',
      'mailto:a@b.example',
    ]);
    leaves([' /v1/x', '/v1/x y', '/v1/\tx', '/v1/x\n', '/v1/\u0000', '\ufeff/v1/x', 'javascript:alert(1)']);
  });
});

describe('whatever the address', () => {
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
  const address = fc
    .array(fc.oneof(pieces, names, fc.string({ unit: 'binary', maxLength: 3 })), { maxLength: 14 })
    .map((parts) => parts.join(''));

  test('it never throws, and what comes out lies below the public prefix', () => {
    fc.assert(
      fc.property(fc.oneof(address, fc.string({ unit: 'binary' }), fc.webUrl()), (text) => {
        const found = toPublic(text);
        if (found !== undefined) assert.ok(new URL(found).href.startsWith(`${here}/`), found);
      }),
      { numRuns: 3000 },
    );
  });

  test('a foreign origin never changes', () => {
    const foreign = fc.webUrl({ withQueryParameters: true, withFragments: true });
    const suffix = fc.constantFrom('', '/', '/psd2/berlingroup/v1/payments/p/1', '/v1/payments/p/1');
    fc.assert(
      fc.property(foreign, suffix, (url, path) => {
        assert.equal(toPublic(url), undefined);
        assert.equal(toPublic(new URL(url).origin + path), undefined);
        assert.equal(toPublic(`//${new URL(url).host}${path}`), undefined);
      }),
    );
  });

  test('what is public stays as it is, so a second pass changes nothing', () => {
    fc.assert(
      fc.property(address, (text) => {
        const found = toPublic(`/v1/${text}`);
        if (found !== undefined) assert.equal(toPublic(found), undefined);
      }),
    );
  });
});

describe('the public URL', () => {
  test('may have a path and slashes at its end', () => {
    for (const publicUrl of ['https://gateway.example/banks/one', 'https://gateway.example/banks/one//']) {
      const own = createUrlMapper(publicUrl, '/xs2a/')(routedRequest('/xs2a/v1/payments/p'));
      assert.equal(
        own('/psd2/xs2a/v1/payments/p/1'),
        'https://gateway.example/banks/one/xs2a/v1/payments/p/1',
      );
    }
  });

  test('needs no segment', () => {
    const own = createUrlMapper(gateway, '')(routedRequest('/v1/payments/p'));

    assert.equal(own('/psd2/v1/payments/p/1'), `${gateway}/v1/payments/p/1`);
    assert.equal(own('/v1/payments/p/1'), `${gateway}/v1/payments/p/1`);
  });
});
