import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createHostCheck, isSameOrigin, isSecure } from '../../../src/admin/request-origin.ts';

const publicUrl = 'https://console.example';

function requestWith(headers: Readonly<Record<string, string>>): IncomingMessage {
  return Object.assign(new IncomingMessage(new Socket()), { headers });
}

const isSame = (headers: Readonly<Record<string, string>>, browserOnly = true) =>
  isSameOrigin(requestWith({ host: '127.0.0.1:9090', ...headers }), publicUrl, { browserOnly });

describe('the host name of a request', () => {
  const isAllowed = createHostCheck({
    host: 'Gateway.internal',
    hosts: ['penstock-operators', 'penstock-operators.payments.svc'],
    publicUrl,
  });

  test('may be any IP address, localhost, admin.host, one of admin.hosts, or the host of admin.publicUrl', () => {
    const names = [
      'localhost',
      'gateway.internal',
      'penstock-operators',
      'console.example',
      '10.0.0.7',
      '[::1]',
    ];
    for (const name of [...names, 'Penstock-Operators.payments.svc'])
      for (const header of [name, `${name}:9090`, name.toUpperCase()]) assert.ok(isAllowed(header), header);
  });

  test('may not be any other name', () => {
    const names = [
      '',
      'evil.example',
      'penstock-operators.evil.example',
      'svc',
      'payments.svc',
      'localhost.',
    ];
    for (const name of names) assert.ok(!isAllowed(name), name);
  });
});

describe('the page that sent a request', () => {
  test('is one of the listener if the browser says so', () => {
    assert.ok(isSame({ 'sec-fetch-site': 'same-origin' }));
    assert.ok(isSame({ 'sec-fetch-site': 'none' }));
    assert.ok(isSame({ origin: 'http://127.0.0.1:9090' }));
    assert.ok(isSame({ origin: 'https://console.example' }), 'a proxy in front has replaced Host');
  });

  test('is a foreign one from any other origin, also from another port, scheme or subdomain', () => {
    for (const origin of [
      'http://127.0.0.1:9091',
      'http://127.0.0.1',
      'http://console.example',
      'https://x.console.example',
      'https://console.example.evil.example',
      'null',
      '',
    ])
      assert.ok(!isSame({ origin }), origin);
    for (const site of ['cross-site', 'same-site', 'other'])
      assert.ok(!isSame({ 'sec-fetch-site': site, origin: 'http://127.0.0.1:9090' }), site);
  });

  test('is unknown without these headers: a cookie is refused, another program is not', () => {
    assert.ok(!isSame({}));
    assert.ok(isSame({}, false));
  });
});

describe('the connection of the browser', () => {
  test('is secure if a proxy with an https: URL is in front, but not for a local connection beside it', () => {
    assert.ok(isSecure(requestWith({ host: 'Console.example' }), publicUrl));
    assert.ok(!isSecure(requestWith({ host: 'localhost:9090' }), publicUrl));
    assert.ok(!isSecure(requestWith({ host: 'console.example' }), 'http://console.example'));
  });
});
