import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { queryProblem, querySyntaxProblem, withQueryParameters } from '../../../src/pis/query.ts';

describe('the characters of a query', () => {
  test('are those of RFC 3986, with complete percent-encodings', () => {
    for (const search of ['?', '?a', '?a=1&b=2;c', "?!$&'()*+,;=:@/?-._~", '?a=%c3%BC', '?a=%00'])
      assert.equal(querySyntaxProblem(search), undefined, search);
    for (const search of [
      '',
      'a=1',
      '?a=%',
      '?a=%4',
      '?a=%zz',
      '?a=ü',
      '?a="',
      '?a=<',
      '?a#b',
      '?a b',
      '?a\n',
      '?[a]',
    ])
      assert.match(
        querySyntaxProblem(search) ?? '',
        /^the query contains a character that must be percent-encoded/,
        search,
      );
  });

  test('are at most 1,024', () => {
    assert.equal(querySyntaxProblem(`?${'a'.repeat(1_024)}`), undefined);
    assert.equal(querySyntaxProblem(`?${'a'.repeat(1_025)}`), 'the query is longer than 1,024 bytes');
  });
});

describe('the parameters that an environment accepts', () => {
  test('are compared exactly, after decoding, between & and ;', () => {
    const names = ['bic', 'app-id'];
    for (const search of [
      '',
      '?',
      '?&',
      '?;&',
      '?bic',
      '?bic=1&app-id=2',
      '?bic=1;app-id=2',
      '?%62ic=1',
      '?bic=1&&bic=2',
    ])
      assert.equal(queryProblem(search, names), undefined, search);
    for (const search of [
      '?BIC=1',
      '?bic=1&x',
      '?bic=1;x=2',
      '?bic%20=1',
      '?=1',
      '?bic%26x=1',
      '?%FFbic',
      '?bic%00=1',
    ])
      assert.match(
        queryProblem(search, names) ?? '',
        /accepts only the query parameters bic, app-id; remove all others$/,
        search,
      );
  });

  test('are none for an empty list, and all for any', () => {
    assert.equal(queryProblem('?', []), undefined);
    assert.equal(
      queryProblem('?secret-value=1', []),
      'this environment accepts no query parameters; remove all of them',
    );
    assert.equal(queryProblem('?x=1', 'any'), undefined);
  });
});

describe('the parameters that the gateway adds', () => {
  const added = (target: string, ...parameters: readonly (readonly [string, string])[]) =>
    withQueryParameters(target, parameters);

  test('are appended with percent-encoding', () => {
    assert.equal(
      added('/v1/payments', ['bic', 'HABAEE2X'], ['app id', 'ü&=+#']),
      '/v1/payments?bic=HABAEE2X&app%20id=%C3%BC%26%3D%2B%23',
    );
    assert.equal(added('/v1/payments?', ['bic', 'A']), '/v1/payments?bic=A');
    assert.equal(added('/v1/payments?&;', ['bic', 'A']), '/v1/payments?bic=A');
    assert.equal(added('/v1/payments?x=%7e;y&&z=1', ['bic', 'A']), '/v1/payments?x=%7e;y&&z=1&bic=A');
  });

  test('replace those of the TPP in any spelling of the name', () => {
    for (const query of ['bic=B', 'BIC=B', '%62%49c=B', 'bic', 'bic=', 'bic=B&bic=C', 'bic=B;Bic=C', 'bic=a'])
      assert.equal(added(`/p?${query}`, ['bic', 'A']), '/p?bic=A', query);
    assert.equal(added('/p?x=1;bic=B&y=2', ['bic', 'A']), '/p?x=1&y=2&bic=A');
    assert.equal(added('/p?app+id=B&app%20id=C', ['app id', 'A']), '/p?app%20id=A');
    assert.equal(added('/p?xbic=B&bicx=B&x=bic', ['bic', 'A']), '/p?xbic=B&bicx=B&x=bic&bic=A');
  });

  test('leave the bytes of the same parameter as they are', () => {
    assert.equal(added('/p?x=1&%62ic=%41&y', ['bic', 'A']), '/p?x=1&%62ic=%41&y');
    assert.equal(added('/p?bic=B&bic=A&bic=A', ['bic', 'A']), '/p?bic=A');
    assert.equal(added('/p?BIC=A', ['bic', 'A']), '/p?bic=A');
    assert.equal(
      added('/p?x=1;bic=A', ['bic', 'A']),
      '/p?x=1&bic=A',
      'a server may not split at the semicolon',
    );
  });

  test('leave other bytes that are not UTF-8 as they are', () => {
    assert.equal(added('/p?%FF=%fe', ['bic', 'A']), '/p?%FF=%fe&bic=A');
  });

  test('change nothing if there are none', () => {
    assert.equal(added('/p?x=1&&;'), '/p?x=1&&;');
    assert.equal(added('/p?'), '/p?');
  });
});
