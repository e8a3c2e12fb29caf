import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createMatcher, idToSegment, type Match, type Operation } from '../../../src/pis/operations.ts';

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: ['payments', 'bulk-payments', 'periodic-payments'],
  paymentProducts: 'any',
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
});

const v1 = '/berlingroup/v1';
const payment = `${v1}/payments/sepa-credit-transfers/1234-wertiq-983`;

const kindOf = (method: string, target: string) => match(method, target).kind;

function operationOf(found: Match): Operation {
  assert.equal(found.kind, 'operation', JSON.stringify(found));
  return found.kind === 'operation' ? found.operation : assert.fail();
}

describe('request targets that try to bypass the path check', () => {
  const tricks: Readonly<Record<string, readonly string[]>> = {
    'B1: dot segments': ['..', '.', '%2e%2e', '%2E.', '.%2e', '..;', '%2e', '..%2f', '%252e%252e'],
    'B2: encoded and forbidden characters': [
      ...['%5c..', '\\', '%00', '%25', '%25%32%66', '%0d%0a', '%c0%af', '%', '%zz', '%u002e', 'a%2f..%2fb'],
      ...[
        '\u0000',
        '\n',
        '\r',
        '\t',
        ' ',
        '\u007f',
        'ü',
        '／',
        '\u2024\u2024',
        '💶',
        '"',
        '<',
        '|',
        '^',
        '`',
      ],
      ...['{1}', '[', ']', '%e2%80%8b', '%e2%80%ae', '%ed%a0%80', '%EF%BF%BF', '%c2%85', '%2e%2e%3b'],
    ],
    'B3: empty segments': ['', '/', './'],
    'B5: a segment that is too long': ['a'.repeat(1025), 'a'.repeat(5000), '%C3%BC'.repeat(1025)],
    'B6: fragments': ['1#', '1#frag', '1?a#b'],
  };
  for (const [name, segments] of Object.entries(tricks)) {
    test(`${name} are refused at every position of the path`, () => {
      for (const trick of segments) {
        const targets = [
          `/${trick}/v1/payments/p/1`,
          `/berlingroup/${trick}/payments/p/1`,
          `${v1}/${trick}/p/1`,
          `${v1}/payments/${trick}/1`,
          `${v1}/payments/p/${trick}`,
          `${v1}/payments/p/${trick}/status`,
          `${v1}/payments/p/1/${trick}`,
          `${payment}/authorisations/${trick}`,
        ];
        for (const target of targets) assert.equal(kindOf('GET', target), 'malformed', target.slice(0, 99));
      }
    });
  }

  test('are refused outside of ids, also where an id may have the characters', () => {
    for (const trick of [
      '%2f',
      '%2F',
      '%5c',
      ';',
      'a;b=c',
      '%3f',
      "'",
      '(',
      ')',
      '&',
      'a'.repeat(257),
      '%70',
      '%c3%bc',
    ]) {
      const targets = [
        `/${trick}/v1/payments/p/1`,
        `/berlingroup/${trick}/payments/p/1`,
        `${v1}/${trick}/p/1`,
        `${v1}/payments/${trick}/1`,
        `${v1}/payments/p/1/${trick}`,
        `${payment}/a/b/${trick}`,
      ];
      for (const target of targets) assert.equal(kindOf('GET', target), 'malformed', target.slice(0, 99));
    }
    for (const target of [
      '/%62erlingroup/v1/payments/p/1',
      '/berlingroup/%761/payments/p/1',
      `${v1}/%70ayments/p/1`,
      `${payment}/%73tatus`,
      `${payment}/%61uthorisations`,
      `${v1}/payments/p/%73tatus`,
    ])
      assert.equal(kindOf('GET', target), 'malformed', target);
  });

  test('are refused with a reason', () => {
    const why = (target: string) => {
      const found = match('GET', target);
      return found.kind === 'malformed' ? found.why : found.kind;
    };

    const characters =
      'the query contains a character that must be percent-encoded (RFC 3986), or a "%" without two hex digits';
    for (const search of ['?a=|', '?%zz', '?ü', '?a#b'])
      assert.equal(why(payment + search), characters, search);
    assert.equal(why(`${payment}?${'a'.repeat(1025)}`), 'the query is longer than 1,024 bytes');
    assert.equal(why(`${payment}/`), 'the path has an empty segment or a trailing slash');
    assert.equal(why(`${payment}/..`), 'the path has a dot segment');
    assert.equal(why(`${payment}%00`), 'the path contains a character that is not allowed');
    assert.equal(why(`${payment}${'a'.repeat(1024)}`), 'a path segment is longer than 1024 characters');
    assert.equal(
      why(`${v1}/payments/p=/1`),
      'the path segment {payment-product} contains a character that is not allowed',
    );
  });

  test('B4: paths are case-sensitive', () => {
    for (const target of [
      '/Berlingroup/v1/payments/p/1',
      '/berlingroup/V1/payments/p/1',
      `${payment}/Status`,
      `${payment}/STATUS`,
      `${payment}/Authorisations`,
    ]) {
      assert.equal(kindOf('GET', target), 'unknown-path', target);
    }
    assert.equal(kindOf('DELETE', `${v1}/Payments/p/1`), 'unknown-product');
  });

  test('B4: a trailing slash is refused', () => {
    assert.equal(kindOf('GET', `${payment}/`), 'malformed');
    assert.equal(kindOf('GET', `${payment}/status/`), 'malformed');
  });

  test('A9, A10: absolute URLs, asterisks and authorities are refused', () => {
    const targets = [
      'http://evil.example/berlingroup/v1/payments/p/1',
      `//evil.example${payment}`,
      '*',
      '',
      'x',
    ];
    for (const target of targets) assert.equal(kindOf('GET', target), 'malformed', target);
    assert.equal(kindOf('CONNECT', 'bank.example:443'), 'malformed');
  });

  test('paths of no operation are unknown for every method', () => {
    const targets = ['/', '/v1/payments/p/1', v1, `${v1}/payments`, `${v1}/accounts`, `${payment}/a/b/c`];
    for (const target of [
      ...targets,
      '/berlingroup/v2/payments/p',
      '/berlingroup',
      `${payment}/constructor`,
    ]) {
      for (const method of ['GET', 'POST', 'PUT'])
        assert.equal(kindOf(method, target), 'unknown-path', target);
    }
  });
});

describe('the matcher, for any request line', () => {
  const nasty = fc.constantFrom(
    '.',
    '..',
    '/',
    '//',
    '%2e',
    '%3d',
    '%3D',
    '%2F',
    '\\',
    '\0',
    '?',
    '#',
    '%',
    ';',
  );
  const wild = fc.oneof(fc.constant(''), nasty, fc.string(), fc.string({ unit: 'binary' }));
  const services = fc.constantFrom('payments', 'periodic-payments', 'bulk-payments');
  const fourth = fc.constantFrom('status', 'authorisations', 'cancellation-authorisations');
  const id = fc
    .string({ unit: fc.constantFrom(...'aZ09._~-=:@+,!$*'), minLength: 1, maxLength: 80 })
    .filter((text) => text !== '.' && text !== '..');
  const path = fc
    .tuple(fc.tuple(services, fc.constant('p'), id, fourth, id), fc.integer({ min: 1, max: 5 }))
    .map(([segments, length]) => `${v1}/${segments.slice(0, length).join('/')}`);
  const target = fc
    .tuple(path, wild, fc.nat(60))
    .map(([line, inserted, at]) => line.slice(0, at) + inserted + line.slice(at));
  const method = fc.constantFrom('GET', 'POST', 'DELETE');

  test('builds paths with allowed characters only and without dot segments, which it matches again', () => {
    let matched = 0;
    fc.assert(
      fc.property(method, target, (name, line) => {
        const found = match(name, line);
        if (found.kind !== 'operation') return;
        matched++;
        const { path: sent } = found.operation;
        assert.match(sent, /^\/berlingroup\/v1(\/(?:[A-Za-z0-9._~=:@+,!$*()'-]|%[0-9A-F]{2})+){2,5}$/);
        assert.ok(!sent.split('/').some((segment) => segment === '.' || segment === '..'));
        assert.equal(new URL(sent, 'https://bank.example').pathname, sent);
        const again = operationOf(match(found.operation.method, sent + found.operation.search));
        assert.deepEqual({ ...again, unusualIds: found.operation.unusualIds }, found.operation);
      }),
      { numRuns: 3000 },
    );
    assert.ok(matched > 100, `only ${matched} of the targets were operations`);
  });

  test('returns well-formed ids unchanged, encoded or not', () => {
    fc.assert(
      fc.property(id, id, (paymentId, authorisationId) => {
        for (const write of [(text: string) => text, encodeURIComponent]) {
          const line = `${v1}/payments/p/${write(paymentId)}/authorisations/${write(authorisationId)}`;
          const operation = operationOf(match('GET', line));
          assert.equal(operation.paymentId, paymentId);
          assert.equal(operation.path, `${v1}/payments/p/${paymentId}/authorisations/${authorisationId}`);
        }
      }),
    );
  });
});

describe('ids of a bank outside of the strict set', () => {
  const unusual = [
    'q7Hc2m/Zr+8VwA==',
    'ORD;2026;17',
    'a b',
    "it's (1)",
    'Zahlung ü',
    '{x}',
    'a\\b',
    '?',
    '#1',
    'a'.repeat(1024),
  ];

  test('are decoded once, and marked: the gateway accepts them only if the bank has issued them', () => {
    for (const id of unusual) {
      const line = `${v1}/payments/p/${encodeURIComponent(id)}`;
      const { paymentId, unusualIds, path } = operationOf(match('DELETE', line));
      assert.deepEqual(
        { paymentId, unusualIds, path },
        { paymentId: id, unusualIds: ['payment'], path: line },
      );
      const read = operationOf(match('GET', `${payment}/authorisations/${encodeURIComponent(id)}`));
      assert.equal(read.authorisationId, id);
      assert.deepEqual(read.unusualIds, ['authorisation']);
    }
  });

  test('are the same id in every spelling', () => {
    for (const spelling of ['ORD;2026', 'ORD%3b2026', 'ORD%3B2026', '%4FRD;2026'])
      assert.equal(
        operationOf(match('GET', `${v1}/payments/p/${spelling}/status`)).path,
        `${v1}/payments/p/ORD%3B2026/status`,
      );
  });

  test('have a spelling even if no path can contain them', () => {
    for (const id of ['a\ud800b', '\udc00', '..', 'a%b', '\u0000'])
      assert.match(idToSegment(id), /^[\w.%-]+$/);
  });

  test('can be ids of the strict set in a spelling that clients do not use', () => {
    const operation = operationOf(match('GET', `${v1}/payments/p/%41b%3dc`));
    assert.deepEqual([operation.paymentId, operation.unusualIds], ['Ab=c', ['payment']]);
  });
});

describe('the query', () => {
  test('is kept byte for byte, apart from the path', () => {
    for (const search of ['', '?', '?a=b&c=%2F', '?../..', "?correlationId=CN4KNJ&x='(!)*;,:@/?$"]) {
      const operation = operationOf(match('GET', `${payment}/status${search}`));
      assert.equal(operation.search, search);
      assert.equal(operation.path, `${payment}/status`);
      assert.equal(operation.resource, `${payment}/status`.slice(v1.length));
    }
  });
});
