import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { prefixesOf } from '../../../src/config/resolve-defaults.ts';
import { createMatcher } from '../../../src/pis/operations.ts';
import { resourceAtBank } from '../../../src/request/bank-ids.ts';
import type { RoutedRequest } from '../../../src/request/messages.ts';
import { createKeptLinkLog } from '../../../src/rewriting/link-mapper.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { createMapper, environment, match, publicUrl, routedRequest } from './messages.ts';

const bank = 'https://api.bank.example/psd2/berlingroup/v1';
const own = `${publicUrl}/berlingroup/v1`;
const read = routedRequest('/berlingroup/v1/payments/p/1');
const initiation = routedRequest('/berlingroup/v1/payments/p');

/** The links of a response to a read of the payment 1, or to another request. */
const linksOf = (request: RoutedRequest = read, paymentId = '1') =>
  createMapper().mapLinksOf(request, paymentId);

/** Every row: a URL of the bank, and the expected public URL. */
function assertMapped(rows: Readonly<Record<string, string>>, mapper = linksOf()): void {
  for (const [url, expected] of Object.entries(rows)) assert.equal(mapper.link(url, 'self'), expected, url);
}

function assertUnmapped(urls: readonly string[], mapper = linksOf()): void {
  for (const url of urls) assert.equal(mapper.link(url, 'self'), undefined, url);
}

describe('an absolute link', () => {
  test('of an operation is rewritten, with its query and fragment byte for byte', () => {
    assertMapped({
      [`${bank}/payments/p/1`]: `${own}/payments/p/1`,
      [`${bank}/payments/p/1/status?a=b&c=%2F#top`]: `${own}/payments/p/1/status?a=b&c=%2F#top`,
      [`${bank}/payments/p/1?`]: `${own}/payments/p/1?`,
      [`${bank}/payments/p/GJv0KO..Fg==_=_bS6`]: `${own}/payments/p/GJv0KO..Fg==_=_bS6`,
      [`${bank}/bulk-payments/p/1`]: `${own}/bulk-payments/p/1`,
      [`${bank}/payments/p`]: `${own}/payments/p`,
    });
  });

  test('is recognised in every spelling of its origin', () => {
    assertMapped({
      'HTTPS://API.Bank.Example/psd2/berlingroup/v1/payments/p/1': `${own}/payments/p/1`,
      'https://api.bank.example:443/psd2/berlingroup/v1/payments/p/1': `${own}/payments/p/1`,
    });
  });

  test('stays if it would reach another URL at the bank', () => {
    assertUnmapped([
      'https://api.bank.example/',
      bank,
      `${bank}/`,
      'https://api.bank.example/psd2/v1/payments/p/1',
      'https://api.bank.example/psd2x/berlingroup/v1/payments/p/1',
      'https://api.bank.example/psd2/berlingroup/v10/payments/p/1',
      'https://api.bank.example/psd2/Berlingroup/v1/payments/p/1',
      'https://api.bank.example/berlingroup/v1/payments/p/1',
      `${bank}/payments/p/`,
      `${bank}/payments/p/1/`,
      `${bank}/payments/p/1/authorisations/`,
      `${bank}//payments/p/1`,
      `${bank}/payments/p/1/transactions`,
      `${bank}/payments/p/authorisations`,
    ]);
  });

  test('is followed below the version of its operation at the bank', () => {
    const prefixes = prefixesOf((name) => (name.includes('Authorisation') ? '/BBVA/v1' : '/BBVA/v1.1'));
    const mapper = linksOf({ ...read, environment: { ...environment, prefixes } });
    const origin = 'https://api.bank.example/BBVA';
    assertMapped({ [`${origin}/v1.1/payments/p/1`]: `${own}/payments/p/1` }, mapper);
    assertUnmapped([`${origin}/v1/payments/p/1`, `${origin}/v1.1/payments/p/1/authorisations`], mapper);
    assert.equal(
      mapper.link(`${origin}/v1/payments/p/1/authorisations`, 'startAuthorisation'),
      `${own}/payments/p/1/authorisations`,
    );
  });
});

describe('a relative link', () => {
  test('is rewritten with its complete prefix, or from the last place that begins an operation', () => {
    assertMapped({
      '/psd2/berlingroup/v1/payments/p/1': `${own}/payments/p/1`,
      '/berlingroup/v1/payments/p/1': `${own}/payments/p/1`,
      '/v1/payments/p/1/authorisations?x#y': `${own}/payments/p/1/authorisations?x#y`,
      '/psd2/v2/payments/p/1': `${own}/payments/p/1`,
      '/payments/p/1': `${own}/payments/p/1`,
      'payments/p/1': `${own}/payments/p/1`,
      'v1/payments/p/1': `${own}/payments/p/1`,
      '/payments/bulk-payments/payments/p/1': `${own}/payments/p/1`,
    });
  });

  test('stays if no part of it is the path of an operation, or if every path could be one', () => {
    assertUnmapped([
      '/v1',
      '/authorise/1',
      '1/status',
      '?x=1',
      '#part',
      '',
      '/payments/p/1/x',
      '/payments/1234/status',
    ]);
    const anyService = createMatcher({
      segment: 'berlingroup',
      paymentServices: 'any',
      paymentProducts: 'any',
      authorisationTypes: 'any',
    });
    const mapper = createMapper({ match: anyService, hasAnyService: true }).mapLinksOf(read, '1');
    assertMapped({ '/psd2/berlingroup/v1/other-payments/p/1': `${own}/other-payments/p/1` }, mapper);
    assertUnmapped(['/v1/payments/p/1', 'payments/p/1'], mapper);
  });
});

describe('a link stays as the bank sent it', () => {
  test('if it is on a foreign origin, in any disguise', () => {
    const path = '/psd2/berlingroup/v1/payments/p/1';
    assertUnmapped([
      `https://evil.example${path}`,
      `https://api.bank.example.evil.com${path}`,
      `https://api.bank.example@evil.example${path}`,
      `https://api.bank.example:443@evil.example${path}`,
      `https://user:secret@api.bank.example${path}`,
      `https://@api.bank.example${path}`,
      `https://api.bank.example.${path}`,
      `https://api.bank.example:8443${path}`,
      `http://api.bank.example${path}`,
      `ftp://api.bank.example${path}`,
      `blob:https://api.bank.example${path}`,
      `//evil.example${path}`,
      `//api.bank.example${path}`,
      '///evil/v1/payments/p/1',
      `https:///api.bank.example${path}`,
      `https:/evil.example${path}`,
      `https:${path}`,
      `\\\\evil.example${path}`,
      '/\\evil.example/v1/payments/p/1',
      `https://api.bank.example\\@evil.example${path}`,
      `https://evil.example#@api.bank.example${path}`,
      `https://evil.example?@api.bank.example${path}`,
    ]);
  });

  test('if it has dot segments, encoded or not', () => {
    for (const dots of ['.', '..', '%2e', '%2E%2e', '.%2e', '..;x'])
      assertUnmapped([
        `${bank}/payments/${dots}/payments/p/1`,
        `/v1/${dots}/payments/p/1`,
        `${dots}/payments/p/1`,
        `${bank}/payments/p/${dots}`,
      ]);
  });

  test('if it is no URI reference', () => {
    assertUnmapped([
      'http://[',
      'https://',
      '//',
      'https://%',
      'http://a:99999999/',
      'urn:x:y',
      'mailto:a@b.example',
    ]);
    for (const text of [' ', '\t', '\n', '\u0000', '"', '<', '|', 'ü', '%', '%zz', '\ufeff', '\\', '#a#'])
      assertUnmapped([
        `/v1/payments/p/1${text}`,
        `${text}/v1/payments/p/1${text}`,
        `/v1/payments/p/1?${text}`,
      ]);
    assertUnmapped([
      `/v1/payments/p/${'a'.repeat(10_000)}`,
      `/${'a/'.repeat(5_000)}payments/p/1`,
      `/payments/p/1?${'a'.repeat(1_025)}`,
    ]);
  });

  test('if the environment does not accept its query', () => {
    const mapper = linksOf({ ...read, environment: { ...environment, queryParameters: ['a'] } });
    assertMapped({ '/v1/payments/p/1?a=b': `${own}/payments/p/1?a=b` }, mapper);
    assertUnmapped(['/v1/payments/p/1?b=a', '/v1/payments/p/1?a=b;c=d'], mapper);
  });

  test('if the gateway would replace a parameter of its query', () => {
    const query = { bic: 'HABA', key: { file: '/run/key' } };
    const mapper = linksOf({ ...read, environment: { ...environment, query } });
    for (const search of ['', '?a=b', '?bic=HABA', '?bic=HABA&a=b', '?key=other'])
      assertMapped({ [`${bank}/payments/p/1${search}`]: `${own}/payments/p/1${search}` }, mapper);
    assertUnmapped(
      ['?bic=X', '?BIC=HABA', '?a=b;bic=HABA', '?bic'].map((search) => `/v1/payments/p/1${search}`),
      mapper,
    );
  });

  test('which is logged once for each relation, without the link', () => {
    const { log, lines } = captureLog();
    const onKept = createKeptLinkLog(log);
    const mapper = createMapper({ onKept }).mapLinksOf(read, '1');
    for (let times = 0; times < 3; times++) {
      mapper.link('/certificates', 'aspspCertificates');
      mapper.link('/secret', 'not a name');
      mapper.link('https://other.example/', 'elsewhere');
      mapper.link(`${bank}/payments/p/1`, 'self');
    }
    assert.deepEqual(
      lines.map(({ fields }) => fields.relation),
      ['aspspCertificates', 'of another name'],
    );
    const { name } = environment;
    assert.match(
      lines[0]?.message ?? '',
      new RegExp(`check environments\\.${name}\\.segment and pathVersion$`),
    );
  });
});

describe('ids outside of the strict set', () => {
  test('are rewritten in links of the new payment, and their spelling is recorded', () => {
    const rows = [
      ['q7Hc2m/Zr+8VwA==', 'q7Hc2m%2FZr+8VwA==', 'q7Hc2m%2FZr+8VwA=='],
      ['q7Hc2m/Zr+8VwA==', 'q7Hc2m%2FZr%2B8VwA%3D%3D', undefined],
      ['ORD;2026;17', 'ORD;2026;17', 'ORD;2026;17'],
      ['ORD;2026;17', 'ORD%3B2026%3B17', undefined],
      ['a=b', 'a%3Db', 'a%3Db'],
      ['a=b', 'a=b', undefined],
      ['a b', 'a%20b', undefined],
    ] as const;
    for (const [id, segment, recorded] of rows) {
      const mapper = linksOf(initiation, id);
      assertMapped({ [`${bank}/payments/p/${segment}`]: `${own}/payments/p/${segment}` }, mapper);
      assert.deepEqual(mapper.bankIds(), recorded && { payment: recorded, authorisations: [] }, segment);
    }
  });

  test('stay in links to other payments, and in another spelling than the recorded one', () => {
    assertUnmapped([`${bank}/payments/p/a%2Fb`, '/v1/payments/p/x%3Dy'], linksOf(initiation, 'a/c'));
    assertUnmapped([`${bank}/payments/p/a%2Fb`, '/v1/payments/p/x%3Dy/status']);
    const mapper = linksOf(initiation, 'a/b');
    assertMapped({ '/v1/payments/p/a%2fb': `${own}/payments/p/a%2fb` }, mapper);
    assertUnmapped(['/v1/payments/p/a%2Fb'], mapper);
    const known = routedRequest('/berlingroup/v1/payments/p/a%2Fb', {
      bankIds: { payment: 'a%2fb', authorisations: [] },
    });
    assertMapped({ '/v1/payments/p/a%2fb': `${own}/payments/p/a%2fb` }, linksOf(known, 'a/b'));
    assertUnmapped(['/v1/payments/p/a%2Fb'], linksOf(known, 'a/b'));
  });

  test('of authorisations are recorded with those of the body', () => {
    const mapper = linksOf(routedRequest('/berlingroup/v1/payments/p/1/authorisations'));
    const links = ['a%2Fb', 'c=d', 'e%3Df', 'plain', 'a%2fb'].map((id) =>
      mapper.link(`/v1/payments/p/1/authorisations/${id}?correlationId=1`, 'scaStatus'),
    );
    const link = (id: string) => `${own}/payments/p/1/authorisations/${id}?correlationId=1`;
    assert.deepEqual(links, [link('a%2Fb'), link('c=d'), link('e%3Df'), link('plain'), undefined]);
    for (const id of ['a/b', 'x/y', '(1)', 'plain', 'c=d', '..', 'a%b']) mapper.addAuthorisation(id);
    assert.deepEqual(mapper.bankIds(), { authorisations: ['a%2Fb', 'e%3Df', 'x%2Fy', '(1)'] });
  });

  test('are rewritten in fifty links to authorisations, and stay in the others', () => {
    const mapper = linksOf();
    const links = Array.from({ length: 60 }, (_, at) =>
      mapper.link(`/v1/payments/p/1/authorisations/a%2F${at}`, 'scaStatus'),
    );
    assert.equal(links.filter((link) => link !== undefined).length, 50);
    assert.equal(mapper.bankIds()?.authorisations.length, 50);
    assertMapped(
      { '/v1/payments/p/1/authorisations/usual': `${own}/payments/p/1/authorisations/usual` },
      mapper,
    );
  });

  test('that no path can contain stay', () => {
    for (const id of ['..', 'a/../b', 'a%b', '\u0000', '\u202e']) {
      const mapper = linksOf(initiation, id);
      assertUnmapped([`/v1/payments/p/${encodeURIComponent(id)}`], mapper);
      assert.equal(mapper.bankIds(), undefined);
    }
    assert.equal(linksOf(initiation, 'a\ud800').bankIds(), undefined);
  });
});

describe('a link for the payer', () => {
  test("becomes absolute at the bank's origin if it is relative", () => {
    const mapper = linksOf(initiation, '1');
    const rows = {
      '/authorise/1?a=b#c': 'https://api.bank.example/authorise/1?a=b#c',
      '/psd2/berlingroup/v1/payments/p/1': 'https://api.bank.example/psd2/berlingroup/v1/payments/p/1',
      '/.well-known/oauth-authorization-server':
        'https://api.bank.example/.well-known/oauth-authorization-server',
      'sca/1': `${bank}/payments/sca/1`,
      '?a=1': `${bank}/payments/p?a=1`,
    };
    for (const [url, expected] of Object.entries(rows)) assert.equal(mapper.payerLink(url), expected, url);
  });

  test('never changes otherwise', () => {
    const same = [
      'https://www.bank.example/sca',
      `${bank}/payments/p/1`,
      '//www.bank.example/sca',
      'bankapp://sca/1',
      '',
      '/a b',
      '\\\\a',
    ];
    for (const url of same) assert.equal(linksOf().payerLink(url), undefined, url);
  });
});

describe('the link mapper, for any link', () => {
  const part = fc.constantFrom(
    ...[
      'https://api.bank.example',
      'https:',
      '//',
      '/',
      'psd2',
      'berlingroup',
      'v1',
      'payments',
      'bulk-payments',
      'p',
      '1',
    ],
    ...[
      '.',
      '..',
      '%2e',
      '%2F',
      '@',
      ':',
      '=',
      '%3D',
      ';',
      '-',
      '?',
      '#',
      '&',
      '%',
      '\\',
      ' ',
      'status',
      'authorisations',
      'evil.example',
    ],
  );
  const text = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''));
  /** The beginning of a link; `~` stands for the prefix of the bank. */
  const start = fc.constantFrom(
    ...['', '/', '~/', '/v1/payments/p/', 'https://api.bank.example~/payments/p/', '~/payments/p/1/'],
    ...['https://api.bank.example~/payments/p/1/authorisations/', `${bank}/payments/`],
  );
  const prefixes = fc.constantFrom('/psd2/berlingroup/v1', '', '/v1', '/a/v1/payments');

  test('writes only URLs that the gateway accepts, and that reach the same URL at the bank', () => {
    let rewritten = 0;
    const property = fc.property(start, text, prefixes, (begin, rest, prefix) => {
      const target = { ...environment, prefixes: prefixesOf(() => prefix) };
      const mapper = createMapper().mapLinksOf({ ...initiation, environment: target }, '1');
      const url = begin.replace('~', prefix) + rest;
      const result = mapper.link(url, 'self');
      if (result === undefined) return;
      rewritten++;
      assert.ok(result.startsWith(`${own}/`), url);
      const sent = result.slice(publicUrl.length).split('#', 1)[0] ?? '';
      const found = ['GET', 'POST', 'DELETE']
        .map((method) => match(method, sent))
        .find(({ kind }) => kind === 'operation');
      assert.ok(found?.kind === 'operation', url);
      const { operation } = found;
      const atBank =
        target.origin +
        target.prefixes[operation.name] +
        resourceAtBank(operation, mapper.bankIds()) +
        operation.search;
      if (/^https:/.test(url)) assert.equal(atBank, url.split('#', 1)[0], url);
      else assert.ok(atBank.endsWith(result.slice(own.length).split('#', 1)[0] ?? ''), url);
    });
    fc.assert(property, { numRuns: 5_000 });
    assert.ok(rewritten > 500, `only ${rewritten} links were rewritten`);
  });
});

describe('the public URL', () => {
  test('may have a path and trailing slashes, and no segment', () => {
    for (const address of ['https://gateway.example/banks/one', 'https://gateway.example/banks/one//']) {
      const mapper = createMapper({ publicUrl: address }).mapLinksOf(read, '1');
      assertMapped(
        { '/v1/payments/p/1': 'https://gateway.example/banks/one/berlingroup/v1/payments/p/1' },
        mapper,
      );
    }
    const short = createMatcher({
      segment: '',
      paymentServices: ['payments'],
      paymentProducts: 'any',
      authorisationTypes: 'any',
    });
    const mapper = createMapper({ match: short, segment: '' }).mapLinksOf(read, '1');
    assertMapped({ [`${bank}/payments/p/1`]: `${publicUrl}/v1/payments/p/1` }, mapper);
  });
});

test('links of any number of segments and any length cost little: only the last five segments can be an operation', () => {
  let matches = 0;
  const counting: typeof match = (method, target) => {
    matches++;
    return match(method, target);
  };
  const mapper = createMapper({ match: counting }).mapLinksOf(read, '1');
  assert.equal(mapper.link(`/${'a/'.repeat(4_000)}b`, 'self'), undefined);
  assert.ok(matches <= 6, `${matches} matches`);
  for (const url of [
    `/${'a/'.repeat(2_000_000)}`,
    `https://${'a'.repeat(4_000_000)}`,
    '%41'.repeat(1_000_000),
  ]) {
    assert.equal(mapper.link(url, 'self'), undefined);
    assert.equal(mapper.payerLink(url), undefined);
  }
  assert.ok(matches <= 6, `${matches} matches`);
});

test('a link to the payment of the response is rewritten only if the gateway accepts it, also without the complete match', () => {
  for (const id of ['status', 'authorisations', '..', '.'])
    assertUnmapped([`${bank}/payments/p/${id}`, `${bank}/payments/p/${id}/status`], linksOf(initiation, id));
  for (const rest of [
    '/authorisations/status',
    '/authorisations/..',
    '/authorisations/a/b',
    '/statusx',
    '/',
    '/status/',
  ])
    assertUnmapped([`${bank}/payments/p/1${rest}`], linksOf(initiation, '1'));
  for (const rest of [
    '',
    '/status',
    '/authorisations',
    '/cancellation-authorisations/a-1',
    '/authorisations/a=b',
    '?a=b',
  ])
    assertMapped({ [`${bank}/payments/p/1${rest}`]: `${own}/payments/p/1${rest}` }, linksOf(initiation, '1'));
});
