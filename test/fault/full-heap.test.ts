import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startCommand } from '../kit/command.ts';

/** Keeps more and more, as requests would that are taken, for as long as payments are. */
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

describe('a heap that grows full', () => {
  test('H4: takes nothing more before it is too late, however small it is', async (t) => {
    const args = ['--max-old-space-size=128', '--input-type=module', '-e', program];
    const command = startCommand(t, process.execPath, args);
    assert.equal(await command.exitCode(), 0, command.stderr());
    assert.equal(command.stdout(), 'everything\nrefused\n');
  });
});
