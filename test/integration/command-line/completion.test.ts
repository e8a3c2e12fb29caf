/** The scripts of `penstock completion`, in the shells that this machine has. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { completionScript } from '../../../src/commands/completion-scripts.ts';
import { cleanVariables, root } from '../../kit/command.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** A shell, with a `penstock` on its PATH that runs this checkout. */
interface Shell {
  /** The script of the completion for this shell. */
  readonly script: string;
  /** An empty folder: the home and the working folder of the shell. */
  readonly home: string;
  /** @returns what the shell prints with these arguments */
  run(args: readonly string[]): string;
}

function startShell(t: TestContext, name: string): Shell {
  const programs = temporaryFolder(t);
  const main = join(root, 'src/main.ts');
  writeFileSync(join(programs, 'penstock'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, {
    mode: 0o755,
  });
  const script = join(programs, `penstock.${name}`);
  writeFileSync(script, `${completionScript(name).lines.join('\n')}\n`);
  const home = temporaryFolder(t);
  const path = `${programs}${delimiter}${process.env.PATH}`;
  const env = { ...cleanVariables(), PATH: path, HOME: home, XDG_CONFIG_HOME: home, TERM: 'dumb' };
  return {
    script,
    home,
    run(args) {
      const { status, stdout, stderr } = spawnSync(name, args, {
        cwd: home,
        env,
        encoding: 'utf8',
        timeout: 60_000,
      });
      assert.equal(status, 0, `${name} ended with ${status}: ${stderr}${stdout}`);
      return stdout;
    },
  };
}

const skipWithout = (shell: string) =>
  spawnSync(shell, ['-c', 'exit 0']).status === 0 ? false : `NOT TESTED: ${shell} is not installed`;

/** Each line that ends in the word to complete, with its candidates. */
const expected: readonly (readonly [line: string, candidates: readonly string[]])[] = [
  ['penstock circuits hold production write ', ['open', 'closed']],
  ['penstock environment use production --rea', ['--reason']],
  ['penstock config ', ['show', 'diff']],
];

/** The script completes nothing here: the shell completes the name of a file. */
const lineWithFile = 'penstock check --config only';

describe('the completion script', () => {
  test('completes commands, options, arguments and files in bash', { skip: skipWithout('bash') }, (t) => {
    const { script, home, run } = startShell(t, 'bash');
    writeFileSync(join(home, 'only.yaml'), '');
    const candidates = (line: string) =>
      run([
        '-c',
        `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock; printf '%s\n' "\${COMPREPLY[@]}"`,
        'bash',
        script,
        ...line.split(' '),
      ])
        .trim()
        .split('\n');
    for (const [line, words] of expected) assert.deepEqual(candidates(line), words);
    assert.deepEqual(candidates(lineWithFile), ['']);
    assert.match(run(['-c', `source '${script}'; complete -p penstock`]), /^complete -o default /);
  });

  test('completes commands, options, arguments and files in fish', { skip: skipWithout('fish') }, (t) => {
    const { script, home, run } = startShell(t, 'fish');
    writeFileSync(join(home, 'only.yaml'), '');
    const candidates = (line: string) =>
      run(['--no-config', '-c', `source '${script}'; complete -C '${line}'`])
        .trim()
        .split('\n')
        .map((candidate) => candidate.split('\t')[0]);
    for (const [line, words] of expected) assert.deepEqual(candidates(line), words.toSorted());
    assert.deepEqual(candidates(lineWithFile), ['only.yaml']);
  });

  test('completes commands, options, arguments and files in zsh', { skip: skipWithout('zsh') }, (t) => {
    const { script, home, run } = startShell(t, 'zsh');
    writeFileSync(join(home, 'only.yaml'), '');
    const [setup, driver] = [`${script}.setup`, `${script}.driver`] as const;
    writeFileSync(setup, zshSetup(script));
    writeFileSync(driver, zshDriver);
    const candidates = (line: string) => {
      const output = run(['-f', driver, setup, line]);
      return [...output.matchAll(/candidate=(\S+)/g)].map(([, word]) => word);
    };
    for (const [line, words] of expected) assert.deepEqual(candidates(line).toSorted(), words.toSorted());
    assert.deepEqual(candidates(lineWithFile), ['only.yaml']);
  });
});

/** Prints each candidate, and `END` behind the last one. The completion functions call `compadd` for all candidates. */
const zshSetup = (script: string) => `PROMPT= RPROMPT=
autoload -U compinit
compinit -u -D
source '${script}'
zstyle ':completion:*' completer _complete
bindkey '^I' complete-word
compadd() {
  local -a hits
  if [[ "\${@[1,(i)(-|--)]}" == *-(O|A|D)\\ * ]]; then
    builtin compadd "$@"
    return
  fi
  builtin compadd -A hits "$@"
  print -r -- "candidate="$^hits
  builtin compadd "$@"
}
report-end() { print END }
comppostfuncs=(report-end)
print READY
`;

/** Types a line and the Tab key into an interactive zsh, and prints what comes back. */
const zshDriver = `zmodload zsh/zpty || exit 1
zpty shell zsh -f -i
zpty -w shell "source '$1'"
zpty -r -m shell output '*READY*' || exit 1
zpty -n -w shell "$2"$'\\t'
zpty -r -m shell output '*END*' || exit 1
print -r -- "$output"
zpty -d shell
`;
