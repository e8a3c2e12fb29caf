import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inDoubt } from '../../../src/commands/in-doubt.ts';
import { fakeAdminApi, fakeAdminClient } from './fake-admin-client.ts';

const filter = { environment: 'production', tenant: 'shop', why: '504' };
const request = {
  id: 'attempt.id',
  xRequestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  operation: 'initiatePayment',
  paymentId: null,
  ...filter,
  since: '2026-11-22T03:00:00.000Z',
  lateAnswerUntil: '2026-11-22T03:02:35.000Z',
  bankAnswered: false,
  severity: 'critical',
};
const other = { ...request, id: 'other.id', xRequestId: '0c7a4c5c-0c4b-4a6e-9d3a-0d6a2f1b7c11' };
const reason = 'the bank, ticket 4711';

describe('penstock in-doubt', () => {
  test('lists all requests in doubt', async () => {
    const { call, calls } = fakeAdminClient(200, [request]);
    assert.deepEqual(await inDoubt(call, {}), {
      lines: [
        'attempt.id',
        '  initiatePayment of shop in production, X-Request-ID 99391c7e-ad88-49ec-a2ad-99ddcb1f7721, 2026-11-22T03:00:00.000Z',
        '  504',
      ],
      data: [request],
      exitCode: 0,
    });
    assert.deepEqual(calls, [['GET', '/in-doubt']]);
  });

  test('lists the requests that match a filter without an environment', async () => {
    const { call, calls } = fakeAdminClient(200, []);
    const options = { tenant: 'shop', operation: 'cancelPayment', olderThan: '10min' };
    assert.deepEqual((await inDoubt(call, options)).lines, ['No request in doubt matches.']);
    assert.deepEqual(calls, [['GET', '/in-doubt?tenant=shop&operation=cancelPayment&olderThan=10min']]);
  });

  test('says until when the response of the bank may still arrive', async () => {
    const lateAnswerUntil = new Date(Date.now() + 3_600_000).toISOString();
    const { call } = fakeAdminClient(200, [{ ...request, lateAnswerUntil }]);
    assert.match(
      (await inDoubt(call, {})).lines[3] ?? '',
      new RegExp(`may still arrive until ${lateAnswerUntil}`),
    );
    const answered = fakeAdminClient(200, [{ ...request, lateAnswerUntil, bankAnswered: true }]);
    assert.equal((await inDoubt(answered.call, {})).lines.length, 3);
  });

  test('names the command that explains a request', async () => {
    const { call } = fakeAdminClient(200, [request]);
    const { lines } = await inDoubt(call, {}, request.id);
    assert.equal(lines.at(-1), `See also: penstock explain ${request.xRequestId}`);
  });

  test('prints the requests that match as CSV', async () => {
    const { call, calls } = fakeAdminClient(200, [request]);
    const { lines, data } = await inDoubt(call, { ...filter, csv: true });
    assert.deepEqual(lines, [
      '"since","xRequestId","operation","paymentId","environment","tenant","why","lateAnswerUntil","id","severity"',
      `"${request.since}","${request.xRequestId}","initiatePayment","","production","shop","504","${request.lateAnswerUntil}","attempt.id","critical"`,
    ]);
    assert.deepEqual(data, [request]);
    assert.deepEqual(calls, [['GET', '/in-doubt?environment=production&tenant=shop&why=504']]);
  });

  test('shows the request with this id or X-Request-ID, and fails if there is none', async () => {
    const { call } = fakeAdminClient(200, [other, request]);
    for (const given of [request.id, request.xRequestId, request.xRequestId.toUpperCase()])
      assert.deepEqual((await inDoubt(call, {}, given)).data, [request], given);
    await assert.rejects(inDoubt(call, {}, 'unknown'), { exitCode: 1 });
  });

  test('resolves the request with this X-Request-ID by its id', async () => {
    const { call, calls } = fakeAdminApi({
      'GET /in-doubt': [other, request],
      'POST /in-doubt/attempt.id': { id: request.id, outcome: 'happened' },
    });
    const options = { reason, payment: 'p-1', confirm: 'production' };
    const { lines } = await inDoubt(call, options, request.xRequestId, 'happened');
    assert.deepEqual(lines, ['Resolved: happened. A repeat gets 409 with the paymentId.']);
    const body = { outcome: 'happened', reason, paymentId: 'p-1', confirm: 'production' };
    assert.deepEqual(calls.at(-1), ['POST', '/in-doubt/attempt.id', body]);
  });

  test('says that a repeat gets no paymentId if nobody knows it', async () => {
    const { call } = fakeAdminApi({
      'GET /in-doubt': [request, { ...other, paymentId: 'p-1' }],
      'POST /in-doubt/attempt.id': { id: request.id, outcome: 'happened' },
      'POST /in-doubt/other.id': { id: other.id, outcome: 'happened' },
    });
    const unknown = await inDoubt(call, { reason }, request.id, 'happened');
    assert.match(unknown.lines.join(), /A repeat gets 409 without a paymentId/);
    const known = await inDoubt(call, { reason }, other.id, 'happened');
    assert.match(known.lines.join(), /A repeat gets 409 with the paymentId/);
  });

  test('resolves none of several requests with one X-Request-ID, and lists them', async () => {
    const { call, calls } = fakeAdminClient(200, [request, { ...request, id: 'of-another-tenant' }]);
    await assert.rejects(inDoubt(call, { reason }, request.xRequestId, 'happened'), ({ exitCode, lines }) => {
      assert.deepEqual([exitCode, lines[0], lines[3]], [1, 'attempt.id', 'of-another-tenant']);
      return true;
    });
    assert.deepEqual(calls, [['GET', '/in-doubt']]);
  });

  test('refuses an outcome without a reason, and to resolve several without an environment and a selection', async () => {
    const { call, calls } = fakeAdminClient(200, []);
    for (const wrong of [
      () => inDoubt(call, {}, request.id, 'happened'),
      () => inDoubt(call, filter, request.id),
      () => inDoubt(call, filter, 'all'),
      () => inDoubt(call, { ...filter, reason }, 'all', 'happened'),
      () => inDoubt(call, { selection: 'abc', reason }, 'all', 'happened'),
    ])
      await assert.rejects(async () => wrong(), { exitCode: 64 });
    assert.deepEqual(calls, []);
  });
});

describe('penstock in-doubt with a filter', () => {
  test('lists the requests that match, and the selection that resolves exactly these', async () => {
    const { call, calls } = fakeAdminClient(200, { selection: 'abc', requests: [request] });
    const { lines, exitCode } = await inDoubt(call, { ...filter, why: "the bank's 504" });
    assert.equal(exitCode, 0);
    assert.equal(lines[0], 'attempt.id');
    assert.equal(
      lines.at(-1),
      "To resolve all 1: penstock in-doubt all OUTCOME --environment production --tenant shop --why 'the bank'\\''s 504' --selection abc --reason TEXT",
    );
    assert.deepEqual(calls, [
      ['GET', '/in-doubt/preview?environment=production&tenant=shop&why=the+bank%27s+504'],
    ]);
  });

  test('reports that nothing matches', async () => {
    const { call } = fakeAdminClient(200, { selection: 'abc', requests: [] });
    assert.deepEqual((await inDoubt(call, filter)).lines, ['No request in doubt matches.']);
  });
});

describe('penstock in-doubt all', () => {
  const options = { ...filter, selection: 'abc', reason: 'ticket', confirm: 'production' };

  test('sends the filter, the selection and the confirmation, and reports how many are resolved', async () => {
    const { call, calls } = fakeAdminClient(200, { resolved: 3, early: 0, gone: 1 });
    assert.deepEqual(await inDoubt(call, options, 'all', 'happened'), {
      lines: ['Resolved: 3. Resolved by others since the list: 1.'],
      data: { resolved: 3, early: 0, gone: 1 },
      exitCode: 0,
    });
    assert.deepEqual(calls, [['POST', '/in-doubt', { ...options, outcome: 'happened' }]]);
  });

  test('fails if requests stay in doubt, or if the gateway refuses', async () => {
    const early = fakeAdminClient(200, { resolved: 3, early: 2, gone: 0 });
    const { lines, exitCode } = await inDoubt(early.call, options, 'all', 'happened');
    assert.equal(exitCode, 1);
    assert.match(lines[1] ?? '', /^Still in doubt: 2/);
    const refused = fakeAdminClient(409, { error: 'Nothing is resolved.' });
    await assert.rejects(inDoubt(refused.call, options, 'all', 'happened'), { exitCode: 1 });
  });
});
