import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { explain } from '../../../src/commands/explain.ts';
import { explanationOf } from '../../../src/telemetry/explain-request.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const report = {
  at: '2026-01-31T12:00:00.000Z',
  xRequestId: 'an-id',
  operation: 'initiatePayment',
  client: 'shop',
  tenant: 'merchants',
  environment: 'sandbox',
  product: 'payments/sepa-credit-transfers',
  paymentId: 'payment-1',
  status: 503,
  error: 'CIRCUIT_OPEN',
  why: 'The circuit is open.',
  durationMs: 3.4,
  instance: 'gateway-1',
  steps: [
    { afterMs: 0.2, what: 'ledger', verdict: 'claimed', waitedMs: 0.1 },
    { afterMs: 3.1, what: 'circuit-refused-for-tenant', state: 'open' },
  ],
};

describe('penstock explain', () => {
  test('prints each step of a request, and why it was refused', async () => {
    const { call, calls } = fakeAdminClient(200, [report]);
    assert.deepEqual(await explain(call, 'an-id'), {
      lines: [
        '2026-01-31T12:00:00.000Z  initiatePayment by shop of merchants in sandbox on gateway-1',
        '  payments/sepa-credit-transfers payment-1',
        '       0.2 ms  ledger                     verdict=claimed waitedMs=0.1',
        '       3.1 ms  circuit-refused-for-tenant state=open',
        '  answered 503 CIRCUIT_OPEN, after 3.4 ms',
        '  The circuit is open.',
      ],
      data: [report],
      exitCode: 0,
    });
    assert.deepEqual(calls, [['GET', '/decisions/an-id']]);
  });

  test('explains an answer of the bank that leaves the outcome open as the look-up of the TPP does', async () => {
    const { error: _, why: __, ...answered } = report;
    const steps = [
      { afterMs: 1, what: 'unreadable', why: 'a web page' },
      { afterMs: 2, what: 'recorded', as: 'in-doubt' },
    ];
    const { call } = fakeAdminClient(200, [{ ...answered, status: 200, servedFrom: 'bank', steps }]);
    const [answer, explanation] = (await explain(call, 'an-id')).lines.slice(-2);
    assert.equal(answer, '  answered 200, served from bank, after 3.4 ms');
    assert.equal(explanation, `  ${explanationOf({ ...answered, status: 200, steps })}`);
    assert.match(explanation, /leaves open what it has done.*\(a web page\).*do not initiate again/);
  });

  test('does not promise the response of a bank whose late answer leaves the outcome open', () => {
    const late = (as: string) =>
      explanationOf({
        ...report,
        error: 'OUTCOME_UNKNOWN',
        why: 'The bank did not respond.',
        steps: [
          { afterMs: 1, what: 'recorded', as: 'in-doubt' },
          { afterMs: 2, what: 'recorded', as },
          { afterMs: 3, what: 'late-answer', status: 302 },
        ],
      });
    assert.match(
      late('in-doubt') ?? '',
      /answered later, with 302, which leaves open .* do not initiate again/,
    );
    assert.match(late('answered') ?? '', /answered later, with 302: repeat the request/);
  });

  test('prints the advice that the TPP gets in the body of the error', async () => {
    const failed = { ...report, status: 504, error: 'OUTCOME_UNKNOWN', why: 'The bank did not respond.' };
    const { call } = fakeAdminClient(200, [failed]);
    assert.match(
      (await explain(call, 'an-id')).lines.at(-1) ?? '',
      /^ {2}The bank did not respond\. The bank may have executed the request: do not initiate again;/,
    );
  });

  test('prints no explanation of a success', async () => {
    const { error: _, why: __, ...answered } = report;
    const { call } = fakeAdminClient(200, [{ ...answered, status: 201, steps: [] }]);
    assert.equal((await explain(call, 'an-id')).lines.at(-1), '  answered 201, after 3.4 ms');
  });

  test('prints what is known of a request that was refused before its operation was known', async () => {
    const unknown = { operation: null, client: null, tenant: null, environment: null };
    const { call } = fakeAdminClient(200, [{ ...report, ...unknown, status: 404, steps: [] }]);
    const { lines } = await explain(call, 'an-id');
    assert.equal(lines[0], '2026-01-31T12:00:00.000Z  refused before its operation was known on gateway-1');
  });

  test('fails with the error of the gateway for an unknown id, and escapes the id in the path', async () => {
    const { call, calls } = fakeAdminClient(404, {
      error: 'There is no record of this X-Request-ID.',
    });
    const message = 'There is no record of this X-Request-ID.';
    await assert.rejects(explain(call, '../audit'), { message, exitCode: 1 });
    assert.deepEqual(calls, [['GET', '/decisions/..%2Faudit']]);
  });
});
