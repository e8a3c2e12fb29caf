/** The command line: help, version, wrong usage, and JSON on the right stream. */

import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { optionRow } from '../../../src/commands/command.ts';
import { commands } from '../../../src/commands/command-table.ts';
import { cleanVariables, findOlderNode, startCommand, writeConfigFile } from '../../kit/command.ts';
import { startCommandRunner } from '../../kit/command-runner.ts';
import { freePort } from '../../kit/ports.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const penstock = startCommandRunner(scopeOfAllTests());

describe('the command line', () => {
  test('prints the commands and the exit codes for --help, and exits with 0', async () => {
    const { exitCode, stdout, stderr } = await penstock(['--help']);
    assert.deepEqual([exitCode, stderr], [0, '']);
    assert.match(stdout, /^Usage: penstock <command> \[options\]\n/);
    assert.match(stdout, /^ {2}circuits hold {2,}Hold a circuit/m);
    assert.match(stdout, /^ {2}78 +invalid configuration$/m);
    assert.doesNotMatch(stdout, /^ {2}complete /m);
    assert.ok(!stdout.includes('\u001b'), 'no colours outside a terminal');
  });

  test('prints usage, options and an example for --help of a command', async () => {
    for (const args of [
      ['in-doubt', '--help'],
      ['help', 'in-doubt'],
    ]) {
      const { exitCode, stdout } = await penstock(args);
      assert.equal(exitCode, 0);
      assert.match(stdout, /^Usage: penstock in-doubt \[filter\] \[--csv\]/);
      assert.match(stdout, /^ {7}penstock in-doubt <request> <outcome> --reason <text> \[options\]$/m);
      assert.match(stdout, /^ {2}--selection <selection> /m);
      assert.match(stdout, /^Example:\n {2}penstock in-doubt 99391c7e/m);
    }
  });

  test('prints the help of a command of several words, and names an unknown command', async () => {
    const { exitCode, stdout } = await penstock(['help', 'config', 'show']);
    assert.equal(exitCode, 0);
    assert.match(stdout, /^Usage: penstock config show \[options\]/);
    assert.match((await penstock(['help'])).stdout, /^Usage: penstock <command>/);
    const unknown = await penstock(['help', 'circuts']);
    assert.deepEqual([unknown.exitCode, unknown.stdout], [64, '']);
    assert.match(unknown.stderr, /^unknown command 'circuts'\n/);
  });

  test('says what an option means for the command of the help, and nothing about other commands', async () => {
    for (const [command, option, meaning] of [
      ['init', '--client <name>', 'name of the TPP system'],
      ['search', '--client <name>', 'only this client\n'],
      ['demo', '--port <port>', 'first of five ports'],
      ['bank', '--port <port>', 'port to listen on; 0 takes any free one'],
      ['check', '--strict', 'treat warnings as errors\n'],
    ] as const) {
      const { stdout } = await penstock([command, '--help']);
      const [, text = ''] = stdout.split(`  ${option} `);
      assert.ok(text.trimStart().startsWith(meaning), stdout);
    }
    for (const { options = [] } of commands)
      for (const { descriptions = {} } of options.map(optionRow))
        for (const name of Object.keys(descriptions))
          assert.ok(
            commands.some((command) => command.name === name),
            name,
          );
  });

  test('fits a terminal of 80 columns', async () => {
    const all = [['--help'], ...commands.map(({ name }) => [...name.split(' '), '--help'])];
    for (const args of all) {
      const { stdout } = await penstock(args);
      const [usage = '', ...lines] = stdout.split('\n');
      assert.match(usage, /^Usage: penstock /);
      const tooLong = lines.filter((line) => line.length > 80 && !/^ +penstock /.test(line));
      assert.deepEqual(tooLong, [], usage);
    }
  });

  test('prints its version for --version', async (t) => {
    const command = startCommand(t, process.execPath, ['src/main.ts', '--version']);
    assert.equal(await command.exitCode(), 0);
    assert.match(command.stdout(), /^penstock \d+\.\d+\.\d+\n$/);
  });

  test('prints the help on standard error without a command, and exits with 64', async () => {
    for (const [args, usage] of [
      [[], /^Usage: penstock <command> \[options\]\n/],
      [['audit'], /^Usage: penstock audit <command> \[options\]\n/],
    ] as const) {
      const { exitCode, stdout, stderr } = await penstock(args);
      assert.deepEqual([exitCode, stdout], [64, '']);
      assert.match(stderr, usage);
    }
  });

  test('names an unknown command, and suggests a similar one', async (t) => {
    const command = startCommand(t, process.execPath, ['src/main.ts', 'circuts']);
    const exitCode = await command.exitCode();
    assert.deepEqual(
      { exitCode, stdout: command.stdout(), stderr: command.stderr() },
      {
        exitCode: 64,
        stdout: '',
        stderr: "unknown command 'circuts'\n(Did you mean circuits?)\nSee 'penstock --help'.\n",
      },
    );
  });

  test('prints the OpenAPI description as YAML, and as JSON for --json', async () => {
    assert.match((await penstock(['openapi'])).stdout, /^openapi: 3\.1\.0\n/);
    const { exitCode, stdout } = await penstock(['openapi', '--json']);
    assert.equal(exitCode, 0);
    assert.equal(JSON.parse(stdout).openapi, '3.1.0');
  });

  test('prints errors as JSON on standard error for --json', async (t) => {
    const file = writeConfigFile(t, 'environments: { sandbox: { baseUrl: nowhere } }');
    const invalid = await penstock(['check', '--json', '--config', file]);
    assert.deepEqual([invalid.exitCode, invalid.stdout], [78, '']);
    const { error, errors } = JSON.parse(invalid.stderr);
    assert.match(error, /^1 error in the configuration:\n/);
    assert.equal(errors.length, 1);

    const misspelt = await penstock(['check', '--json', '--cofnig', file]);
    assert.deepEqual([misspelt.exitCode, misspelt.stdout], [64, '']);
    assert.match(
      JSON.parse(misspelt.stderr).error,
      /^unknown option '--cofnig'\n\(Did you mean --config\?\)/,
    );

    const url = `http://127.0.0.1:${await freePort()}`;
    const nobody = await penstock(['circuits', '--json', '--url', url], { PENSTOCK_ADMIN_TOKEN: 'x' });
    assert.deepEqual([nobody.exitCode, nobody.stdout], [69, '']);
    assert.match(JSON.parse(nobody.stderr).error, new RegExp(`^No gateway answers at ${url} `));
  });

  test('ends without a message if the reader of its output has ended', async (t) => {
    for (const args of ['openapi', '--help', 'help environment use']) {
      const line = `{ ${process.execPath} src/main.ts ${args}; echo "exit code $?" >&2; } | true`;
      const command = startCommand(t, 'bash', ['-c', line]);
      assert.equal(await command.exitCode(), 0);
      assert.equal(command.stderr(), 'exit code 0\n', args);
    }
  });

  test('says what to set if it knows neither the gateway nor a token', async () => {
    const unknown = await penstock(['circuits']);
    assert.equal(unknown.exitCode, 64);
    assert.match(
      unknown.stderr,
      /^Name the gateway with --url URL, or its configuration with --config FILE\.\n/,
    );
    const anonymous = await penstock(['circuits', '--url', 'http://127.0.0.1:9090']);
    assert.equal(anonymous.exitCode, 77);
    assert.match(anonymous.stderr, /^No operator token: set PENSTOCK_ADMIN_TOKEN/);
  });

  test('is installed in a checkout without warnings, also on a Node that is too old for the gateway', async (t) => {
    const node = findOlderNode();
    if (node === undefined) return t.skip('this machine has no Node before 24.14 on its PATH');
    const quiet = Object.keys(cleanVariables()).filter((name) => /^npm_config_loglevel$/i.test(name));
    const words = quiet.flatMap((name) => ['-u', name]); // of an npm that runs this test
    const npm = join(dirname(node), 'npm');
    const path = `PATH=${dirname(node)}:/usr/bin:/bin`;
    const command = startCommand(t, 'env', [...words, path, npm, 'ci', '--dry-run', '--offline']);
    assert.equal(await command.exitCode(), 0, command.stderr());
    assert.equal(command.stderr(), '');
  });
});
