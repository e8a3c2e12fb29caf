/** The header fields of a request that are sent to the bank, and those that are not. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call, pairs } from '../kit/call.ts';
import { type Field, forwardedFields, valuesOf, withoutNames } from '../kit/fields.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-connection.ts';
import { initiation, statusRead, transfersPath } from '../kit/request.ts';

/** Fields of the standard (1.3.6 and 1.3.11), and fields that banks and TPPs add. */
const forwarded: readonly Field[] = [
  ['X-Request-ID', '99391C7E-AD88-49EC-A2AD-99DDCB1F7721'],
  ['PSU-IP-Address', '2001:db8::1'],
  ['PSU-IP-Port', '1234'],
  ['PSU-Accept', 'text/html, */*;q=0.1'],
  ['PSU-Accept-Charset', 'UTF-8'],
  ['PSU-Accept-Encoding', 'gzip'],
  ['PSU-Accept-Language', 'de-DE'],
  ['PSU-User-Agent', 'Mozilla/5.0 (X11; Linux x86_64)'],
  ['PSU-Http-Method', 'POST'],
  ['PSU-Device-ID', '99435c7e-ad88-49ec-a2ad-99ddcb1f5555'],
  ['PSU-Geo-Location', 'GEO:52.506931;13.144558'],
  ['PSU-ID', 'PSU-1234'],
  ['PSU-ID-Type', 'login'],
  ['PSU-Corporate-ID', 'corporation'],
  ['PSU-Corporate-ID-Type', 'login'],
  ['Consent-ID', 'consent-1'],
  ['TPP-Redirect-Preferred', 'true'],
  ['TPP-Decoupled-Preferred', 'true'],
  ['TPP-Redirect-URI', 'https://tpp.example/ok?state=a%20b'],
  ['TPP-Nok-Redirect-URI', 'https://tpp.example/nok'],
  ['TPP-Explicit-Authorisation-Preferred', 'false'],
  ['TPP-Rejection-NoFunds-Preferred', 'true'],
  ['TPP-Brand-Logging-Information', 'a brand'],
  ['TPP-Notification-URI', 'https://tpp.example/notify'],
  ['TPP-Notification-Content-Preferred', 'status=SCA,PROCESS,LAST'],
  ['TPP-Signature-Certificate', 'TUlJSEVqQ0NCZnFnQXdJQkFnSVVEMA=='],
  [
    'Signature',
    'keyId="SN=9FA1,CA=CN=D-TRUST%20CA",algorithm="rsa-sha256",headers="digest",signature="QQ=="',
  ],
  ['Authorization', 'Bearer  two spaces'],
  ['Date', 'Sun, 06 Nov 1994 08:49:37 GMT'],
  ['Accept', 'application/json;q=0.9, application/problem+json'],
  ['Accept-Encoding', 'gzip, br;q=0'],
  ['Accept-Language', 'de, en;q=0.5'],
  ['User-Agent', 'a TPP'],
  ['Cookie', 'session=1; other=2'],
  ['If-None-Match', '"abc"'],
  ['Cache-Control', 'no-cache'],
  ['Range', 'bytes=0-9'],
  ['Via', '1.1 somebody'],
  ['Max-Forwards', '1'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['X-Bank-Of-Its-Own', 'value'],
  ['x-lOWER-and-UPPER', 'value'],
  ['X-Empty', ''],
  ['X-Long', 'x'.repeat(1_000)],
];

/** Hop-by-hop fields, fields of proxies, and fields for the gateway. */
const removed: readonly Field[] = [
  ['Keep-Alive', 'timeout=5'],
  ['Proxy-Connection', 'keep-alive'],
  ['Proxy-Authorization', 'Basic c2VjcmV0'],
  ['TE', 'trailers'],
  ['Upgrade', 'h2c'],
  ['HTTP2-Settings', 'AAMAAABkAAQAAP__'],
  ['Expect', '100-continue'],
  ['X-Forwarded-For', '192.0.2.7'],
  ['X-Forwarded-Host', 'evil.example'],
  ['X-Forwarded-Proto', 'http'],
  ['X-Forwarded-Anything', 'value'],
  ['X-Real-IP', '192.0.2.7'],
  ['Forwarded', 'for=192.0.2.7'],
  ['X-API-Key', 'a-secret'],
  ['Penstock-Environment', 'sandbox'],
];

const lower = (fields: readonly Field[]) => fields.map(([name]) => name.toLowerCase());

describe('the request that the bank receives', () => {
  test('has every end-to-end field as it was sent, and no other', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);

    await call(gateway.url, { ...initiation, headers: [...forwarded, ...removed] });

    const received = pairs(bank.requests[0]?.rawHeaders ?? []);
    assert.deepEqual(forwardedFields(received), forwardedFields(forwarded));
    const added = lower(withoutNames(lower(forwarded), received));
    assert.deepEqual(added.toSorted(), ['connection', 'content-length', 'host']);
  });

  test('has repeated fields in their order', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const headers: readonly Field[] = [
      ['X-Bank-Hint', 'b, with a comma'],
      ['X-Other', 'between'],
      ['X-Bank-Hint', 'a'],
      ['X-Bank-Hint', ''],
      ['Accept', 'application/json'],
      ['Accept', 'application/xml'],
    ];

    await call(gateway.url, { ...statusRead, headers });

    const received = pairs(bank.requests[0]?.rawHeaders ?? []);
    assert.deepEqual(valuesOf(received, 'X-Bank-Hint'), ['b, with a comma', 'a', '']);
    assert.deepEqual(valuesOf(received, 'Accept'), ['application/json', 'application/xml']);
  });

  test("has the bank's own Host", async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, {}, { basePath: '/psd2' });
    await call(gateway.url, statusRead);
    const received = pairs(bank.requests[0]?.rawHeaders ?? []);
    assert.deepEqual(valuesOf(received, 'Host'), [new URL(bank.baseUrl).host]);
    assert.equal(bank.requests[0]?.url, `/psd2${statusRead.path}`);
  });

  test('has a path whose encoded characters are decoded once', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await call(gateway.url, { method: 'GET', path: `${transfersPath}/GJv0KO..Fg%3D%3D_%3D_bS6p%40a` });
    assert.equal(bank.requests[0]?.url, `${transfersPath}/GJv0KO..Fg==_=_bS6p@a`);
  });

  for (const [method, body] of [
    ['GET', ''],
    ['POST', '{}'],
  ] as const) {
    test(`has fields with Latin-1 characters byte for byte as they were sent (${method})`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      const target = method === 'GET' ? statusRead.path : transfersPath;
      const head = [
        `${method} ${target} HTTP/1.1`,
        'Host: gateway.example',
        'X-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
        'PSU-ID: Müller',
        `Content-Length: ${body.length}`,
      ];
      await sendRaw(gateway.port, Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
      assert.deepEqual(valuesOf(pairs(bank.requests[0]?.rawHeaders ?? []), 'PSU-ID'), ['Müller']);
    });
  }
});

describe('a field that the bank does not receive', () => {
  for (const [name, value] of removed) {
    test(`is ${name}`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      await call(gateway.url, { ...initiation, headers: [...initiation.headers, [name, value]] });
      assert.equal(bank.requests.length, 1);
      assert.deepEqual(valuesOf(pairs(bank.requests[0]?.rawHeaders ?? []), name), []);
    });
  }

  test('is every field that Connection names, in any case and in several lines', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const headers: readonly Field[] = [
      ['X-Secret-Hop', '1'],
      ['x-secret-hop', '2'],
      ['X-Other-Hop', '3'],
      ['X-Stays', '4'],
      ['Connection', 'x-SECRET-hop ,'],
      ['Connection', 'X-Other-Hop'],
    ];

    await call(gateway.url, { ...statusRead, headers });

    const names = lower(pairs(bank.requests[0]?.rawHeaders ?? []));
    assert.deepEqual(
      names.filter((name) => name.startsWith('x-')),
      ['x-request-id', 'x-stays'],
    );
  });
});
