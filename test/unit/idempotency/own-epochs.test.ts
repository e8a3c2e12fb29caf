import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOwnEpochs } from '../../../src/idempotency/own-epochs.ts';

test('after a restart of the state, recent writes and all whose outcome is not known are stored again', () => {
  const { lostIn } = createOwnEpochs(['']);
  const nowMs = Date.now();
  const hourMs = 3_600_000;
  const writes = [
    { id: 'recent', sequence: 1, changedAt: nowMs - 1_000, expiresAt: nowMs + hourMs },
    { id: 'old', sequence: 1, changedAt: nowMs - hourMs, expiresAt: nowMs + hourMs },
    { id: 'old and in doubt', sequence: 1, changedAt: nowMs - hourMs, expiresAt: undefined },
  ];
  const idsLost = (isOtherServer: boolean) => lostIn(writes, new Map(), isOtherServer).map(({ id }) => id);
  assert.deepEqual(idsLost(true), ['recent', 'old and in doubt']);
  assert.deepEqual(idsLost(false), []);
});
