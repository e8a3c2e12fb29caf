/** The scripts of `penstock completion`, in the shells that this machine has. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { completionScript } from '../../../src/commands/completion-scripts.ts';
import { cleanVariables, root } from '../../kit/command.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** A folder with a `penstock` that runs this checkout, and the script for a shell. */
function installation(t: TestContext, shell: string) {
  const folder = temporaryFolder(t);
  const main = join(root, 'src/main.ts');
  writeFileSync(join(folder, 'penstock'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, {
    mode: 0o755,
  });
  const script = join(folder, `penstock.${shell}`);
  writeFileSync(script, `${completionScript(shell).lines.join('\n')}\n`);
  const env = { ...cleanVariables(), PATH: `${folder}${delimiter}${process.env.PATH}` };
  return { script, run: (args: readonly string[]) => execFileSync(shell, args, { env, encoding: 'utf8' }) };
}

function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', 'exit 0']);
    return true;
  } catch {
    return false;
  }
}

const skipWithout = (shell: string) => (isInstalled(shell) ? false : `NOT TESTED: ${shell} is not installed`);

describe('the completion script', () => {
  test('completes commands and arguments in bash', { skip: skipWithout('bash') }, (t) => {
    const { script, run } = installation(t, 'bash');
    const completeWords = (...words: readonly string[]) =>
      run([
        '-c',
        `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock; printf '%s\\n' "\${COMPREPLY[@]}"`,
        'bash',
        script,
        'penstock',
        ...words,
      ]).trim();
    assert.equal(completeWords('circuits', 'hold', 'production', 'write', ''), 'open\nclosed\nnone');
    assert.equal(completeWords('environment', 'use', 'production', '--rea'), '--reason');
    assert.equal(completeWords('check', '--config', ''), '');
  });

  test('completes commands in fish', { skip: skipWithout('fish') }, (t) => {
    const { script, run } = installation(t, 'fish');
    const completeLine = (line: string) => run(['-c', `source ${script}; complete -C '${line}'`]).trim();
    assert.match(completeLine('penstock circuits hold production write '), /^closed\t.*\nnone\t.*\nopen\t/);
  });

  test('is accepted by zsh', { skip: skipWithout('zsh') }, (t) => {
    const { script, run } = installation(t, 'zsh');
    const said = run([
      '-f',
      '-c',
      `autoload -U compinit; compinit -u -D; source ${script}; print $_comps[penstock]`,
    ]);
    assert.equal(said, '_penstock\n');
  });
});
