import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { explain } from '../../../src/commands/explain.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const account = {
  at: '2026-01-31T12:00:00.000Z',
  xRequestId: 'an-id',
  operation: 'initiatePayment',
  client: 'shop',
  tenant: 'merchants',
  environment: 'sandbox',
  status: 503,
  error: 'CIRCUIT_OPEN',
  why: 'The bank is left alone.',
  durationMs: 3.4,
  steps: [
    { afterMs: 0.2, what: 'ledger', verdict: 'claimed', waitedMs: 0.1 },
    { afterMs: 3.1, what: 'circuit-refused', state: 'open' },
  ],
};

describe('penstock explain', () => {
  test('tells a request step by step, and why it was refused', async () => {
    const { call, asked } = fakeAdminClient(200, [account]);
    assert.deepEqual(await explain(call, 'an-id'), {
      lines: [
        '2026-01-31T12:00:00.000Z  initiatePayment by shop of merchants in sandbox',
        '       0.2 ms  ledger          verdict=claimed waitedMs=0.1',
        '       3.1 ms  circuit-refused state=open',
        '  answered 503 CIRCUIT_OPEN, after 3.4 ms',
        '  The bank is left alone.',
      ],
      exitCode: 0,
    });
    assert.deepEqual(asked, [['GET', '/decisions/an-id']]);
  });

  test('tells of a refusal at the door what is known of it', async () => {
    const unknown = { operation: null, client: null, tenant: null, environment: null };
    const { call } = fakeAdminClient(200, [{ ...account, ...unknown, status: 404, steps: [] }]);
    const { lines } = await explain(call, 'an-id');
    assert.equal(lines[0], '2026-01-31T12:00:00.000Z  refused before its operation was known');
  });

  test("fails with the gateway's own sentence if it remembers none, whatever is asked for", async () => {
    const { call, asked } = fakeAdminClient(404, { error: 'This instance remembers no request.' });
    const printed = { lines: ['This instance remembers no request.'], exitCode: 1 };
    assert.deepEqual(await explain(call, '../audit'), printed);
    assert.deepEqual(asked, [['GET', '/decisions/..%2Faudit']]);
  });
});
