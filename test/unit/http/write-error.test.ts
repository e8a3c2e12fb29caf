import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { errorResponse } from '../../../src/http/write-error.ts';
import { headerValue, headerValues } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';

const context = { requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721', accept: undefined };

describe('errorResponse', () => {
  test('returns the status of the error table and its reason phrase', () => {
    const { status, reason } = errorResponse(new GatewayError('PATH_UNKNOWN', 'No.'), context);
    assert.deepEqual([status, reason], [404, 'Not Found']);
  });

  test('returns the fields of the error itself, and the given X-Request-ID', () => {
    const headers = [['Allow', 'GET, DELETE']] as const;
    const response = errorResponse(new GatewayError('METHOD_NOT_ALLOWED', 'No.', { headers }), context);
    assert.equal(headerValue(response.headers, 'allow'), 'GET, DELETE');
    assert.equal(headerValue(response.headers, 'x-request-id'), context.requestId);
  });

  test('links to the code in the error reference, in both formats, if there is an address', () => {
    const error = new GatewayError('OUTCOME_UNKNOWN', 'No.');
    for (const accept of [undefined, 'application/problem+json']) {
      const linkFor = (errorPageUrl: string | null) =>
        headerValues(errorResponse(error, { ...context, accept, errorPageUrl }).headers, 'link');
      assert.deepEqual(linkFor('https://tpp.example/errors'), [
        '<https://tpp.example/errors#outcome_unknown>; rel="help"',
      ]);
      assert.deepEqual(linkFor(null), []);
    }
  });

  test('names the environment only if it is known', () => {
    const known = errorResponse(
      new GatewayError('OUTCOME_UNKNOWN', 'No.', { environment: 'sandbox' }),
      context,
    );
    const unknown = errorResponse(new GatewayError('OUTCOME_UNKNOWN', 'No.'), context);
    assert.deepEqual(headerValues(known.headers, 'penstock-environment'), ['sandbox']);
    assert.deepEqual(headerValues(unknown.headers, 'penstock-environment'), []);
  });

  test('writes the most specific error type to Proxy-Status', () => {
    const error = new GatewayError('UPSTREAM_UNREACHED', 'No.', { proxyError: 'dns_error' });
    const field = headerValue(errorResponse(error, context).headers, 'proxy-status');
    assert.equal(field, 'penstock; error=dns_error; details="No."');
  });

  test('escapes any text in Proxy-Status (RFC 9651 section 3.3.3)', () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    });
    fc.assert(
      fc.property(printable, (text) => {
        const field = headerValue(
          errorResponse(new GatewayError('INTERNAL', text), context).headers,
          'proxy-status',
        );
        const [, details = ''] =
          /^penstock; error=[a-z_]+; details="((?:[^"\\]|\\["\\])*)"$/.exec(field ?? '') ?? [];
        assert.equal(details.replaceAll(/\\(["\\])/g, '$1'), text);
      }),
    );
  });

  test('writes the body in the format of its Content-Type', () => {
    const error = new GatewayError('HEADER_MALFORMED', 'No.', { field: 'host' });
    const json = errorResponse(error, context);
    const problem = errorResponse(error, { ...context, accept: 'application/problem+json' });
    assert.equal(headerValue(json.headers, 'content-type'), 'application/json');
    assert.deepEqual(JSON.parse(json.body.toString()), {
      tppMessages: [{ category: 'ERROR', code: 'FORMAT_ERROR', path: 'host', text: 'HEADER_MALFORMED: No.' }],
    });
    assert.equal(headerValue(problem.headers, 'content-type'), 'application/problem+json');
    assert.equal(JSON.parse(problem.body.toString()).code, 'FORMAT_ERROR');
  });
});

describe('the format of an error body', () => {
  const formatFor = (accept: string | undefined) => {
    const { headers } = errorResponse(new GatewayError('INTERNAL', 'No.'), { ...context, accept });
    return headerValue(headers, 'content-type');
  };

  for (const accept of [
    'application/problem+json',
    'Application/Problem+JSON',
    'application/problem+json, application/json;q=0.9',
    'application/json; q=0.5 , application/problem+json;q=0.501',
    'application/problem+json, */*;q=0.1',
    'application/problem+json, application/*;q=0.8',
    'application/json;q=0, application/*',
    'application/problem+json;q=0.5, application/*;q=0.1, */*;q=0.9',
    'application/xml, application/problem+json;q=0.001',
    ',, application/problem+json ,',
    'application/json;profile="a,b;q=1";q=0.2, application/problem+json;Q=0.3',
    'application/problem+json; charset=utf-8',
    'application/problem+json;profile="a,b";q=0.9, application/json;q=0.8',
    'application/problem+json;q=0.9;ext=1, application/json;q=0.8',
    'application/problem+json, application/json', // equal weights: the first one
  ]) {
    test(`is application/problem+json for Accept: ${accept}`, () => {
      assert.equal(formatFor(accept), 'application/problem+json');
    });
  }

  for (const accept of [
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/xml',
    'application/json, application/problem+json',
    'application/problem+json;q=0.5, */*',
    'application/problem+json;q=0',
    'application/json;q=0.2, application/json, application/problem+json;q=0.5',
    'application/problem+json;q=0, application/json;q=0',
    '*/*;q=0.1, application/problem+json;q=0.05, application/*;q=0.2',
    'application/problem+json;q=-1',
    'application/problem+json application/json;q=0.1',
    'application/problem+json/x',
  ]) {
    test(`is application/json for Accept: ${JSON.stringify(accept)}`, () => {
      assert.equal(formatFor(accept), 'application/json');
    });
  }

  test('is chosen for any Accept field, also one of the maximum length', { timeout: 5_000 }, () => {
    fc.assert(fc.property(fc.string(), (accept) => formatFor(accept) !== undefined));
    for (const piece of [',', ' ', 'a/b,', 'a/b;', '"', 'a/b;c="', '\\"', 'a/b;q=1;', 'a/b ,', 'a']) {
      const long = piece.repeat(16_384 / piece.length);
      for (const accept of [long, `a/b;c="${long}`]) assert.equal(formatFor(accept), 'application/json');
    }
  });
});
