import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { previewInDoubt, resolveSeveralInDoubt } from '../../../src/commands/in-doubt.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const filter = { environment: 'production', tenant: 'shop', why: '504' };
const request = {
  id: 'attempt.id',
  xRequestId: 'x-1',
  operation: 'initiatePayment',
  ...filter,
  since: '2026-11-22T03:00:00.000Z',
};

describe('penstock in-doubt with a filter', () => {
  test('lists the requests that match, and the selection that resolves exactly these', async () => {
    const { call, calls } = fakeAdminClient(200, { selection: 'abc', requests: [request] });
    const { lines, exitCode } = await previewInDoubt(call, filter);
    assert.equal(exitCode, 0);
    assert.equal(lines[0], 'attempt.id');
    assert.match(lines.at(-1) ?? '', /^To resolve all 1: penstock in-doubt all .*--selection abc/);
    assert.deepEqual(calls, [['GET', '/in-doubt/preview?environment=production&tenant=shop&why=504']]);
  });

  test('reports that nothing matches', async () => {
    const { call } = fakeAdminClient(200, { selection: 'abc', requests: [] });
    assert.deepEqual((await previewInDoubt(call, filter)).lines, ['Nothing that matches is in doubt.']);
  });
});

describe('penstock in-doubt all', () => {
  const given = { ...filter, selection: 'abc', outcome: 'happened', reason: 'ticket', confirm: 'production' };

  test('sends the filter, the selection and the confirmation, and reports how many are resolved', async () => {
    const { call, calls } = fakeAdminClient(200, { resolved: 3, early: 0, gone: 1 });
    assert.deepEqual(await resolveSeveralInDoubt(call, given), {
      lines: ['Resolved: 3. Resolved by others in the meantime: 1.'],
      exitCode: 0,
    });
    assert.deepEqual(calls, [['POST', '/in-doubt', given]]);
  });

  test('fails if requests stay in doubt, or if the gateway refuses', async () => {
    const early = fakeAdminClient(200, { resolved: 3, early: 2, gone: 0 });
    const { lines, exitCode } = await resolveSeveralInDoubt(early.call, given);
    assert.equal(exitCode, 1);
    assert.match(lines[1] ?? '', /^Still in doubt: 2/);
    const refused = fakeAdminClient(409, { error: 'Nothing is resolved.' });
    assert.equal((await resolveSeveralInDoubt(refused.call, given)).exitCode, 1);
  });
});
