import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { notifications } from '../../../src/commands/notifications.ts';
import { fakeAdminApi, fakeAdminClient } from './fake-admin-client.ts';

const subscription = {
  id: 'sub-1',
  state: 'active',
  tenant: 'merchants',
  environment: 'production',
  client: 'shop',
  paymentId: 'p-1',
  url: 'https://tpp.example/psd2',
  content: 'PROCESS',
  since: '2026-11-22T03:00:00.000Z',
  until: '2026-12-22T03:00:00.000Z',
  transactionStatus: 'ACTC',
  failedReads: 0,
  readError: null,
  message: null,
};
const message = {
  webhookId: '0b6a1d0a-6c0c-4f0e-9b4e-0d1f0e0e8a11',
  sequence: 2,
  transactionStatus: 'ACCC',
  final: true,
  scaStatus: 'finalised',
  since: '2026-11-22T04:00:00.000Z',
  failedAttempts: 17,
  why: 'the endpoint fails (5xx)',
  deadSince: '2026-11-25T04:00:00.000Z',
};
const dead = { ...subscription, id: 'sub-2', state: 'dead', message };
const reason = 'the endpoint works again';

describe('penstock notifications', () => {
  test('lists subscriptions, each with its message', async () => {
    const { call, calls } = fakeAdminClient(200, [subscription, dead]);
    const { lines, data, exitCode } = await notifications(call, {});
    assert.deepEqual(lines, [
      'sub-1  active',
      '  payment p-1 of merchants in production, ACTC',
      '  PROCESS for shop to https://tpp.example/psd2, since 2026-11-22T03:00:00.000Z, until 2026-12-22T03:00:00.000Z',
      'sub-2  dead',
      '  payment p-1 of merchants in production, ACTC',
      '  PROCESS for shop to https://tpp.example/psd2, since 2026-11-22T03:00:00.000Z, until 2026-12-22T03:00:00.000Z',
      '  message 2, ACCC (final), SCA finalised, webhook-id 0b6a1d0a-6c0c-4f0e-9b4e-0d1f0e0e8a11, since 2026-11-22T04:00:00.000Z, 17 failed attempts, given up at 2026-11-25T04:00:00.000Z: the endpoint fails (5xx)',
    ]);
    assert.deepEqual([data, exitCode], [[subscription, dead], 0]);
    assert.deepEqual(calls, [['GET', '/notifications']]);
  });

  test('selects by state, tenant and payment, and reports that nothing matches', async () => {
    const { call, calls } = fakeAdminClient(200, []);
    const filter = { state: 'dead', tenant: 'merchants', payment: 'p-1' };
    assert.deepEqual((await notifications(call, filter)).lines, ['No subscription matches.']);
    assert.deepEqual((await notifications(call, {})).lines, ['There is no subscription.']);
    assert.deepEqual(calls[0], ['GET', '/notifications?tenant=merchants&payment=p-1&state=dead']);
  });

  test('says why a subscription fails, and that a long list is not complete', async () => {
    const unread = { failedReads: 4, readError: 'the bank answered 400', transactionStatus: null };
    const failing = { ...subscription, state: 'failing', ...unread };
    const all = Array.from({ length: 200 }, () => failing);
    const { lines } = await notifications(fakeAdminClient(200, all).call, {});
    assert.match(lines[1] ?? '', /status not yet read$/);
    assert.match(lines[3] ?? '', /last 4 reads of the status have failed: the bank answered 400\./);
    assert.match(lines.at(-1) ?? '', /^At most 200 .* penstock_subscriptions counts all/);
  });

  test('shows one, sends its message again, and ends it', async () => {
    const { call, calls } = fakeAdminApi({ 'GET /notifications/sub-2': dead });
    assert.deepEqual((await notifications(call, {}, 'sub-2')).data, dead);
    assert.match((await notifications(call, { reason }, 'sub-2', 'resend')).lines[0] ?? '', /is due now/);
    assert.match((await notifications(call, { reason }, 'sub-2', 'end')).lines[0] ?? '', /^Ended:/);
    assert.deepEqual(calls.slice(1), [
      ['POST', '/notifications/sub-2', { action: 'resend', reason }],
      ['POST', '/notifications/sub-2', { action: 'end', reason }],
    ]);
  });

  test('sends all dead letters again, or those of a tenant', async () => {
    const { call, calls } = fakeAdminClient(200, { resent: 3 });
    assert.deepEqual(await notifications(call, { reason, tenant: 'merchants' }, 'all', 'resend'), {
      lines: ['Dead letters that are due now: 3.'],
      data: { resent: 3 },
      exitCode: 0,
    });
    await notifications(call, { reason }, 'all', 'resend');
    assert.deepEqual(calls, [
      ['POST', '/notifications', { action: 'resend', tenant: 'merchants', reason }],
      ['POST', '/notifications', { action: 'resend', reason }],
    ]);
  });

  test('fails with the error of the gateway, and for arguments that contradict each other', async () => {
    const refused = fakeAdminClient(404, { error: 'No subscription has this id.' });
    await assert.rejects(notifications(refused.call, {}, 'unknown'), { exitCode: 1 });
    const { call, calls } = fakeAdminClient(200, []);
    for (const wrong of [
      () => notifications(call, {}, 'sub-2', 'resend'),
      () => notifications(call, { state: 'dead' }, 'sub-2'),
      () => notifications(call, { tenant: 'merchants' }, 'sub-2'),
      () => notifications(call, { reason }, 'all', 'end'),
      () => notifications(call, { reason }, 'all'),
      () => notifications(call, {}, 'all', 'resend'),
    ])
      await assert.rejects(async () => wrong(), { exitCode: 64 });
    assert.deepEqual(calls, []);
  });
});
