import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  answeredEntry,
  claimedEntry,
  isInDoubt,
  isUnresolved,
  type LedgerEntry,
  parseEntry,
  serializeEntry,
  statusPathOf,
  storedResponse,
} from '../../../src/idempotency/ledger-entry.ts';
import { type Operation, prefixOf } from '../../../src/pis/operations.ts';
import { claimedFixture, sentFixture } from './entry-fixtures.ts';
import { bankResponse, useFakeTime } from './instance.ts';
import { authorisation, cancellation, initiation } from './requests.ts';

const claim = claimedEntry(cancellation(), { fingerprint: 'a-fingerprint', attempt: 'one', holder: 'me' });
const sending = { ...claim, step: 'sending', environment: 'sandbox', listenedUntil: 1 } as const;
const steps: readonly LedgerEntry[] = [
  claim,
  sending,
  { ...sending, step: 'in-doubt', why: 'nobody knows' },
  answeredEntry(sending, bankResponse(201, 'made')),
  answeredEntry(sending, bankResponse(500)),
  { ...sending, step: 'happened' },
  { ...sending, step: 'happened', paymentId: 'GJv0KO..Fg==_=_bS6p6XvTWI' },
];

describe('what is kept of an X-Request-ID', () => {
  for (const entry of steps)
    test(`is read back as it was written: ${entry.step}${'why' in entry ? ', and doubtful' : ''}`, () => {
      assert.deepEqual(parseEntry(serializeEntry(entry)), entry);
    });

  test('is read with names that a later gateway has added', () => {
    assert.deepEqual(parseEntry(JSON.stringify({ ...sending, added: 'later' })), sending);
  });

  for (const [what, text] of [
    ['of a later version', JSON.stringify({ ...sending, v: 2 })],
    ['of a step that nobody knows yet', JSON.stringify({ ...sending, step: 'reversed' })],
    ['of a step that lacks what belongs to it', JSON.stringify({ ...sending, environment: undefined })],
    ['broken off', serializeEntry(sending).slice(0, -1)],
    ['foreign', '{"a":"b"}'],
    ['no object', '"claimed"'],
    ['nothing but a number', '1'],
    [
      'an answer that is no base64',
      JSON.stringify({ ...answeredEntry(sending, bankResponse(201)), body: '?' }),
    ],
  ] as const)
    test(`cannot be read if it is ${what}`, () => {
      assert.equal(parseEntry(text), undefined);
    });

  test('carries neither credentials nor the body that was asked with', (t) => {
    useFakeTime(t);
    const headers = [['Authorization', 'Bearer secret']] as const;
    const asked = initiation({ body: 'from the payer', headers });
    const text = serializeEntry(claimedEntry(asked, { fingerprint: 'f', attempt: 'one', holder: 'me' }));
    assert.doesNotMatch(text, /secret|payer/);
  });
});

describe("the bank's answer", () => {
  test('comes again as it came: status, fields in their order, and every byte', () => {
    const headers = [
      ['Set-Cookie', 'one'],
      ['Set-Cookie', 'two'],
      ['ASPSP-SCA-Approach', 'REDIRECT'],
    ] as const;
    const body = Buffer.from([0, 255, 254, 10, 13]);
    const kept = parseEntry(serializeEntry(answeredEntry(sending, { ...bankResponse(201), headers, body })));
    assert.ok(kept?.step === 'answered');
    assert.deepEqual(storedResponse(kept), {
      status: 201,
      headers,
      body,
      servedFrom: 'ledger',
      environment: 'sandbox',
    });
  });

  test('tells what became of the request unless it is one of 5xx', () => {
    const isDoubt = (status: number) => isInDoubt(answeredEntry(sending, bankResponse(status)));
    assert.deepEqual([201, 302, 400, 499, 500, 599].map(isDoubt), [false, false, false, false, true, true]);
  });
});

test('what may still come to a doubt is open, and so is a doubt', () => {
  assert.deepEqual(steps.map(isUnresolved), [true, true, true, false, true, false, false]);
  assert.equal(isUnresolved(undefined), false);
});

describe('the status of a payment is read', () => {
  const of = ({ operation }: { readonly operation: Operation }, paymentId?: string) => {
    const { name, path, paymentService } = operation;
    const id = paymentId ?? operation.paymentId;
    return statusPathOf({
      ...sending,
      step: 'happened',
      operation: name,
      path,
      paymentService,
      paymentId: id,
    } as LedgerEntry); // an entry of the schema allows `undefined`
  };
  const below = (id: string) => `${prefixOf('berlingroup')}/payments/sepa-credit-transfers/${id}/status`;

  test('below the path where it was initiated, if its id is known', () => {
    assert.equal(of(initiation(), 'an-id'), below('an-id'));
    assert.equal(of(initiation()), undefined);
  });

  for (const id of ['a-payment', 'p', 'sepa', 'v1', 'a', 'payments', 'authorisations', 'x=='])
    test(`beside its cancellation and its authorisations, also if it is called ${id}`, () => {
      assert.equal(of(cancellation({ payment: id })), below(id));
      assert.equal(of(authorisation({ payment: id })), below(id));
    });
});

const transfers = claimedFixture.path;
describe('the status of a payment stands below it, whatever its id looks like', () => {
  for (const paymentId of ['1234-wertiq-983', 'v1', 'p', 'a', 'sepa-credit-transfers'])
    for (const [operation, path] of [
      ['initiatePayment', transfers],
      ['cancelPayment', `${transfers}/${paymentId}`],
      ['startAuthorisation', `${transfers}/${paymentId}/authorisations`],
    ] as const)
      test(`${paymentId}, after ${operation}`, () => {
        const happened: LedgerEntry = {
          ...claimedFixture,
          ...sentFixture,
          step: 'happened',
          operation,
          path,
          paymentId,
        };
        assert.equal(statusPathOf(happened), `${transfers}/${paymentId}/status`);
      });
});
