import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { identityOf } from '../../../src/idempotency/request-identity.ts';
import { authorisation, cancellation, initiation, type RequestOptions, requestId } from './requests.ts';

const idOf = (asking: RequestOptions) => identityOf(initiation(asking)).id;
const fingerprintOf = (asking: RequestOptions) => identityOf(initiation(asking)).fingerprint;
const typed = (type: string) => [['Content-Type', type]] as const;

describe('an X-Request-ID', () => {
  test('is the same in any case of letters', () => {
    assert.equal(idOf({ requestId: requestId.toUpperCase() }), idOf({}));
  });

  test('of another tenant is another one', () => {
    assert.notEqual(idOf({ tenant: 'rival' }), idOf({}));
  });

  test('of another operation, or on another payment, is another one', () => {
    const same = [initiation(), cancellation(), authorisation(), cancellation({ payment: 'another' })];
    assert.equal(new Set(same.map((request) => identityOf(request).id)).size, same.length);
  });

  test('stands under a name that tells nothing of it', () => {
    assert.match(idOf({}), /^[\w-]{43}$/);
  });

  test('cannot be made to look like that of somebody else by how the names are joined', () => {
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

describe('a repeat', () => {
  test('is the same with other credentials, dates and addresses of the payer', () => {
    const headers = [
      ...typed('application/json'),
      ['Authorization', 'Bearer refreshed'],
      ['Date', 'Thu, 01 Jan 2026 12:00:00 GMT'],
      ['PSU-IP-Address', '192.0.2.1'],
      ['Signature', 'keyId="1"'],
    ] as const;
    assert.equal(fingerprintOf({ headers }), fingerprintOf({}));
  });

  test('is the same whatever the case of the field that names its content type', () => {
    const headers = [['content-type', 'application/json']] as const;
    assert.equal(fingerprintOf({ headers }), fingerprintOf({}));
  });

  for (const [what, asking] of [
    ['body', { body: '{}' }],
    ['content type', { headers: typed('application/xml') }],
    ['no content type', { headers: [] }],
    ['path', { service: 'bulk-payments' }],
    ['named environment', { named: 'sandbox' }],
  ] as const satisfies readonly (readonly [string, RequestOptions])[])
    test(`with another ${what} is another request under the same id`, () => {
      assert.equal(idOf(asking), idOf({}));
      assert.notEqual(fingerprintOf(asking), fingerprintOf({}));
    });

  test('differs in any single byte of the body', () => {
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
