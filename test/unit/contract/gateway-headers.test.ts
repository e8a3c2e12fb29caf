/** Headers that the gateway takes from the TPP are not judged: the bank does not get them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contractHash, prepareContract } from '../../../src/contract/contract.ts';
import type { ConsumedHeaders } from '../../../src/contract/request-headers.ts';
import { type Changes, request, single, verdictOf } from '../../kit/judged.ts';

const contractWith = (...consumedHeaders: ConsumedHeaders[]) =>
  prepareContract({ standardVersion: '1.3.11', consumedHeaders });
const forwarding = await contractWith();
const consumingNotifications = await contractWith('notifications');
const signing = await contractWith('signature');

const withHeaders = (headers: Changes['headers'] = {}) => request.single(single(), { headers });
const brokenNotifications = {
  'TPP-Notification-URI': 'no uri',
  'TPP-Notification-Content-Preferred': 'status=ALL',
};
const ofNotifications = [
  'harmful format headers/TPP-Notification-URI refused',
  'notable pattern headers/TPP-Notification-Content-Preferred ignored',
];
const signatureOf = (names: string) =>
  `keyId="SN=1,CA=x",algorithm="rsa-sha256",headers="digest x-request-id tpp-redirect-uri ${names}",signature="QUJD"`;
const wrongDigest = `SHA-256=${Buffer.alloc(32).toString('base64')}`;

describe('headers about notifications', () => {
  test('are judged where the bank gets them', () => {
    assert.deepEqual(verdictOf(forwarding, withHeaders(brokenNotifications)), ofNotifications);
  });

  test('are not judged where the gateway does not send them, or writes them itself', () => {
    assert.deepEqual(verdictOf(consumingNotifications, withHeaders(brokenNotifications)), []);
    assert.deepEqual(
      verdictOf(forwarding, { ...withHeaders(brokenNotifications), consumedHeaders: ['notifications'] }),
      [],
    );
  });

  test('are judged everywhere if the TPP has signed them, because they then go to the bank', () => {
    const signed = withHeaders({
      ...brokenNotifications,
      'TPP-Signature-Certificate': 'QUJD',
      Digest: wrongDigest,
      Signature: signatureOf('TPP-Notification-URI'),
    });
    const found = verdictOf(consumingNotifications, { ...signed, consumedHeaders: ['notifications'] });
    for (const deviation of ofNotifications) assert.ok(found.includes(deviation), found.join(', '));
  });

  test('leave other faults of the request as they are', () => {
    const faulty = withHeaders({ ...brokenNotifications, 'PSU-IP-Address': 'x' });
    assert.deepEqual(verdictOf(consumingNotifications, faulty), [
      'harmful format headers/PSU-IP-Address refused',
    ]);
  });
});

describe('a digest without a signature', () => {
  const digest = withHeaders({ Digest: wrongDigest });

  test('is judged where the bank gets it', () => {
    assert.deepEqual(verdictOf(forwarding, digest), [
      'harmful digest headers/Digest refused',
      'usual required-with headers/Signature none',
    ]);
  });

  test('is not judged where the gateway signs, and so writes another one', () => {
    assert.deepEqual(verdictOf(signing, digest), []);
  });

  test('is judged together with a signature of the TPP, which the gateway does not replace', () => {
    const signed = { Digest: wrongDigest, Signature: signatureOf(''), 'TPP-Signature-Certificate': 'QUJD' };
    assert.deepEqual(verdictOf(signing, withHeaders(signed)), ['harmful digest headers/Digest refused']);
  });
});

test('a status read that asks the gateway for events is no deviation, and any other read is', () => {
  const headers = { Accept: 'text/event-stream', 'Content-Type': undefined };
  assert.deepEqual(verdictOf(forwarding, request.read('getPaymentStatus', { headers })), []);
  assert.deepEqual(verdictOf(forwarding, request.read('getPayment', { headers })), [
    'notable accept headers/Accept may-be-refused',
  ]);
});

test('the headers that the gateway consumes are a part of the contract, so that counting begins again when they change', () => {
  const hashes = [[], ['notifications'], ['signature'], ['notifications', 'signature']] as const;
  assert.equal(
    new Set(hashes.map((consumedHeaders) => contractHash({ standardVersion: '1.3.11', consumedHeaders })))
      .size,
    hashes.length,
  );
  assert.equal(
    contractHash({ standardVersion: '1.3.11' }),
    contractHash({ standardVersion: '1.3.11', consumedHeaders: [] }),
  );
});
