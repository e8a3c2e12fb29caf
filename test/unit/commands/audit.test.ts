import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { verifyAudit } from '../../../src/commands/audit.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

describe('penstock audit verify', () => {
  test('reports an intact log and its number of records', async () => {
    const { call, calls } = fakeAdminClient(200, { records: 3 });
    const lines = ['The audit log is whole: 3 records, each following the one before.'];
    assert.deepEqual(await verifyAudit(call), { lines, exitCode: 0 });
    assert.deepEqual(calls, [['GET', '/audit/verify']]);
  });

  test('fails and reports where the log is broken', async () => {
    const { call } = fakeAdminClient(200, { records: 3, broken: 'record 2 was altered' });
    assert.deepEqual(await verifyAudit(call), {
      lines: ['The audit log is broken: record 2 was altered.'],
      exitCode: 1,
    });
  });

  test('fails if the log cannot be read', async () => {
    const { lines, exitCode } = await verifyAudit(
      fakeAdminClient(503, { error: 'The shared state cannot be reached.' }).call,
    );
    assert.equal(exitCode, 1);
    assert.match(lines.join(), /cannot be read.*shared state/);
  });
});
