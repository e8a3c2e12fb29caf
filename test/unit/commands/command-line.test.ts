import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Options } from '../../../src/commands/command.ts';
import { createParser } from '../../../src/commands/command-line.ts';
import { commands } from '../../../src/commands/command-table.ts';

/** What a command line calls: the name of the command, its options and words. */
async function parse(...args: readonly string[]) {
  const calls: { name: string; options: Options; words: readonly string[] }[] = [];
  const parser = createParser(async ({ name }, options, words) => void calls.push({ name, options, words }));
  await parser.parseAsync(args, { from: 'user' });
  assert.equal(calls.length, 1);
  return calls[0];
}

/** The words of a line as a shell reads them; knows single quotes only. */
const shellWords = (line: string) =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

describe('the command line', () => {
  for (const { name, example } of commands)
    test(`runs ${name} for the example of its help`, async () => {
      const call = await parse(...shellWords(example.replace(/ > .*/, '')));
      assert.equal(call?.name, name);
    });

  test('passes on options and words', async () => {
    const line = "circuits hold production write open --for 30min --reason 'maintenance at the bank' --json";
    assert.deepEqual(await parse(...shellWords(line)), {
      name: 'circuits hold',
      options: { for: '30min', reason: 'maintenance at the bank', json: true },
      words: ['production', 'write', 'open'],
    });
  });

  test('accepts --config before and behind the command, and values behind an equals sign', async () => {
    for (const line of ['--config a.yaml check', 'check --config a.yaml', 'check --config=a.yaml'])
      assert.deepEqual(await parse(...line.split(' ')), {
        name: 'check',
        options: { config: 'a.yaml' },
        words: [],
      });
  });

  test('leaves out optional words that are not given', async () => {
    assert.deepEqual((await parse('in-doubt'))?.words, []);
    assert.deepEqual((await parse('in-doubt', 'an-id'))?.words, ['an-id']);
  });

  for (const [line, message] of [
    ['circuts', "unknown command 'circuts'\n(Did you mean circuits?)\nSee 'penstock --help'."],
    ['version', "unknown command 'version'\n(Did you mean --version?)\nSee 'penstock --help'."],
    ['swim', "unknown command 'swim'\nSee 'penstock --help'."],
    ['toString', "unknown command 'toString'\nSee 'penstock --help'."],
    ['verify', "unknown command 'verify'\nSee 'penstock --help'."],
    [
      'environment usee production --reason x',
      "unknown command 'environment usee'\n(Did you mean environment use?)\nSee 'penstock environment --help'.",
    ],
    [
      'audit verfy',
      "unknown command 'audit verfy'\n(Did you mean audit verify?)\nSee 'penstock audit --help'.",
    ],
    [
      'serve check',
      "too many arguments for 'serve'. Expected 0 arguments but got 1: check.\nSee 'penstock serve --help'.",
    ],
    ['serve --cofnig x', "unknown option '--cofnig'\n(Did you mean --config?)\nSee 'penstock serve --help'."],
    ['--verison', "unknown option '--verison'\n(Did you mean --version?)\nSee 'penstock --help'."],
    ['serve --json', "unknown option '--json'\nSee 'penstock serve --help'."],
    ['check --config', "option '--config <file>' argument missing\nSee 'penstock check --help'."],
    [
      'environment use production --reason --force',
      "option '--reason <text>' argument '--force' is invalid. The value is missing.\nSee 'penstock environment use --help'.",
    ],
    [
      'environment use production --reason a --reason b',
      "option '--reason <text>' argument 'b' is invalid. The option occurs twice.\nSee 'penstock environment use --help'.",
    ],
    ['environment use', "missing required argument 'name'\nSee 'penstock environment use --help'."],
    [
      'circuits hold production pay open',
      "command-argument value 'pay' is invalid for argument 'lane'. Allowed choices are write, read, status.\nSee 'penstock circuits hold --help'.",
    ],
  ] as const)
    test(`explains what is wrong with: penstock ${line}`, async () => {
      await assert.rejects(parse(...line.split(' ')), { message, exitCode: 64 });
    });
});

describe('the table of commands', () => {
  test('gives every command a unique name, and an example of its own', () => {
    for (const values of [commands.map(({ name }) => name), commands.map(({ example }) => example)])
      assert.equal(new Set(values).size, values.length);
  });

  test('offers --json for every command that prints data', () => {
    const others = commands.filter(({ options = [] }) => !options.includes('json')).map(({ name }) => name);
    assert.deepEqual(others, ['serve', 'demo', 'bank', 'completion', 'complete']);
  });
});
