import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { listAudit, verifyAudit } from '../../../src/commands/audit.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

describe('penstock audit list', () => {
  test('prints one line for each record, with the details that are not objects', async () => {
    const record = {
      number: 12,
      at: '2026-01-31T12:00:00.000Z',
      who: 'olga',
      action: 'switch environment',
      outcome: 'switched',
      details: {
        environment: 'production',
        reason: 'go "live"',
        force: false,
        preflight: { ok: true },
        from: null,
      },
      previous: 'aa',
      hash: 'bb',
    };
    const { call, calls } = fakeAdminClient(200, [record]);
    assert.deepEqual(await listAudit(call), {
      lines: [
        '12  2026-01-31T12:00:00.000Z  olga  switch environment: switched  environment="production" reason="go \\"live\\"" force=false',
      ],
      data: [record],
      exitCode: 0,
    });
    assert.deepEqual(calls, [['GET', '/audit']]);
  });

  test('reports an empty log', async () => {
    assert.deepEqual((await listAudit(fakeAdminClient(200, []).call)).lines, ['The audit log is empty.']);
  });
});

describe('penstock audit verify', () => {
  test('reports an intact log and its number of records', async () => {
    const { call, calls } = fakeAdminClient(200, { records: 3 });
    const lines = ['The hash chain of the audit log is intact (3 records).'];
    assert.deepEqual(await verifyAudit(call), { lines, data: { records: 3 }, exitCode: 0 });
    assert.deepEqual(calls, [['GET', '/audit/verify']]);
  });

  test('fails and reports where the log is broken', async () => {
    const { call } = fakeAdminClient(200, { records: 3, broken: 'record 2 was altered' });
    const { lines, exitCode } = await verifyAudit(call);
    assert.deepEqual(lines, ['The hash chain of the audit log is broken: record 2 was altered.']);
    assert.equal(exitCode, 1);
  });

  test('fails with the error of the gateway if the log cannot be read', async () => {
    const error = 'The shared state cannot be reached.';
    await assert.rejects(verifyAudit(fakeAdminClient(503, { error }).call), { message: error, exitCode: 69 });
  });
});
