import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { acceptLoss, showState } from '../../../src/commands/state.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const ok = { status: 'ok', since: null, cause: null, missing: [], uncovered: false };
const since = '2026-11-22T03:00:00.000Z';
const lost = { status: 'lost', since, cause: 'The shared state has lost data.', uncovered: false };

describe('penstock state', () => {
  test('reports that new payments are accepted', async () => {
    const { call, calls } = fakeAdminClient(200, ok);
    assert.deepEqual(await showState(call), {
      lines: ['New payments are accepted.'],
      data: ok,
      exitCode: 0,
    });
    assert.deepEqual(calls, [['GET', '/state']]);
  });

  test('fails while new payments are refused, and reports since when, the cause and each missing instance', async () => {
    const missing = [
      { instance: 'one', lastSeen: '2026-11-22T02:59:59.000Z' },
      { instance: 'other', lastSeen: null },
    ];
    assert.deepEqual(await showState(fakeAdminClient(200, { ...lost, missing }).call), {
      lines: [
        'New payments have been refused since 2026-11-22T03:00:00.000Z. The shared state has lost data.',
        '  missing instance one, last seen 2026-11-22T02:59:59.000Z',
        '  missing instance other, last seen by another instance only',
      ],
      data: { ...lost, missing },
      exitCode: 1,
    });
  });
});

describe('penstock state accept-loss', () => {
  test('sends the reason, and reports the state afterwards', async () => {
    const { call, calls } = fakeAdminClient(200, ok);
    assert.equal((await acceptLoss(call, 'the bank, ticket 4711')).exitCode, 0);
    assert.deepEqual(calls, [['POST', '/state/accept-loss', { reason: 'the bank, ticket 4711' }]]);
  });

  test('fails if there is nothing to accept', async () => {
    const error = 'New payments are not refused: nothing to accept.';
    const { call } = fakeAdminClient(409, { error });
    await assert.rejects(acceptLoss(call, 'none'), { message: error, exitCode: 1 });
  });
});
