/** The header fields of the bank's responses, and the fields that the gateway adds. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type Field, forwardedFields, valuesOf, withoutNames } from '../kit/fields.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { setBankResponse } from '../kit/raw-bank-response.ts';
import { statusRead, transfersPath } from '../kit/request.ts';

const uuid = '99391C7E-AD88-49EC-A2AD-99DDCB1F7721';

/** Of another payment, so that the bank is called again. */
const otherRead = { method: 'GET', path: `${transfersPath}/another-payment/status` } as const;

const bankFields: readonly Field[] = [
  ['Content-Type', 'application/json'],
  ['Set-Cookie', 'b=2; Path=/; HttpOnly'],
  ['X-Trading-Hours', '9-17'],
  ['Set-Cookie', 'a=1, with a comma'],
  ['x-trading-hours', '10-12'],
  ['ASPSP-SCA-Approach', 'REDIRECT'],
  ['ASPSP-Notification-Support', 'true'],
  ['WWW-Authenticate', 'Bearer realm="a", Basic'],
  ['ETag', 'W/"1"'],
  ['Vary', 'Accept'],
  ['Server', 'the bank'],
  ['X-Powered-By', 'the bank'],
  ['Via', '1.1 front'],
  ['X-Latin-1', 'Müller'],
  ['X-Empty', ''],
];

describe("the fields of the bank's response", () => {
  test('are passed on in their order, including repeated and unknown ones', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    setBankResponse(bank, { headers: [...bankFields, ['X-Request-ID', uuid]], body: '{}' });
    const reply = await call(gateway.url, { ...statusRead, headers: [['X-Request-ID', uuid]] });
    assert.deepEqual(forwardedFields(reply.fields), forwardedFields([...bankFields, ['X-Request-ID', uuid]]));
  });

  test("keep the bank's Cache-Status before the gateway's", async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    setBankResponse(bank, { headers: [['Cache-Status', 'front; hit']] });
    const { fields } = await call(gateway.url, statusRead);
    assert.deepEqual(valuesOf(fields, 'Cache-Status'), ['front; hit', 'penstock; fwd=miss']);
  });

  test('are removed if they are hop-by-hop or named by Connection', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const names = ['Keep-Alive', 'Proxy-Authenticate', 'Proxy-Connection', 'Trailer', 'X-Hop'];
    const headers = names.map((name) => [name, 'value'] as const);
    setBankResponse(bank, { headers: [...headers, ['Connection', 'close, x-hop']], body: '{}' });

    const { status, fields } = await call(gateway.url, statusRead);

    assert.equal(status, 200);
    for (const name of names) assert.ok(!valuesOf(fields, name).includes('value'), name);
  });

  test("contain one Date: the bank's if it sent one, otherwise the gateway's", async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const date = 'Sun, 06 Nov 1994 08:49:37 GMT';
    setBankResponse(bank, { headers: [['Date', date]] });
    assert.deepEqual(valuesOf((await call(gateway.url, statusRead)).fields, 'Date'), [date]);
    setBankResponse(bank, {});
    assert.equal(valuesOf((await call(gateway.url, otherRead)).fields, 'Date').length, 1);
  });

  for (const echoed of [[], ['00000000-0000-4000-8000-000000000000'], ['not a uuid', 'twice']]) {
    test(`contain the client's X-Request-ID once if the bank sends ${echoed.join(' and ') || 'none'}`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      setBankResponse(bank, { headers: echoed.map((id) => ['X-Request-ID', id]) });
      const { fields } = await call(gateway.url, { ...statusRead, headers: [['X-Request-ID', uuid]] });
      assert.deepEqual(valuesOf(fields, 'X-Request-ID'), [uuid]);
    });
  }

  test('contain Cache-Control: no-store unless the bank sends its own', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    setBankResponse(bank, {});
    assert.deepEqual(valuesOf((await call(gateway.url, statusRead)).fields, 'Cache-Control'), ['no-store']);
    setBankResponse(bank, { headers: [['cache-control', 'private, max-age=1']] });
    assert.deepEqual(valuesOf((await call(gateway.url, otherRead)).fields, 'Cache-Control'), [
      'private, max-age=1',
    ]);
  });

  test('are removed if only the gateway may set them', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const forged: readonly Field[] = [
      ['Penstock-Environment', 'production'],
      ['Penstock-Error', 'CIRCUIT_OPEN'],
      ['penstock-anything', 'value'],
      ['Idempotent-Replayed', 'true'],
    ];
    setBankResponse(bank, { headers: forged });

    const { fields } = await call(gateway.url, statusRead);

    assert.deepEqual(valuesOf(fields, 'Penstock-Environment'), ['sandbox']);
    const names = withoutNames(['penstock-environment'], fields).map(([name]) => name.toLowerCase());
    for (const [name] of forged.slice(1)) assert.ok(!names.includes(name.toLowerCase()), name);
  });

  test('do not name the software of the gateway', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const { fields } = await call(gateway.url, { method: 'PUT', path: statusRead.path });
    for (const name of ['X-Powered-By', 'Server', 'ETag', 'Via'])
      assert.deepEqual(valuesOf(fields, name), []);
  });
});
