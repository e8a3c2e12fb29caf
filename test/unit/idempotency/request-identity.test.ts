import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createIdentifyRequest } from '../../../src/idempotency/request-identity.ts';
import {
  authorisation,
  authorisationUpdate,
  cancellation,
  identityOf,
  initiation,
  paymentUpdate,
  type RequestOptions,
  requestId,
} from './requests.ts';

const idOf = (options: RequestOptions) => JSON.stringify(identityOf(initiation(options)).key);
const fingerprintOf = (options: RequestOptions) => identityOf(initiation(options)).fingerprints.request;
const typed = (type: string) => [['Content-Type', type]] as const;
const withHeader = (name: string, value: string) => ({
  headers: [...typed('application/json'), [name, value] as const],
});

describe('the key of a request in the ledger', () => {
  test('does not depend on the letter case of the X-Request-ID', () => {
    assert.equal(idOf({ requestId: requestId.toUpperCase() }), idOf({}));
  });

  test('depends on the tenant', () => {
    assert.notEqual(idOf({ tenant: 'rival' }), idOf({}));
  });

  test('depends on the operation and the payment, so that a TPP can use one X-Request-ID for each of them', () => {
    const same = [initiation(), cancellation(), authorisation(), cancellation({ payment: 'another' })];
    assert.equal(new Set(same.map((request) => JSON.stringify(identityOf(request).key))).size, same.length);
  });

  test('does not depend on the payment service, so that a TPP cannot initiate two payments with one X-Request-ID', () => {
    assert.equal(idOf({ service: 'bulk-payments' }), idOf({}));
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
  test('does not depend on credentials, consents, dates, signatures and payer addresses', () => {
    const headers = [
      ...typed('application/json'),
      ['Authorization', 'Bearer refreshed'],
      ['Consent-ID', 'renewed'],
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
    ['a payer', withHeader('PSU-ID', 'anna')],
    ['the kind of a payer id', withHeader('PSU-ID-Type', 'email')],
    ['a company', withHeader('psu-corporate-id', 'anna')],
    ['the kind of a company id', withHeader('PSU-Corporate-ID-Type', 'email')],
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

describe('the fingerprint of a request that may contain a password or TAN of the payer', () => {
  for (const [name, request] of [
    ['startAuthorisation', authorisation],
    ['updatePsuData', authorisationUpdate],
    ['updatePayment', paymentUpdate],
  ] as const)
    test(`does not depend on the body of ${name}, nor on its digests`, () => {
      const stored = (body: string, digest: string) => {
        const headers = [
          ...typed('application/json'),
          ['Digest', digest],
          ['Content-Digest', digest],
        ] as const;
        return JSON.stringify(identityOf(request({ body, headers })));
      };
      assert.equal(
        stored('{"scaAuthenticationData":"12345"}', 'SHA-256=one'),
        stored('{"scaAuthenticationData":"54321"}', 'SHA-256=two'),
      );
    });
});

describe('a request under a used X-Request-ID', () => {
  const first = identityOf(initiation(withHeader('PSU-ID', 'anna'))).fingerprints;
  const other = identityOf(initiation(withHeader('PSU-ID', 'berta')));

  test('is a repeat if all fingerprints are equal', () => {
    assert.equal(identityOf(initiation(withHeader('PSU-ID', 'anna'))).differenceFrom(first), 'none');
  });

  test('differs in the headers alone if it has another payer', () => {
    assert.equal(other.differenceFrom(first), 'headers');
    assert.equal(identityOf(initiation()).differenceFrom(first), 'headers');
  });

  test('differs in its content if it has another body', () => {
    const changed = identityOf(initiation({ ...withHeader('PSU-ID', 'anna'), body: '{}' }));
    assert.equal(changed.differenceFrom(first), 'content');
  });
});

describe('a fingerprint with an encryption key', () => {
  const [one, two] = [randomBytes(32), randomBytes(32)];
  const withOne = createIdentifyRequest([one]);
  const tan = (value: string) => authorisationUpdate({ body: `{"scaAuthenticationData":"${value}"}` });

  test('covers the body of an operation that carries credentials, which a repeat must not change', () => {
    const { fingerprints } = withOne(tan('12345'));
    assert.equal(withOne(tan('12345')).differenceFrom(fingerprints), 'none');
    assert.equal(withOne(tan('54321')).differenceFrom(fingerprints), 'content');
  });

  test('differs from that without a key and under another key, and names its key by an id', () => {
    const all = [identityOf, withOne, createIdentifyRequest([two])].map(
      (identify) => identify(initiation()).fingerprints,
    );
    for (const field of ['key', 'request', 'content'] as const)
      assert.equal(new Set(all.map((fingerprints) => fingerprints[field])).size, all.length, field);
    assert.match(all[1]?.key ?? '', /^[\w-]{8}$/);
  });

  test('is compared under an older key of the file, and without a key if there was none', () => {
    const later = createIdentifyRequest([two, one]);
    for (const earlier of [withOne, identityOf]) {
      const { fingerprints } = earlier(initiation());
      assert.equal(later(initiation()).differenceFrom(fingerprints), 'none');
      assert.equal(later(initiation({ body: '{}' })).differenceFrom(fingerprints), 'content');
    }
  });

  test('cannot be compared without its key', () => {
    const { fingerprints } = withOne(initiation());
    for (const later of [createIdentifyRequest([two]), identityOf])
      assert.equal(later(initiation()).differenceFrom(fingerprints), 'unknown');
  });
});
