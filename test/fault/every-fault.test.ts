import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { faultRows } from '../../src/simulated-bank/faults.ts';

test('every fault that the simulated bank knows is played by a test here', () => {
  const tests = globSync('../{fault,timed}/*.test.ts', { cwd: import.meta.dirname })
    .map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'))
    .join('');
  const missing = Object.keys(faultRows).filter((fault) => !tests.includes(`name: '${fault}'`));

  assert.deepEqual(missing, []);
});
