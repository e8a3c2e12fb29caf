/** Completes a command line, for the scripts that shells load (completion-scripts.ts). */

import {
  allOptionRows,
  type Command,
  commandNamed,
  descriptionFor,
  flagOf,
  hasValue,
  optionRow,
} from './command.ts';
import { type CommandOutput, success } from './command-output.ts';

interface Candidate {
  readonly word: string;
  readonly description: string;
}

/**
 * One line for each candidate: the word, a tab, and its description.
 *
 * @param words after `penstock`; the last one is incomplete, or empty
 */
export function complete(commands: readonly Command[], words: readonly string[]): CommandOutput {
  const candidates = candidatesFor(commands, words);
  return success(
    candidates.map(({ word, description }) => `${word}\t${description}`),
    candidates,
  );
}

function candidatesFor(commands: readonly Command[], words: readonly string[]): readonly Candidate[] {
  const partial = words.at(-1) ?? '';
  const { operands, given, expectsValue } = readWords(words.slice(0, -1));
  if (expectsValue) return []; // the shell completes file names
  const shown = commands.filter(({ isHidden }) => !isHidden);
  const command = commandNamed(shown, operands);
  const all = partial.startsWith('-') ? optionsOf(command, given) : wordsAfter(shown, command, operands);
  return all.filter(({ word }) => word.startsWith(partial));
}

const flagsWithValue: ReadonlySet<string> = new Set(allOptionRows.filter(hasValue).map(flagOf));

/** Separates options and their values from the other words. */
function readWords(words: readonly string[]) {
  const operands: string[] = [];
  const given: string[] = [];
  let expectsValue = false;
  for (const word of words) {
    if (expectsValue) {
      expectsValue = false;
    } else if (word.startsWith('-')) {
      given.push(word);
      expectsValue = flagsWithValue.has(word);
    } else {
      operands.push(word);
    }
  }
  return { operands, given, expectsValue };
}

function optionsOf(command: Command | undefined, given: readonly string[]): readonly Candidate[] {
  const options = (command?.options ?? []).map((name) => {
    const row = optionRow(name);
    return { word: flagOf(row), description: descriptionFor(row, command) };
  });
  const general = [{ word: '--help', description: 'print the help' }];
  if (!command) general.push({ word: '--version', description: 'print the version' });
  return [...options, ...general].filter(({ word }) => !given.includes(word));
}

/** The next words of commands, and the choices of the next argument. */
function wordsAfter(
  commands: readonly Command[],
  command: Command | undefined,
  operands: readonly string[],
): readonly Candidate[] {
  const before = operands.map((word) => `${word} `).join('');
  const next = new Map<string, Candidate>();
  for (const { name, summary } of commands) {
    const [word = '', ...rest] = name.slice(before.length).split(' ');
    if (!name.startsWith(before) || next.has(word)) continue;
    next.set(word, { word, description: rest.length === 0 ? summary : '' });
  }
  const position = operands.length - (command?.name.split(' ').length ?? 0);
  const { choices = [], description = '' } = command?.arguments?.[position] ?? {};
  return [...next.values(), ...choices.map((word) => ({ word, description }))];
}
