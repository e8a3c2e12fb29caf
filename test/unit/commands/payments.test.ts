import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { listPayments, showPayment } from '../../../src/commands/payments.ts';
import { fakeAdminApi, fakeAdminClient } from './fake-admin-client.ts';

const payment = {
  ...{ environment: 'sandbox', paymentId: 'a/b', tenant: 'shop', product: 'payments/sepa-credit-transfers' },
  ...{ createdAt: '2026-11-22T03:00:00.000Z', status: 'ACSC', outcome: 'executed' },
  statusSince: '2026-11-22T03:00:05.000Z',
};
const line =
  '2026-11-22T03:00:00.000Z  executed ACSC  payments/sepa-credit-transfers of shop in sandbox  a/b';
const entry = {
  ...{ at: '2026-11-22T03:00:01.000Z', what: 'cancellation', operation: 'cancelPayment', xRequestId: 'id' },
  ...{ status: '405', outcome: 'refused-by-bank', error: null, bankError: 'SERVICE_INVALID', text: null },
  who: 'checkout',
};
const open = {
  ...entry,
  what: 'in-doubt',
  status: null,
  outcome: null,
  bankError: null,
  text: 'no answer',
  who: null,
};

describe('penstock payments', () => {
  test('lists the payments that match, and says how to continue', async () => {
    const body = { payments: [payment], cursor: 'next', initiationsInDoubt: 2 };
    const { call, calls } = fakeAdminClient(200, body);
    const { lines, data } = await listPayments(call, { tenant: 'shop', outcome: 'executed', cursor: 'this' });
    assert.deepEqual(lines, [
      line,
      'There may be more: --cursor next',
      'Initiations in doubt, whose payments have no id yet: 2. See: penstock in-doubt --operation initiatePayment',
    ]);
    assert.deepEqual(data, body);
    assert.deepEqual(calls, [['GET', '/payments?tenant=shop&outcome=executed&cursor=this']]);
  });

  test('says that none was found', async () => {
    const { call } = fakeAdminClient(200, { payments: [], cursor: null, initiationsInDoubt: 0 });
    assert.deepEqual((await listPayments(call, {})).lines, ['No payment was found.']);
  });
});

describe('penstock payment', () => {
  test('shows the history of the payment in the named environment', async () => {
    const { call, calls } = fakeAdminClient(200, { payment, history: [entry, open], complete: false });
    assert.deepEqual((await showPayment(call, 'a/b', { environment: 'sandbox' })).lines, [
      line,
      '  2026-11-22T03:00:01.000Z  cancellation: refused-by-bank 405 SERVICE_INVALID  by checkout  X-Request-ID id',
      '  2026-11-22T03:00:01.000Z  in-doubt: cancelPayment  no answer  X-Request-ID id',
      '  Requests or statuses may be missing: records are kept for requests.keepFor, and 200 of each are shown; penstock search --payment lists more requests.',
    ]);
    assert.deepEqual(calls, [['GET', '/payments/sandbox/a%2Fb']]);
  });

  test('looks for it in each configured environment, and fails if none has it', async () => {
    const environments = [{ name: 'sandbox' }, { name: 'production' }];
    const { call, calls } = fakeAdminApi({ 'GET /environments': { environments } });
    const notIn =
      (absent: readonly string[]) =>
      async (...words: Parameters<typeof call>) => {
        const response = await call(...words);
        const [, path] = words;
        if (path === '/environments') return response;
        const isAbsent = absent.some((name) => path.startsWith(`/payments/${name}/`));
        return isAbsent
          ? { ok: false, status: 404, body: { error: 'none' } }
          : { ok: true, status: 200, body: { payment, history: [], complete: true } };
      };
    assert.deepEqual((await showPayment(notIn(['production']), 'a/b', {})).lines, [line]);
    assert.equal((await showPayment(notIn([]), 'a/b', {})).lines.length, 2);
    assert.equal(calls.length, 6);
    await assert.rejects(showPayment(notIn(['sandbox', 'production']), 'a/b', {}), /No payment with this id/);
  });
});
