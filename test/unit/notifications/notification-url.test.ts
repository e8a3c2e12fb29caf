import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isAllowedUrl, parseNotificationUrl } from '../../../src/notifications/notification-url.ts';

describe('the URL of a notification', () => {
  for (const [text, href] of [
    ['https://tpp.example/payments', 'https://tpp.example/payments'],
    ['https://TPP.example:443/payments/42?token=a', 'https://tpp.example/payments/42?token=a'],
    ['https://tpp.example', 'https://tpp.example/'],
    ['https://tpp.example/a/../b', 'https://tpp.example/b'],
    ['https://tpp.example/a/%2e%2e/b', 'https://tpp.example/b'],
    ['https://tpp.example/a@b', 'https://tpp.example/a@b'],
    ['https://198.51.100.7:8443/', 'https://198.51.100.7:8443/'],
    ['http://127.0.0.1:9000/hook', 'http://127.0.0.1:9000/hook'],
    ['http://[::1]:9000/hook', 'http://[::1]:9000/hook'],
    ['http://localhost/hook', 'http://localhost/hook'],
  ])
    test(`is accepted: ${text}`, () => assert.equal(parseNotificationUrl(text ?? '')?.href, href));

  for (const text of [
    '',
    'tpp.example/payments',
    '//tpp.example/payments',
    'http://tpp.example/payments',
    'http://127.0.0.1.tpp.example/',
    'ftp://tpp.example/',
    'https:tpp.example/',
    'https:/tpp.example/',
    'https:\\\\tpp.example\\payments',
    'https://tpp.example\\@evil.example/',
    'https://user@tpp.example/',
    'https://user:password@tpp.example/',
    'https://@tpp.example/',
    'https://:@tpp.example/',
    'https:///tpp.example/payments',
    'https:///user:password@tpp.example/payments',
    'https:////user@tpp.example/payments',
    'https://tpp.example/#',
    'https://tpp.example/#fragment',
    'https://tpp.example/a b',
    ' https://tpp.example/',
    'https://tpp.example/\n',
    'https://tpp.example/\u00e4',
    'https://tpp.example/a/..%2fb',
    'https://tpp.example/a/%252e%252e/b',
    'https://tpp.example/a/..%25252fb',
    'https://tpp.example/a%5cb',
    'https://tpp.example/a%00',
    'https://tpp.example/a/..;/b',
    'https://tpp.example/a/.;x=1/b',
    'https://tpp.example:99999/',
    'https://[::1',
    `https://tpp.example/${'a'.repeat(2_048)}`,
  ])
    test(`is refused: ${JSON.stringify(text.slice(0, 60))}`, () =>
      assert.equal(parseNotificationUrl(text), undefined));

  test('is https, or http on loopback, without credentials and fragment, whatever the text', () => {
    const texts = fc.oneof(fc.webUrl({ withFragments: true, withQueryParameters: true }), fc.string());
    fc.assert(
      fc.property(texts, (text) => {
        const url = parseNotificationUrl(text);
        if (!url) return;
        assert.ok(url.protocol === 'https:' || url.hostname === 'localhost' || /^127\./.test(url.hostname));
        assert.deepEqual([url.username, url.password, url.hash], ['', '', '']);
      }),
    );
  });
});

describe('the URLs that a client may name', () => {
  const isAllowed = (text: string, ...allowed: readonly string[]) => {
    const url = parseNotificationUrl(text);
    assert.ok(url, text);
    return isAllowedUrl(url, allowed);
  };

  test('have the origin and the first segments of the path of a configured one', () => {
    for (const text of [
      'https://tpp.example/payments',
      'https://tpp.example/payments/',
      'https://tpp.example/payments/42/status?x=1',
      'https://TPP.example:443/payments?x=1',
      'https://tpp.example/payments/a/../b',
    ])
      assert.ok(isAllowed(text, 'https://other.example', 'https://tpp.example/payments'), text);
    assert.ok(isAllowed('https://tpp.example/any/path', 'https://tpp.example'));
  });

  test('are no others', () => {
    for (const text of [
      'https://tpp.example/payments-of-others',
      'https://tpp.example/Payments',
      'https://tpp.example/',
      'https://tpp.example/payments/../other',
      'https://tpp.example:8443/payments',
      'https://tpp.example.evil.example/payments',
      'https://sub.tpp.example/payments',
    ])
      assert.ok(!isAllowed(text, 'https://tpp.example/payments'), text);
    assert.ok(!isAllowed('http://127.0.0.1:9000/', 'http://127.0.0.1:9001'));
    assert.ok(!isAllowed('https://tpp.example/'));
  });
});
