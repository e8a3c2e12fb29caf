/** `penstock check`: all errors are reported at once, before anything is started. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { startCommand, writeConfigFile } from '../../kit/command.ts';
import { startCommandRunner } from '../../kit/command-runner.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const run = startCommandRunner(scopeOfAllTests());

const configWithTenErrors = `listen:
  port: 80800
  publicURL: https://gateway.example
  maxBody: 1MB
admin:
  port: nine
standard:
  segment: /berlingroup
environments:
  active: staging
  sandbox:
    baseUrl: http://bank.example
deadlines:
  write: 35
log:
  level: loud
shapping:
  rate: 50/s
`;

/** Valid, and without a warning. */
const valid = `environments:
  sandbox:
    baseUrl: https://bank.test/psd2
admin:
  operators: [{ name: ann, tokenSha256: 57a24f84e5f5b3cd6ba9e9bd43ebf1d1a73a4e7d4dca6b2f1c1f3f2d5e7ab610 }]
state:
  file: penstock.db
`;

describe('penstock check (H5)', () => {
  test('reports all ten errors at once, each with its line and its setting, and exits with 78', async (t) => {
    const file = writeConfigFile(t, configWithTenErrors);
    const command = startCommand(t, process.execPath, ['src/main.ts', 'check', '--config', file]);

    assert.equal(await command.exitCode(), 78);
    assert.equal(command.stdout(), '');
    const [headline, ...errors] = command.stderr().trimEnd().split('\n');
    assert.equal(headline, '10 errors in the configuration:');
    const locations = [
      ...['2 listen.port', '3 listen.publicURL', '4 listen.maxBody', '6 admin.port', '8 standard.segment'],
      ...['10 environments.active', '12 environments.sandbox.baseUrl', '14 deadlines.write'],
      ...['16 log.level', '17 shapping'],
    ];
    assert.deepEqual(
      errors.map((error) => error.replace(/^.*?:(\d+ [\w.]+): .*$/, '$1')),
      locations,
    );
    for (const error of errors) assert.ok(error.startsWith(`${file}:`), error);
  });

  test('reports an error in an environment variable by the name of the variable', async (t) => {
    const file = writeConfigFile(t, valid);
    const variables = { PENSTOCK_CONFIG: file, PENSTOCK_LISTEN_PORT: 'eighty', PENSTOCK_LISTEN_PROT: '80' };
    const { exitCode, stderr } = await run(['check'], variables);
    assert.equal(exitCode, 78);
    assert.match(stderr, /^PENSTOCK_LISTEN_PORT listen\.port: /m);
    assert.match(stderr, /^PENSTOCK_LISTEN_PROT .*PENSTOCK_LISTEN_PORT/m);
  });

  test('refuses the configuration file as the database', async (t) => {
    const file = writeConfigFile(t, valid);
    const { exitCode, stderr } = await run(['check', '--config', file], { PENSTOCK_STATE_FILE: file });
    assert.match(stderr, /state\.file: this is also the file of the configuration; name another file/);
    assert.equal(exitCode, 78);
  });

  test('reports that a valid configuration is valid, and exits with 0', async (t) => {
    assert.deepEqual(await run(['check', '--config', writeConfigFile(t, valid)]), {
      exitCode: 0,
      stdout: 'The configuration is valid.\n',
      stderr: '',
    });
  });

  test('accepts a setting alone, and shows the default that follows it', async (t) => {
    const file = writeConfigFile(t, `${valid}shaping: { maxWait: { read: 20s } }\n`);
    const { exitCode, stdout, stderr } = await run(['check', '--config', file]);
    assert.equal(exitCode, 0, stderr);
    assert.equal(
      stdout,
      'The configuration is valid.\nderived: deadlines.read 40s (shaping.maxWait.read is 20s)\n',
    );
  });

  test('prints warnings, and exits with 0; with --strict, they are errors, and the exit code is 78', async (t) => {
    const file = writeConfigFile(t, `${valid}listen: { host: 0.0.0.0, publicUrl: https://pay.test }\n`);
    const check = ['check', '--config', file];
    const warning = `${file}:8 listen.host: every host that can reach 0.0.0.0 can send payments, because no client is configured; add clients, or listen on 127.0.0.1\n`;

    const lenient = await run(check);
    assert.equal(lenient.exitCode, 0, lenient.stderr);
    assert.equal(lenient.stdout, `The configuration is valid.\nwarning: ${warning}`);

    assert.deepEqual(await run([...check, '--strict']), {
      exitCode: 78,
      stdout: '',
      stderr: `1 error in the configuration:\n${warning}`,
    });
  });

  test('exits with 0 with --strict if there is no warning', async (t) => {
    const { exitCode, stderr } = await run(['check', '--strict', '--config', writeConfigFile(t, valid)]);
    assert.equal(exitCode, 0, stderr);
  });

  test('accepts config/demo.yaml', async () => {
    const { exitCode, stderr } = await run(['check', '--config', 'config/demo.yaml']);
    assert.equal(exitCode, 0, stderr);
  });

  test('reports the missing files of config/production.example.yaml, and what to change', async () => {
    const file = 'config/production.example.yaml';
    const { exitCode, stderr } = await run(['check', '--config', file]);
    assert.equal(exitCode, 78);
    const [headline, ...lines] = stderr.trimEnd().split('\n');
    assert.equal(headline, '11 errors in the configuration:');
    const [errors, warnings] = [lines.slice(0, 11), lines.slice(11)];
    for (const error of errors) assert.match(error, /File: ENOENT: \/etc\/penstock\/\S+$/);
    const marked = readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index) => (/# CHANGE/.test(line) ? [index + 1] : []));
    const warned = warnings.map((warning) => Number(/^warning: \S+?:(\d+) .*placeholder/.exec(warning)?.[1]));
    assert.ok(warned.length > 5);
    assert.deepEqual(
      warned.filter((line) => !marked.includes(line)),
      [],
    );

    const strict = await run(['check', '--strict', '--config', file]);
    assert.equal(strict.exitCode, 78);
    assert.match(strict.stderr, new RegExp(`^${11 + warnings.length} errors in the configuration:`));
  });

  test('reports a configuration file that cannot be read, and exits with 78', async () => {
    const { exitCode, stderr } = await run(['check', '--config', 'no/such.yaml']);
    assert.equal(exitCode, 78);
    assert.match(stderr, /no\/such\.yaml/);
  });
});
