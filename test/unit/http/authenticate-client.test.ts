import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { type ConfiguredClient, createClientAuthenticator } from '../../../src/http/authenticate-client.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { countConstantTimeComparisons } from '../../kit/constant-time.ts';
import { certificate, certificateValid } from '../simulated-bank/certificate.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const fingerprintOf = (pem: string) =>
  new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase();

const environments = ['sandbox', 'production'];
const shop: ConfiguredClient = {
  name: 'shop-1',
  tenant: 'shop',
  environments,
  apiKeySha256: sha256('key of shop-1'),
};
const second: ConfiguredClient = {
  name: 'shop-2',
  tenant: 'shop',
  environments: ['sandbox'],
  apiKeySha256: sha256('key of shop-2'),
};
const bearer: ConfiguredClient = {
  name: 'bearer',
  tenant: 'bearer',
  environments,
  certificateSha256: fingerprintOf(certificate),
};

const another = certificateValid('250101000000Z', '481231235959Z');

/** A request on a plain connection. */
const plain = () => new IncomingMessage(new Socket());

/** A request on a connection whose client showed this certificate. */
function overTls(pem: string | undefined, trust: 'believed' | 'not believed' = 'believed'): IncomingMessage {
  const shown = pem === undefined ? undefined : new X509Certificate(pem);
  return new IncomingMessage(
    Object.assign(new TLSSocket(new Socket()), {
      authorized: trust === 'believed' && pem !== undefined,
      getPeerX509Certificate: () => shown,
    }),
  );
}

/** Who a list of clients says it is. */
function whoIs(known: readonly ConfiguredClient[], key?: string, incoming = plain()) {
  const fields = key === undefined ? [] : [['x-aPI-Key', key] as const];
  return createClientAuthenticator(known, environments)(incoming, fields);
}

function refusalOf(known: readonly ConfiguredClient[], key?: string, incoming = plain()): GatewayError {
  try {
    assert.fail(`was taken for ${whoIs(known, key, incoming).name}`);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    assert.equal(thrown.code, 'CLIENT_UNKNOWN');
    return thrown;
  }
}

describe('a client', () => {
  test('is everybody, as "anonymous" and with every environment, where none is configured', () => {
    const anonymous = { name: 'anonymous', tenant: 'anonymous', environments };
    assert.deepEqual(whoIs([]), anonymous);
    assert.deepEqual(whoIs([], 'any key'), anonymous);
  });

  test('is known by its own key, with its tenant and its environments, and nothing of the key goes further', () => {
    assert.deepEqual(whoIs([shop, second], 'key of shop-1'), {
      name: 'shop-1',
      tenant: 'shop',
      environments,
    });
    assert.deepEqual(whoIs([shop, second], 'key of shop-2'), {
      name: 'shop-2',
      tenant: 'shop',
      environments: ['sandbox'],
    });
  });

  test('is nobody without a key, with an empty one, or with one that differs in anything', () => {
    const keys = [
      undefined,
      '',
      ' ',
      'KEY OF SHOP-1',
      'key of shop-1 ',
      ' key of shop-1',
      'key of shop-',
      'key of shop-3',
      sha256('key of shop-1'),
    ];
    for (const key of keys) {
      const { message, field, tppCode } = refusalOf([shop, second], key);
      assert.deepEqual([field, tppCode], ['X-API-Key', 'TOKEN_UNKNOWN']);
      assert.doesNotMatch(message, /shop/);
    }
  });

  test('without a key of its own is not known by an empty one', () => {
    refusalOf([shop, bearer], '');
    refusalOf([{ ...shop, apiKeySha256: '' }], '');
  });

  test('may have a key of any bytes that a header can carry', () => {
    const key = 'k\u00e9y \u00ff'; // one character a byte, as node:http reads them
    const apiKeySha256 = createHash('sha256').update(Buffer.from(key, 'latin1')).digest('hex');
    assert.equal(whoIs([{ ...shop, apiKeySha256 }], key).name, 'shop-1');
  });

  test('is known by its certificate', () => {
    assert.equal(whoIs([shop, bearer], undefined, overTls(certificate)).name, 'bearer');
  });

  test('is nobody with another certificate, one that nobody vouches for, none, or on a plain connection', () => {
    for (const incoming of [
      overTls(another),
      overTls(certificate, 'not believed'),
      overTls(undefined),
      plain(),
    ]) {
      assert.equal(refusalOf([bearer], undefined, incoming).tppCode, 'CERTIFICATE_MISSING');
    }
  });

  test('is nobody any more when its certificate has expired, even on a connection that was made before', () => {
    const late = certificateValid('200101000000Z', '201231235959Z');
    const known = { ...bearer, certificateSha256: fingerprintOf(late) };
    assert.equal(refusalOf([known], undefined, overTls(late)).tppCode, 'CERTIFICATE_MISSING');
  });

  test('that shows a key and a certificate must be one and the same: a stolen key is of no use with another certificate', () => {
    const both = { ...shop, certificateSha256: fingerprintOf(certificate) };
    assert.equal(whoIs([both], 'key of shop-1', overTls(certificate)).name, 'shop-1');
    refusalOf([shop, bearer], 'key of shop-1', overTls(certificate));
    refusalOf([shop, bearer], 'no key', overTls(certificate));
  });

  test('may show a certificate that nobody is known by beside its key', () => {
    assert.equal(whoIs([shop, bearer], 'key of shop-1', overTls(another)).name, 'shop-1');
  });

  test('is compared with every known one in constant time, whichever it is', (t) => {
    const comparisons = countConstantTimeComparisons(t);
    const known = [shop, second, { ...second, apiKeySha256: sha256('third') }];
    for (const key of ['key of shop-1', 'third']) {
      const before = comparisons();
      whoIs(known, key);
      assert.equal(comparisons() - before, known.length);
    }
    const before = comparisons();
    refusalOf(known, 'nobody');
    assert.equal(comparisons() - before, known.length);
  });
});
