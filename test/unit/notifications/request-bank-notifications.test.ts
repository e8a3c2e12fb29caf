import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type BankNotificationMode,
  type RequestBankNotificationsDependencies,
  requestBankNotifications,
} from '../../../src/notifications/request-bank-notifications.ts';
import { type HeaderFields, headerValue } from '../../../src/pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import type { PaymentOfTenant } from '../../../src/request/statuses.ts';
import { withMeaning } from '../../kit/meaning.ts';
import { authorisation, cancellation, initiation, preferred, requestOf, uri } from './write-fixture.ts';

const writes = [
  ['an initiation', initiation],
  ['a cancellation', cancellation],
  ['the start of an authorisation', authorisation],
] as const;
const ours: HeaderFields = [
  ['TPP-Notification-URI', 'https://gateway.example/token-of-sandbox'],
  ['TPP-Notification-Content-Preferred', 'status=SCA,PROCESS'],
];
const bankAnswer: HeaderFields = [
  ['ASPSP-Notification-Support', 'true'],
  ['ASPSP-Notification-Content', 'status=SCA'],
];

const created = (...headers: HeaderFields): PisResponse => ({
  status: 201,
  headers: [['Content-Type', 'application/json'], ...headers],
  body: Buffer.from('{"paymentId":"payment"}'),
  servedFrom: 'bank',
  environment: 'sandbox',
});

async function send(
  mode: BankNotificationMode,
  request: RoutedRequest,
  response: PisResponse = created(...bankAnswer),
  overrides: Partial<RequestBankNotificationsDependencies> = {},
) {
  const recorded: (readonly [string, PaymentOfTenant])[] = [];
  const stage = requestBankNotifications({
    modeOf: () => mode,
    createToken: (environmentId) => ({ text: `token-of-${environmentId}`, id: 'id' }),
    publicUrl: 'https://gateway.example',
    record: (id, payment) => void recorded.push([id, payment]),
    paymentKeyOf: (environmentId, paymentId) => `${environmentId} ${paymentId}`,
    ...overrides,
  });
  let forwarded: HeaderFields = [];
  const answer = await stage(request, async (passedOn) => {
    forwarded = passedOn.headers;
    return withMeaning(request.operation, response);
  });
  await Promise.resolve();
  return {
    forwarded: forwarded.filter(([name]) => /^tpp-notification/i.test(name)),
    answer,
    support: headerValue(answer.headers, 'aspsp-notification-support'),
    content: headerValue(answer.headers, 'aspsp-notification-content'),
    recorded,
  };
}

describe('the stage for the notifications of banks', () => {
  test('forward: passes the fields of the TPP to the bank, and the answer of the bank to the TPP', async () => {
    const request = requestOf(initiation, uri, preferred);
    const { forwarded, support, content, recorded } = await send('forward', request);
    assert.deepEqual([forwarded, support, content], [[uri, preferred], 'true', 'status=SCA']);
    assert.deepEqual(recorded, []);
  });

  test('off: removes the fields of the TPP, and answers false if it has asked for notifications', async () => {
    const asked = await send('off', requestOf(initiation, uri, preferred));
    assert.deepEqual([asked.forwarded, asked.support, asked.content], [[], 'false', undefined]);
    const other = await send('off', requestOf(initiation, preferred));
    assert.deepEqual([other.forwarded, other.support, other.content], [[], undefined, undefined]);
    assert.deepEqual([...asked.recorded, ...other.recorded], []);
  });

  for (const [what, line] of writes)
    test(`receive: adds a URI of the gateway to ${what}, whether or not the TPP has asked for notifications`, async () => {
      const asked = await send('receive', requestOf(line, uri, preferred));
      assert.deepEqual([asked.forwarded, asked.support, asked.content], [ours, 'false', undefined]);
      const other = await send('receive', requestOf(line));
      assert.deepEqual([other.forwarded, other.support, other.content], [ours, undefined, undefined]);
      for (const { recorded } of [asked, other])
        assert.deepEqual(recorded, [['id', { tenantId: 'tenant', paymentKey: 'sandbox payment' }]]);
    });

  test('changes neither the fields nor the answer if the signature of the TPP covers one of the fields', async () => {
    const signature: HeaderFields[number] = [
      'Signature',
      'keyId="SN=1,CA=2",algorithm="rsa-sha256",headers="digest tpp-notification-uri",signature="abc="',
    ];
    for (const mode of ['off', 'receive'] as const) {
      const sent = await send(mode, requestOf(initiation, uri, preferred, signature));
      assert.deepEqual(
        [sent.forwarded, sent.support, sent.content],
        [[uri, preferred], 'true', 'status=SCA'],
      );
      assert.deepEqual(sent.recorded, []);
    }
  });

  test('adds its fields, and keeps the signature, if the signature of the TPP covers neither', async () => {
    const signature: HeaderFields[number] = ['Signature', 'headers="digest x-request-id",signature="abc="'];
    const request = requestOf(initiation, signature);
    const { forwarded } = await send('receive', request);
    assert.deepEqual(forwarded, ours);
    assert.equal(headerValue(request.headers, 'signature'), signature[1]);
  });

  test('records no payment if the bank declines, refuses the request, or names no payment', async () => {
    const request = () => requestOf(initiation);
    for (const response of [
      created(['ASPSP-Notification-Support', 'False']),
      { ...created(), status: 400, body: Buffer.from('{}') },
      { ...created(), body: Buffer.from('{}') },
      { ...created(), servedFrom: 'ledger' as const },
    ])
      assert.deepEqual((await send('receive', request(), response)).recorded, []);
  });

  test('adds no fields while the secret or the identities are not known', async () => {
    const request = requestOf(initiation, uri);
    const noSecret = await send('receive', request, created(), { createToken: () => undefined });
    assert.deepEqual([noSecret.forwarded, noSecret.support, noSecret.recorded], [[], 'false', []]);
    const unidentified = { ...requestOf(initiation), identities: undefined };
    assert.deepEqual((await send('receive', unidentified)).forwarded, []);
  });
});
