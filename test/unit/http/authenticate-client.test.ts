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

const another = certificateValid('2025-01-01', '2048-12-31');

/** A request on a connection without TLS. */
const plain = () => new IncomingMessage(new Socket());

/** A request on a connection with this client certificate. */
function overTls(pem: string | undefined, trust: 'trusted' | 'untrusted' = 'trusted'): IncomingMessage {
  const presented = pem === undefined ? undefined : new X509Certificate(pem);
  return new IncomingMessage(
    Object.assign(new TLSSocket(new Socket()), {
      authorized: trust === 'trusted' && pem !== undefined,
      getPeerX509Certificate: () => presented,
    }),
  );
}

function authenticate(known: readonly ConfiguredClient[], key?: string, incoming = plain()) {
  return createClientAuthenticator(known, environments)(incoming.socket, key);
}

function refusalOf(known: readonly ConfiguredClient[], key?: string, incoming = plain()): GatewayError {
  try {
    assert.fail(`was authenticated as ${authenticate(known, key, incoming).name}`);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    assert.equal(thrown.code, 'CLIENT_UNKNOWN');
    return thrown;
  }
}

describe('the authentication of a client', () => {
  test('accepts every request as "anonymous" with all environments if no client is configured', () => {
    const anonymous = { name: 'anonymous', tenant: 'anonymous', environments };
    assert.deepEqual(authenticate([]), anonymous);
    assert.deepEqual(authenticate([], 'any key'), anonymous);
  });

  test('returns the client of an API key with its tenant and environments, and without the key', () => {
    assert.deepEqual(authenticate([shop, second], 'key of shop-1'), {
      name: 'shop-1',
      tenant: 'shop',
      environments,
    });
    assert.deepEqual(authenticate([shop, second], 'key of shop-2'), {
      name: 'shop-2',
      tenant: 'shop',
      environments: ['sandbox'],
    });
  });

  test('refuses a missing key, an empty key, and keys that differ in one character', () => {
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

  test('refuses an empty key for a client without a key', () => {
    refusalOf([shop, bearer], '');
    refusalOf([{ ...shop, apiKeySha256: '' }], '');
  });

  test('accepts a key with any bytes that are valid in a header', () => {
    const key = 'k\u00e9y \u00ff'; // one character a byte, as node:http reads them
    const apiKeySha256 = createHash('sha256').update(Buffer.from(key, 'latin1')).digest('hex');
    assert.equal(authenticate([{ ...shop, apiKeySha256 }], key).name, 'shop-1');
  });

  test('returns the client of a certificate', () => {
    assert.equal(authenticate([shop, bearer], undefined, overTls(certificate)).name, 'bearer');
  });

  test('refuses an unknown certificate, an untrusted one, none, and a connection without TLS', () => {
    for (const incoming of [
      overTls(another),
      overTls(certificate, 'untrusted'),
      overTls(undefined),
      plain(),
    ]) {
      assert.equal(refusalOf([bearer], undefined, incoming).tppCode, 'CERTIFICATE_MISSING');
    }
  });

  test('refuses a certificate that has expired since the connection was established', () => {
    const late = certificateValid('2020-01-01', '2020-12-31');
    const known = { ...bearer, certificateSha256: fingerprintOf(late) };
    assert.equal(refusalOf([known], undefined, overTls(late)).tppCode, 'CERTIFICATE_MISSING');
  });

  test('refuses a key and a certificate that belong to different clients', () => {
    const both = { ...shop, certificateSha256: fingerprintOf(certificate) };
    assert.equal(authenticate([both], 'key of shop-1', overTls(certificate)).name, 'shop-1');
    refusalOf([shop, bearer], 'key of shop-1', overTls(certificate));
    refusalOf([shop, bearer], 'no key', overTls(certificate));
  });

  test('accepts a key together with an unknown certificate', () => {
    assert.equal(authenticate([shop, bearer], 'key of shop-1', overTls(another)).name, 'shop-1');
  });

  test('knows an accepted key again without comparing it, together with the certificate of its client only', (t) => {
    const comparisons = countConstantTimeComparisons(t);
    const known = createClientAuthenticator([shop, bearer], environments);
    assert.equal(known(plain().socket, 'key of shop-1').name, 'shop-1');
    const before = comparisons();
    assert.equal(known(plain().socket, 'key of shop-1').name, 'shop-1');
    assert.equal(comparisons(), before);
    for (const [key, incoming] of [
      ['key of shop-2', plain()],
      ['key of shop-1', overTls(certificate)],
    ] as const)
      assert.throws(() => known(incoming.socket, key), { code: 'CLIENT_UNKNOWN' });
  });

  test('reads the certificate of a connection once, and refuses it when it has expired', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2048, 11, 31, 23) });
    const { socket } = overTls(certificateValid('2025-01-01', '2048-12-31'));
    assert.ok(socket instanceof TLSSocket);
    const presented = socket.getPeerX509Certificate() ?? assert.fail();
    const read = t.mock.method(socket, 'getPeerX509Certificate', () => presented);
    const certificateSha256 = presented.fingerprint256.replaceAll(':', '').toLowerCase();
    const known = createClientAuthenticator([{ ...bearer, certificateSha256 }], environments);
    for (let request = 0; request < 2; request++) assert.equal(known(socket, undefined).name, 'bearer');
    assert.equal(read.mock.callCount(), 1);
    t.mock.timers.setTime(Date.UTC(2049, 0, 1));
    assert.throws(() => known(socket, undefined), { code: 'CLIENT_UNKNOWN' });
  });

  test('compares a key with the keys of all clients in constant time', (t) => {
    const comparisons = countConstantTimeComparisons(t);
    const known = [shop, second, { ...second, apiKeySha256: sha256('third') }];
    for (const key of ['key of shop-1', 'third']) {
      const before = comparisons();
      authenticate(known, key);
      assert.equal(comparisons() - before, known.length);
    }
    const before = comparisons();
    refusalOf(known, 'nobody');
    assert.equal(comparisons() - before, known.length);
  });
});
