import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReleasedAttempts } from '../../../src/idempotency/released-attempts.ts';

test('the released attempts are the newest 200', () => {
  const attempts = createReleasedAttempts();
  for (let index = 0; index < 300; index++) attempts.add(`attempt-${index}`);
  assert.equal(attempts.names().length, 200);
  assert.deepEqual([attempts.names().at(0), attempts.names().at(-1)], ['attempt-100', 'attempt-299']);
});
