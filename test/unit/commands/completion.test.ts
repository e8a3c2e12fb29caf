import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commands } from '../../../src/commands/command-table.ts';
import { complete } from '../../../src/commands/completion.ts';

/** The candidates for the last word of a command line. */
const candidates = (line: string) =>
  complete(commands, line.split(' ')).lines.map((candidate) => candidate.split('\t')[0]);

describe('the completion', () => {
  for (const [line, expected] of [
    ['en', ['environment']],
    ['c', ['check', 'config', 'contract', 'circuits', 'cache', 'completion']],
    ['environment ', ['use', 'moved', 'rename']],
    ['--config penstock.yaml audit ', ['list', 'verify']],
    ['circuits hold production ', ['write', 'read', 'status']],
    ['circuits hold production write ', ['open', 'closed']],
    ['circuits --json hold production write c', ['closed']],
    ['in-doubt 4711 h', ['happened']],
    ['notifications sub-1 ', ['resend', 'end']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['serve ', []],
    ['serve --', ['--config', '--help']],
    ['--ver', ['--version']],
    ['environment --config ', []],
    ['check --config penstock.yaml --', ['--strict', '--connect', '--json', '--help']],
    ['swim ', []],
  ] as const)
    test(`offers ${expected.join(', ') || 'nothing'} for: penstock ${line}`, () => {
      assert.deepEqual(candidates(line), expected);
    });

  test('describes each candidate, and does not offer what programs call', () => {
    const { lines } = complete(commands, ['']);
    assert.ok(
      lines.includes('serve\tRun the gateway; SIGHUP reloads the configuration, SIGTERM stops the gateway'),
    );
    assert.ok(!lines.some((line) => line.startsWith('complete\t')));
  });
});
