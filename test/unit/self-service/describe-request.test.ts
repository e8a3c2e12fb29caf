import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { describeRequest } from '../../../src/self-service/describe-request.ts';
import { lookUpReport } from '../../../src/self-service/look-up-report.ts';
import type { StoredRequest } from '../../../src/telemetry/request-search.ts';

/** A payment that the bank accepted. */
const accepted: StoredRequest = {
  at: '2026-01-31T12:00:00.000Z',
  xRequestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  operation: 'initiatePayment',
  client: 'shop',
  tenant: 'merchants',
  environment: 'sandbox',
  product: 'payments/sepa-credit-transfers',
  paymentId: 'payment-1',
  status: 201,
  outcome: 'succeeded',
  servedFrom: 'bank',
  durationMs: 12.5,
  steps: [
    { afterMs: 0.1, what: 'ledger', verdict: 'claimed', waitedMs: 0.1 },
    { afterMs: 0.2, what: 'permit', waitedMs: 0.1 },
    { afterMs: 12, what: 'call', attempt: 1, connection: 'new', totalMs: 11, status: 201 },
    { afterMs: 12.4, what: 'recorded', as: 'answered' },
  ],
  instance: 'gateway-1-1f0c8a2b93d4',
};

/** A request that the gateway failed, after these steps. */
function failed(status: number, error: string, steps: StoredRequest['steps'] = []): StoredRequest {
  const { servedFrom, ...rest } = accepted;
  return { ...rest, status, error, why: 'Why it failed.', steps };
}

const call = (more: object) => [{ afterMs: 1, what: 'call', attempt: 1, connection: 'new', ...more }];

const context = { paymentId: 'payment-1', errorPageUrl: 'https://tpp.example/errors.html' };
const describeOne = (request: StoredRequest) => describeRequest(request, context);

describe('the description of a request for its TPP', () => {
  test('of a success states its result, and nothing of the inside of the gateway', () => {
    assert.deepEqual(describeOne(accepted), {
      at: '2026-01-31T12:00:00.000Z',
      operation: 'initiatePayment',
      environment: 'sandbox',
      paymentId: 'payment-1',
      status: 201,
      bankError: null,
      error: null,
      explanation: null,
      help: null,
      seenByBank: 'yes',
      servedFrom: 'bank',
      durationMs: 12.5,
    });
  });

  test('of an error has its code, its text with what to do, and the link to the error reference', () => {
    const { error, explanation, help, servedFrom } = describeOne(failed(504, 'OUTCOME_UNKNOWN'));
    assert.equal(error, 'OUTCOME_UNKNOWN');
    assert.match(explanation ?? '', /^Why it failed\. The bank may have executed .* do not initiate again/);
    assert.equal(help, 'https://tpp.example/errors.html#outcome_unknown');
    assert.equal(servedFrom, 'gateway');
    assert.equal(describeRequest(failed(503, 'CIRCUIT_OPEN'), { ...context, errorPageUrl: null }).help, null);
  });

  test('of an error of a later release keeps its code and text', () => {
    const { error, explanation, seenByBank } = describeOne(failed(503, 'OF_A_LATER_RELEASE'));
    assert.deepEqual([error, explanation, seenByBank], ['OF_A_LATER_RELEASE', 'Why it failed.', 'no']);
  });

  test('of an error of the bank says that its response has the reason, and warns after a 5xx to a payment', () => {
    const bankError = (status: number, operation = 'initiatePayment') =>
      describeOne({ ...accepted, status, operation, steps: call({ status }) }).explanation ?? '';
    assert.equal(bankError(400), 'The bank answered 400; the reason is in its response.');
    assert.match(bankError(502), /^The bank answered 502; .* do not initiate again/);
    assert.equal(bankError(502, 'getPayment'), 'The bank answered 502; the reason is in its response.');
  });

  test('of an answer that leaves the outcome in doubt says so, with the reason, and warns', () => {
    const { explanation } = describeOne({
      ...accepted,
      steps: [
        ...call({ status: 201 }),
        { afterMs: 2, what: 'unreadable', why: 'charset x-foo' },
        { afterMs: 3, what: 'recorded', as: 'in-doubt' },
      ],
    });
    assert.match(
      explanation ?? '',
      /^The bank answered 201, which leaves open .* \(charset x-foo\)\. .* do not initiate again/,
    );
  });

  test('of a status that the gateway cannot read says why', () => {
    const steps = [...call({ status: 200 }), { afterMs: 2, what: 'unreadable', why: 'charset x-foo' }];
    const { explanation } = describeOne({ ...accepted, operation: 'getPaymentStatus', status: 200, steps });
    assert.equal(explanation, "The gateway cannot read the bank's response (charset x-foo).");
  });

  test('of a late response of the bank says how to get it', () => {
    const late = failed(504, 'OUTCOME_UNKNOWN', [{ afterMs: 9, what: 'late-answer', status: 201 }]);
    const { explanation, seenByBank } = describeOne(late);
    assert.match(
      explanation ?? '',
      /The bank answered later, with 201: repeat the request with the same X-Request-ID/,
    );
    assert.equal(seenByBank, 'yes');
  });

  test('names the payment for initiations only', () => {
    assert.equal(describeOne({ ...accepted, operation: 'cancelPayment' }).paymentId, null);
    assert.equal(describeOne({ ...accepted, operation: null }).paymentId, null);
  });

  for (const [what, request, expected] of [
    ['a response of the bank', accepted, 'yes'],
    ['a replay', { ...accepted, servedFrom: 'ledger', steps: [] }, 'no'],
    ['a cached status', { ...accepted, servedFrom: 'cache', steps: [] }, 'no'],
    [
      'a stale status after an error of the bank',
      { ...accepted, servedFrom: 'stale-cache', steps: call({ status: 500 }) },
      'yes',
    ],
    [
      'a stale status after a timeout',
      { ...accepted, servedFrom: 'stale-cache', steps: call({ error: 'OUTCOME_UNKNOWN' }) },
      'maybe',
    ],
    ['a refusal', failed(429, 'QUOTA_EXCEEDED'), 'no'],
    [
      'a connection that failed',
      failed(502, 'UPSTREAM_UNREACHED', call({ error: 'UPSTREAM_UNREACHED' })),
      'no',
    ],
    ['a deadline while the call runs', failed(504, 'OUTCOME_UNKNOWN'), 'maybe'],
    ['a bug before the operation was known', { ...failed(500, 'INTERNAL'), operation: null }, 'no'],
    ['a repeat of a payment in doubt', failed(409, 'DUPLICATE_IN_DOUBT'), 'maybe'],
  ] as const)
    test(`states whether the bank can have received it: ${what}`, () => {
      assert.equal(describeOne(request).seenByBank, expected);
    });

  test('has the form of the schema', () => {
    const report = {
      xRequestId: accepted.xRequestId,
      initiation: null,
      requests: [describeOne(accepted), describeOne(failed(503, 'CIRCUIT_OPEN'))],
      complete: true,
      missing: [],
    };
    assert.deepEqual(lookUpReport.parse(report), report);
  });
});
