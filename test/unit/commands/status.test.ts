import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { exitCodes } from '../../../src/commands/exit-codes.ts';
import { showStatus } from '../../../src/commands/status.ts';
import { fakeAdminApi, fakeAdminClient } from './fake-admin-client.ts';

const nowMs = Date.parse('2026-11-29T12:01:00Z');
const alert = {
  id: 'initiations-fail',
  severity: 'critical',
  environment: 'production',
  since: '2026-11-29T12:00:00.000Z',
  text: 'All fail.',
  action: 'Ask the bank.',
  guide: 'https://guide.example',
};

const statusWith = (...alerts: readonly object[]) =>
  showStatus(
    fakeAdminApi({
      'GET /alerts': alerts,
      'GET /environments': { active: 'production', environments: [] },
      'GET /instances': [],
    }).call,
    nowMs,
  );

describe('penstock status', () => {
  test('says of which environment an alert is', async () => {
    const { lines, exitCode } = await statusWith({ ...alert, severity: 'warning', environment: 'test' });
    assert.equal(lines[0], 'Customers can pay.');
    assert.ok(lines.includes('  WARNING  initiations-fail (test), since 2026-11-29T12:00:00Z (60 s)'));
    assert.equal(exitCode, exitCodes.refused);
  });

  test('shows a critical alert that is over as a warning, in the answer and in the exit code', async () => {
    const { lines, exitCode } = await statusWith({ ...alert, overSince: '2026-11-29T12:00:50.000Z' });
    assert.equal(lines[0], 'Some payments fail, or wait.');
    assert.ok(lines.some((line) => line.startsWith('  WARNING  initiations-fail (production)')));
    assert.equal(exitCode, exitCodes.refused);
  });

  test('does not say that customers can pay while a newer gateway has a critical alert', async () => {
    const { lines, exitCode } = await statusWith({ ...alert, id: 'from-the-future' });
    assert.equal(lines[0], 'Some payments fail, or wait.');
    assert.equal(exitCode, exitCodes.critical);
  });

  test('does not say that nothing is uncertain while the database is unavailable', async () => {
    const { lines } = await statusWith({ ...alert, id: 'database-unavailable' });
    assert.ok(lines.includes('  not known: the database is unavailable'));
    assert.ok(!lines.includes('  nothing'));
  });

  test('of a gateway without alerts is an error, not a warning', async () => {
    await assert.rejects(showStatus(fakeAdminClient(404, { error: 'Unknown path.' }).call, nowMs), {
      exitCode: exitCodes.internal,
    });
  });
});
