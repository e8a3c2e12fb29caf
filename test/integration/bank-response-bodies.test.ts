/** Status and body bytes of the bank's responses reach the TPP unchanged, including errors and unusual responses. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { valuesOf } from '../kit/fields.ts';
import { publicUrl, startGatewayWithBank } from '../kit/gateway.ts';
import { setBankResponse } from '../kit/raw-bank-response.ts';
import { initiation, statusRead, transfersPath } from '../kit/request.ts';

interface BankResponse {
  readonly status: string;
  readonly type?: string;
  /** One character per byte. */
  readonly body: string;
}

const responses: Readonly<Record<string, BankResponse>> = {
  'a 400 with tppMessages': {
    status: '400 Bad Request',
    type: 'application/json',
    body: '{"tppMessages":[{"category":"ERROR","code":"FORMAT_ERROR","path":"creditorAccount.iban"}],"_links":{}}',
  },
  'a 400 with problem+json that lacks its type': {
    status: '400 Bad Request',
    type: 'application/problem+json',
    body: '{ "code" : "RESOURCE_BLOCKED" }',
  },
  "a 403 in a format of the bank's own": {
    status: '403 Forbidden',
    type: 'text/json',
    body: '{"httpCode":403}',
  },
  'a 404 whose members repeat': {
    status: '404 Not Found',
    type: 'application/json',
    body: '{"a":1,"a":2}\r\n',
  },
  "a 405 of the bank's own": { status: '405 Method Not Allowed', type: 'application/json', body: '{}' },
  'a 409 with invalid JSON': {
    status: '409 Conflict',
    type: 'application/json',
    body: '{"_links":{"self":{"href":"/v1/',
  },
  'a 500 without a type': { status: '500 Internal Server Error', body: 'oops' },
  'a 502 with a web page': { status: '502 Bad Gateway', type: 'text/html', body: '<html>_links</html>' },
  'a 503 without a body': { status: '503 Service Unavailable', body: '' },
  'a 299, an unknown status': {
    status: '299 Odd',
    type: 'application/json;charset=UTF-8',
    body: ' {"transactionStatus" : "ACCP"} \n',
  },
  'a 200 with XML in latin-1': {
    status: '200 OK',
    type: 'application/xml',
    body: '<?xml version="1.0" encoding="ISO-8859-1"?><a>Müller</a>',
  },
  'a 200 with bytes of any kind': {
    status: '200 OK',
    type: 'application/octet-stream',
    body: String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte)),
  },
};

for (const framing of ['length', 'chunked', 'close'] as const) {
  describe(`a response of the bank that is framed by ${framing}`, () => {
    for (const [what, { status, type, body }] of Object.entries(responses)) {
      test(`keeps its status and bytes if it is ${what}`, async (t) => {
        const { bank, gateway } = await startGatewayWithBank(t);
        const types = type === undefined ? [] : [type];
        setBankResponse(bank, { status, headers: types.map((one) => ['Content-Type', one]), body, framing });

        const reply = await call(gateway.url, statusRead);

        assert.equal(reply.status, Number.parseInt(status, 10));
        assert.equal(reply.body.toString('latin1'), body);
        assert.deepEqual(valuesOf(reply.fields, 'Content-Type'), types);
        assert.deepEqual(valuesOf(reply.fields, 'Content-Length'), [String(body.length)]);
        assert.deepEqual(valuesOf(reply.fields, 'Transfer-Encoding'), []);
        assert.equal(reply.header('Penstock-Error'), undefined);
      });
    }
  });
}

describe('a response of the bank', () => {
  test('has neither a body nor a length if its status is 204', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    setBankResponse(bank, { status: '204 No Content', framing: 'close' });
    const reply = await call(gateway.url, { method: 'DELETE', path: `${transfersPath}/1` });
    assert.equal(reply.status, 204);
    assert.equal(reply.body.length, 0);
    assert.deepEqual(valuesOf(reply.fields, 'Content-Length'), []);
  });

  test('keeps its Retry-After if its status is 429, and the request is not repeated', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'too-many-requests', retryAfterSeconds: 7 });
    const reply = await call(gateway.url, statusRead);
    assert.equal(reply.status, 429);
    assert.deepEqual(valuesOf(reply.fields, 'Retry-After'), ['7']);
    assert.equal(bank.requests.length, 1);
  });

  for (const status of ['301 Moved Permanently', '302 Found', '303 See Other', '307 Temporary Redirect']) {
    test(`is passed on and not followed if its status is ${status}`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      setBankResponse(bank, {
        status,
        headers: [['Location', `${bank.baseUrl}${transfersPath}/2`]],
        body: 'elsewhere',
      });

      const reply = await call(gateway.url, initiation);

      assert.equal(reply.status, Number.parseInt(status, 10));
      assert.equal(reply.header('Location'), `${publicUrl}${transfersPath}/2`);
      assert.equal(reply.text, 'elsewhere');
      assert.equal(bank.requests.length, 1);
    });
  }

  test('is passed on without the interim responses before it', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'interim-answers', statuses: [100, 103] });
    assert.equal((await call(gateway.url, initiation)).status, 201);
  });
});
