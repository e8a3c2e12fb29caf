import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startCommand } from '../kit/command.ts';

/** Allocates memory that stays in use, as requests would, as long as payments are accepted. */
const program = `
  import { createLoadShedder } from './src/http/load-shedding.ts';
  const some = () => Array.from({ length: 1_000 }, () => ({ at: Math.random() }));
  const kept = Array.from({ length: 1_700 }, some);
  const loadShedder = createLoadShedder((shedding) => console.log(shedding));
  loadShedder.start();
  const take = () => {
    try { loadShedder.admit('write'); } catch { console.log('refused'); process.exit(); }
    kept.push(some());
    setTimeout(take, 10);
  };
  take();
`;

describe('a gateway whose heap fills up', () => {
  test('H4: refuses every request before V8 ends the process', async (t) => {
    const args = ['--max-old-space-size=128', '--input-type=module', '-e', program];
    const command = startCommand(t, process.execPath, args);
    assert.equal(await command.exitCode(), 0, command.stderr());
    assert.equal(command.stdout(), 'everything\nrefused\n');
  });
});
