/** Refusals of the public API: their order, their formats, and that the bank receives nothing. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { valuesOf } from '../kit/fields.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { connectRaw } from '../kit/raw-connection.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, statusRead, transfersPath } from '../kit/request.ts';

/** Errors in the order in which they are checked, and how to add each to a request. */
const errors: readonly (readonly [code: string, status: number, tppCode: string, (call: Call) => Call])[] = [
  ['HEADER_MALFORMED', 400, 'FORMAT_ERROR', withFields(['PSU-ID', 'one'], ['PSU-ID', 'two'])],
  ['PATH_MALFORMED', 400, 'FORMAT_ERROR', (one) => ({ ...one, path: `${one.path}//` })],
  ['PATH_UNKNOWN', 404, 'RESOURCE_UNKNOWN', (one) => ({ ...one, path: '/berlingroup/v1/accounts/1/2/3/4' })],
  ['PRODUCT_UNKNOWN', 404, 'PRODUCT_UNKNOWN', (one) => ({ ...one, path: one.path.replace('sepa', 'other') })],
  ['METHOD_NOT_ALLOWED', 405, 'SERVICE_INVALID', (one) => ({ ...one, method: 'PUT' })],
  ['REQUEST_ID_INVALID', 400, 'FORMAT_ERROR', withFields(['X-Request-ID', 'not-a-uuid'])],
  ['BODY_TOO_LARGE', 413, 'FORMAT_ERROR', (one) => ({ ...one, body: 'x'.repeat(70_000) })],
];

function withFields(...fields: NonNullable<Call['headers']>): (call: Call) => Call {
  return (one) => ({ ...one, headers: [...(one.headers ?? []), ...fields] });
}

describe('a request with several errors', () => {
  for (const [index, [code, status, tppCode]] of errors.entries()) {
    const later = errors.slice(index + 1).map(([name]) => name);
    test(`is refused with ${code}${later.length > 0 ? ` before ${later.join(', ')}` : ' if there is no other error'}`, async (t) => {
      const sections = {
        listen: { maxBody: '64KiB' },
        standard: { paymentProducts: ['sepa-credit-transfers'] },
      };
      const { bank, gateway } = await startGatewayWithBank(t, sections);
      const request = errors
        .slice(index)
        .toReversed()
        .reduce<Call>((one, [, , , addError]) => addError(one), initiation);

      assertRefused(await call(gateway.url, request), status, code, tppCode);
      assert.equal(bank.connections, 0);
    });
  }
});

const refusals: Readonly<Record<string, readonly [Call, status: number, code: string, tppCode: string]>> = {
  'a malformed query': [
    { ...statusRead, path: `${statusRead.path}?a=|` },
    400,
    'PATH_MALFORMED',
    'FORMAT_ERROR',
  ],
  'a trailing slash': [{ ...statusRead, path: `${transfersPath}/` }, 400, 'PATH_MALFORMED', 'FORMAT_ERROR'],
  'a path of no operation': [
    { ...statusRead, path: '/berlingroup/v1/consents' },
    404,
    'PATH_UNKNOWN',
    'RESOURCE_UNKNOWN',
  ],
  'another prefix': [{ ...statusRead, path: '/v1/payments/p/1' }, 404, 'PATH_UNKNOWN', 'RESOURCE_UNKNOWN'],
  'the root': [{ ...statusRead, path: '/' }, 404, 'PATH_UNKNOWN', 'RESOURCE_UNKNOWN'],
  'a service that is not offered': [
    { ...initiation, path: '/berlingroup/v1/periodic-payments/sepa-credit-transfers' },
    404,
    'PRODUCT_UNKNOWN',
    'PRODUCT_UNKNOWN',
  ],
  'a product that is not offered': [
    { ...initiation, path: '/berlingroup/v1/payments/target-2-payments' },
    404,
    'PRODUCT_UNKNOWN',
    'PRODUCT_UNKNOWN',
  ],
  'a body of a GET': [{ ...statusRead, body: '{}' }, 400, 'BODY_UNEXPECTED', 'FORMAT_ERROR'],
  'a body of a DELETE': [
    { method: 'DELETE', path: `${transfersPath}/1`, body: '{}' },
    400,
    'BODY_UNEXPECTED',
    'FORMAT_ERROR',
  ],
  'an environment that does not exist': [
    { ...statusRead, headers: [['Penstock-Environment', 'Sandbox']] },
    400,
    'ENVIRONMENT_UNKNOWN',
    'FORMAT_ERROR',
  ],
  'an unknown expectation': [
    { ...statusRead, headers: [['Expect', 'more']] },
    417,
    'EXPECTATION_FAILED',
    'FORMAT_ERROR',
  ],
};

describe('a refusal', () => {
  for (const [what, [request, status, code, tppCode]] of Object.entries(refusals)) {
    for (const [accept, type] of [
      ['*/*', 'application/json'],
      ['application/json;q=0.5, application/problem+json', 'application/problem+json'],
    ] as const) {
      test(`of ${what} is sent in ${type}`, async (t) => {
        const { bank, gateway } = await startGatewayWithBank(t, {
          standard: { paymentServices: ['payments'], paymentProducts: ['sepa-credit-transfers'] },
        });
        const id = '99391C7E-AD88-49EC-A2AD-99DDCB1F7721';
        const headers = [['X-Request-ID', id], ['Accept', accept], ...(request.headers ?? [])] as const;

        const reply = await call(gateway.url, { ...request, headers });

        assertRefused(reply, status, code, tppCode);
        assert.equal(reply.header('Content-Type'), type);
        assert.equal(reply.header('X-Request-ID'), id);
        assert.equal(bank.connections, 0);
      });
    }
  }
});

test('every error links to the error reference, also one for input that is not HTTP', async (t) => {
  const listen = { errorPageUrl: 'https://tpp.example/errors' };
  const { gateway } = await startGatewayWithBank(t, { listen });
  const link = (code: string) => `<https://tpp.example/errors#${code}>; rel="help"`;

  const unknown = await call(gateway.url, { ...statusRead, path: '/' });
  assert.equal(unknown.header('Link'), link('path_unknown'));

  const connection = await connectRaw(Number(new URL(gateway.url).port));
  connection.send('nonsense\r\n\r\n');
  assert.equal((await connection.answer()).headers.get('link'), link('header_malformed'));
  connection.destroy();
});

describe('an invalid X-Request-ID', () => {
  const ids = {
    missing: undefined,
    empty: [''],
    'no UUID': ['1234'],
    'in braces': ['{99391c7e-ad88-49ec-a2ad-99ddcb1f7721}'],
  };
  for (const [what, values = []] of Object.entries({
    ...ids,
    repeated: ['99391c7e-ad88-49ec-a2ad-99ddcb1f7721', '99391c7e-ad88-49ec-a2ad-99ddcb1f7722'],
  })) {
    test(`(${what}) is refused with a new id, and the message names the header`, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t);
      const headers = values.map((value) => ['X-Request-ID', value] as const);

      const reply = await call(gateway.url, { ...statusRead, headers, requestId: 'as given' });

      assertRefused(reply, 400, 'REQUEST_ID_INVALID', 'FORMAT_ERROR');
      assert.ok(!values.includes(valuesOf(reply.fields, 'X-Request-ID')[0] ?? ''));
      assert.match(JSON.stringify(jsonOf(reply)), /"path":"x-request-id"/i);
      assert.equal(bank.connections, 0);
    });
  }
});
