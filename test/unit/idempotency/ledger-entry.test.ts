import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  answeredEntry,
  claimedEntry,
  isInDoubt,
  isUnresolved,
  type LedgerEntry,
  parseEntry,
  type SendingEntry,
  sendingEntry,
  serialized,
  statusPathOf,
  storedResponse,
} from '../../../src/idempotency/ledger-entry.ts';
import { type Operation, prefixOf } from '../../../src/pis/operations.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { bankResponse, useFakeTime } from './instance.ts';
import { authorisation, cancellation, identityOf, initiation } from './requests.ts';

const claim = claimedEntry(cancellation(), identityOf(cancellation()).fingerprints, {
  attempt: 'one',
  holder: 'me',
});
const sending = { ...claim, step: 'sending', environment: 'sandbox', listenedUntil: 1 } as const;
const answered = (response: PisResponse) => answeredEntry(serialized<SendingEntry>(sending), response);
const steps: readonly LedgerEntry[] = [
  claim,
  sending,
  { ...sending, step: 'in-doubt', why: 'nobody knows' },
  answered(bankResponse(201, 'made')).entry,
  answered({ ...bankResponse(201, 'made'), publicUrl: 'https://gateway.example' }).entry,
  answered(bankResponse(500)).entry,
  { ...sending, step: 'happened' },
  { ...sending, step: 'happened', paymentId: 'GJv0KO..Fg==_=_bS6p6XvTWI' },
];

describe('a ledger entry', () => {
  for (const entry of steps)
    test(`is parsed to the same value: ${entry.step}${'why' in entry ? ', in doubt' : ''}`, () => {
      assert.deepEqual(parseEntry(serialized(entry).raw), entry);
    });

  test('has the same text whether its steps are serialized as a whole or follow one another', () => {
    const claimed = serialized(claim);
    const sent = sendingEntry(claimed, 'sand"box', 1);
    const responses = [bankResponse(201, 'made'), bankResponse(500)];
    const all = [sent, ...responses.map((response) => answeredEntry(sent, response))];
    assert.deepEqual(
      all.map(({ raw }) => raw),
      all.map(({ entry }) => JSON.stringify(entry)),
    );
  });

  test('is parsed without fields that a later gateway has added', () => {
    assert.deepEqual(parseEntry(JSON.stringify({ ...sending, added: 'later' })), sending);
  });

  for (const [what, text] of [
    ['has a later version', JSON.stringify({ ...sending, v: 2 })],
    ['has an unknown step', JSON.stringify({ ...sending, step: 'reversed' })],
    ['lacks a field of its step', JSON.stringify({ ...sending, environment: undefined })],
    ['is truncated', serialized(sending).raw.slice(0, -1)],
    ['is foreign JSON', '{"a":"b"}'],
    ['is a string', '"claimed"'],
    ['is a number', '1'],
    ['has a body that is not base64', JSON.stringify({ ...answered(bankResponse(201)).entry, body: '?' })],
  ] as const)
    test(`cannot be parsed if it ${what}`, () => {
      assert.equal(parseEntry(text), undefined);
    });

  test('contains neither credentials nor the request body', (t) => {
    useFakeTime(t);
    const headers = [['Authorization', 'Bearer secret']] as const;
    const request = initiation({ body: 'from the payer', headers });
    const text = serialized(
      claimedEntry(request, identityOf(request).fingerprints, { attempt: 'one', holder: 'me' }),
    ).raw;
    assert.doesNotMatch(text, /secret|payer/);
  });
});

describe('a stored response', () => {
  test('has the same status, header order and body bytes as the original', () => {
    const headers = [
      ['Set-Cookie', 'one'],
      ['Set-Cookie', 'two'],
      ['ASPSP-SCA-Approach', 'REDIRECT'],
    ] as const;
    const body = Buffer.from([0, 255, 254, 10, 13]);
    const entry = parseEntry(answered({ ...bankResponse(201), headers, body }).raw);
    assert.ok(entry?.step === 'answered');
    assert.deepEqual(storedResponse(entry), {
      status: 201,
      headers,
      body,
      servedFrom: 'ledger',
      environment: 'sandbox',
    });
  });

  test('is in doubt if its status is 5xx', () => {
    const inDoubt = (status: number) => isInDoubt(answered(bankResponse(status)).entry);
    assert.deepEqual([201, 204, 400, 499, 500, 599].map(inDoubt), [false, false, false, false, true, true]);
  });
});

test('an entry is unresolved while it is claimed, sending or in doubt', () => {
  assert.deepEqual(steps.map(isUnresolved), [true, true, true, false, false, true, false, false]);
  assert.equal(isUnresolved(undefined), false);
});

describe('the status path of a payment', () => {
  const pathFor = ({ operation }: { readonly operation: Operation }, paymentId?: string) => {
    const { name, path, paymentService } = operation;
    const id = paymentId ?? operation.paymentId;
    return statusPathOf({
      ...sending,
      step: 'happened',
      operation: name,
      path,
      paymentService,
      paymentId: id,
    } as LedgerEntry); // the schema allows `undefined`
  };
  const expected = (id: string) => `${prefixOf('berlingroup')}/payments/sepa-credit-transfers/${id}/status`;

  test('is below the path of its initiation, if the payment id is known', () => {
    assert.equal(pathFor(initiation(), 'an-id'), expected('an-id'));
    assert.equal(pathFor(initiation()), undefined);
  });

  for (const id of ['a-payment', 'p', 'sepa', 'v1', 'a', 'payments', 'my-authorisations', 'x=='])
    test(`is derived from the path of a cancellation or authorisation of the payment ${id}`, () => {
      assert.equal(pathFor(cancellation({ payment: id })), expected(id));
      assert.equal(pathFor(authorisation({ payment: id })), expected(id));
    });
});
