import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { identityOf } from '../../../src/idempotency/request-identity.ts';
import { authorisation, cancellation, initiation, type RequestOptions, requestId } from './requests.ts';

const idOf = (options: RequestOptions) => identityOf(initiation(options)).id;
const fingerprintOf = (options: RequestOptions) => identityOf(initiation(options)).fingerprint;
const typed = (type: string) => [['Content-Type', type]] as const;

describe('the ledger id of a request', () => {
  test('does not depend on the letter case of the X-Request-ID', () => {
    assert.equal(idOf({ requestId: requestId.toUpperCase() }), idOf({}));
  });

  test('depends on the tenant', () => {
    assert.notEqual(idOf({ tenant: 'rival' }), idOf({}));
  });

  test('depends on the operation and the payment', () => {
    const same = [initiation(), cancellation(), authorisation(), cancellation({ payment: 'another' })];
    assert.equal(new Set(same.map((request) => identityOf(request).id)).size, same.length);
  });

  test('is a hash of 43 characters', () => {
    assert.match(idOf({}), /^[\w-]{43}$/);
  });

  test('differs for different pairs of tenant and X-Request-ID, whatever characters they contain', () => {
    const pairs = fc.uniqueArray(fc.tuple(fc.string(), fc.string()), {
      selector: (pair) => JSON.stringify(pair.map((text) => text.toLowerCase())),
      minLength: 2,
    });
    fc.assert(
      fc.property(pairs, (all) => {
        const ids = all.map(([tenant, id]) => idOf({ tenant: tenant.toLowerCase(), requestId: id }));
        assert.equal(new Set(ids).size, ids.length);
      }),
    );
  });
});

describe('the fingerprint of a request', () => {
  test('does not depend on credentials, dates, signatures and payer addresses', () => {
    const headers = [
      ...typed('application/json'),
      ['Authorization', 'Bearer refreshed'],
      ['Date', 'Thu, 01 Jan 2026 12:00:00 GMT'],
      ['PSU-IP-Address', '192.0.2.1'],
      ['Signature', 'keyId="1"'],
    ] as const;
    assert.equal(fingerprintOf({ headers }), fingerprintOf({}));
  });

  test('does not depend on the letter case of the Content-Type header name', () => {
    const headers = [['content-type', 'application/json']] as const;
    assert.equal(fingerprintOf({ headers }), fingerprintOf({}));
  });

  for (const [what, options] of [
    ['another body', { body: '{}' }],
    ['another content type', { headers: typed('application/xml') }],
    ['no content type', { headers: [] }],
    ['another path', { service: 'bulk-payments' }],
    ['a named environment', { named: 'sandbox' }],
  ] as const satisfies readonly (readonly [string, RequestOptions])[])
    test(`differs for ${what}, while the ledger id is the same`, () => {
      assert.equal(idOf(options), idOf({}));
      assert.notEqual(fingerprintOf(options), fingerprintOf({}));
    });

  test('depends on every byte of the body', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.nat(), (body, place) => {
        const at = place % body.length;
        const other =
          body.slice(0, at) + String.fromCharCode((body.charCodeAt(at) + 1) % 128) + body.slice(at + 1);
        assert.equal(fingerprintOf({ body }) === fingerprintOf({ body: other }), body === other);
      }),
    );
  });
});
