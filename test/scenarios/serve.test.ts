/** `penstock serve` and the demo as processes: output, exit codes, signals. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { findOlderNode, type RunningCommand, startCommand, writeConfigFile } from '../kit/command.ts';
import { startBank } from '../kit/gateway.ts';
import { takenPort } from '../kit/ports.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const settings = (baseUrl: string, port: number) => `
listen: { port: ${port} }
admin: { port: 0 }
environments:
  sandbox: { baseUrl: "${baseUrl}" }
`;

/** Starts a gateway in this way, sends a payment, and stops it by SIGTERM. */
async function servesAndStops(t: TestContext, program: string, first: string): Promise<void> {
  const bank = await startBank(t);
  const file = writeConfigFile(t, settings(bank.baseUrl, 0));
  const command = startCommand(t, program, [first, 'serve', '--config', file]);
  await command.waitForOutput('"serving"');
  assert.match(command.stdout(), /"instance":"[\w-]+-[0-9a-f]{12}".*"serving"/);

  assert.equal((await call(`http://${addressIn(command)}`, initiation)).status, 201);
  assert.equal(bank.payments.length, 1);

  command.kill('SIGTERM');
  assert.equal(await command.exitCode(), 0);
  assert.match(command.stdout(), /"stopped"/);
  assert.match(command.stderr(), /^The operators' token for this run: PENSTOCK_ADMIN_TOKEN=\S+\n$/);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const addressIn = (command: RunningCommand) => /"tppSystems":"([^"]+)"/.exec(command.stdout())?.[1];

describe('penstock serve', () => {
  test('reports that it serves, serves, and exits with 0 on SIGTERM', async (t) => {
    await servesAndStops(t, process.execPath, 'src/main.ts');
  });

  test('runs from the bin', async (t) => {
    await servesAndStops(t, process.execPath, 'bin/penstock.cjs');
  });

  test('runs from the bin on a Node that is too old, by means of the installed Node', async (t) => {
    const node = findOlderNode();
    if (node === undefined) {
      t.diagnostic('NOT TESTED: this machine has no Node before 24.14 on its PATH');
      t.skip('this machine has no Node before 24.14 on its PATH');
      return;
    }
    await servesAndStops(t, node, 'bin/penstock.cjs');
  });

  test('passes on the exit code of the installed Node', async (t) => {
    const node = findOlderNode();
    if (node === undefined) return t.skip('this machine has no Node before 24.14 on its PATH');
    assert.equal(await startCommand(t, node, ['bin/penstock.cjs', 'swim']).exitCode(), 64);
  });

  test('stops when npx has ended, which passes no signal on', async (t) => {
    const file = writeConfigFile(t, settings('https://bank.example', 0));
    const words = [process.execPath, 'bin/penstock.cjs', 'serve', '--config', file];
    // A shell in place of npx. Its standard output stays open until the gateway has ended as well.
    const npx = startCommand(t, 'sh', ['-c', '"$@" & echo "pid $!"; wait', 'npx', ...words], {
      npm_lifecycle_event: 'npx',
    });
    await npx.waitForOutput('"serving"');
    t.after(() => isRunning(pid) && process.kill(pid, 'SIGKILL'));
    const pid = Number(/^pid (\d+)$/m.exec(npx.stdout())?.[1]);
    assert.ok(isRunning(pid));
    npx.kill('SIGKILL');
    await npx.exitCode();
    assert.match(npx.stdout(), /"stopped"/);
  });

  test('exits with 1 and names the port and the setting if its port is in use', async (t) => {
    const port = await takenPort(t);
    const file = writeConfigFile(t, settings('https://bank.example', port));
    const command = startCommand(t, process.execPath, ['src/main.ts', 'serve', '--config', file]);
    assert.equal(await command.exitCode(), 1);
    const why = `EADDRINUSE: another process uses 127.0.0.1:${port} (listen.port); stop it, or set listen.port to a free port`;
    assert.ok(command.stdout().includes(`"${why}"`), command.stdout());
    assert.doesNotMatch(command.stdout(), /"serving"/);
  });

  test('exits with 78 if the configuration is invalid', async (t) => {
    const file = writeConfigFile(t, 'environments: { sandbox: { baseUrl: "nowhere" } }');
    const command = startCommand(t, process.execPath, ['src/main.ts', 'serve', '--config', file]);
    assert.equal(await command.exitCode(), 78);
    assert.equal(command.stdout(), '');
  });
});

/** The lines of a log in JSON. */
const jsonLines = (text: string): readonly Record<string, unknown>[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));

const skipWithoutScript =
  spawnSync('script', ['--version']).status === 0 ? false : 'NOT TESTED: there is no script of util-linux';

/**
 * Runs a command on a terminal without colours, by means of `script` (util-linux). The first line of the output is the process
 * id of a shell, which leads the group of the command: a signal to `script` does not reach them. The shell prints the exit code, and keeps
 * the terminal open: `script` may lose what a process writes just before the last one ends.
 */
async function startOnTerminal(t: TestContext, ...words: readonly string[]) {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const line = `trap : INT TERM; echo "pid $$"; ${quoted}; echo "exit code $?"; exec tail -f /dev/null`;
  const variables = { NO_COLOR: '1', SHELL: '/bin/sh' };
  const command = startCommand(t, 'script', ['--quiet', '--command', line, '/dev/null'], variables);
  await until(10_000, 'the process id is printed', () => /^pid \d+\r?\n/.test(command.stdout()));
  const pid = Number(/\d+/.exec(command.stdout())?.[0]);
  t.after(() => killGroup(pid));
  const exitCode = () => /^exit code (\d+)\r?$/m.exec(command.stdout())?.[1];
  return {
    stdout: command.stdout,
    /** Signals all processes of the group, as the terminal does at Ctrl-C. @returns the exit code of the command */
    async signal(signal: NodeJS.Signals) {
      process.kill(-pid, signal);
      await until(30_000, 'the command ends', () => exitCode() !== undefined);
      return exitCode();
    },
  };
}

/** The group may have ended with its terminal. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

describe('the log of penstock serve', () => {
  test('names service, version and instance in every line', async (t) => {
    const file = writeConfigFile(t, settings('https://bank.example', 0));
    const command = startCommand(t, process.execPath, ['src/main.ts', 'serve', '--config', file]);
    await command.waitForOutput('"serving"');
    const lines = jsonLines(command.stdout());
    assert.ok(lines.length > 1);
    assert.equal(command.stdout().trimEnd().split('\n').length, lines.length);
    for (const { service, version, instance } of lines) {
      assert.deepEqual([service, instance], ['penstock', lines[0]?.instance]);
      assert.match(String(version), /^\d+\.\d+\.\d+$/);
    }
  });

  test('is text on a terminal, unless log.format is set', { skip: skipWithoutScript }, async (t) => {
    for (const [more, expected] of [
      ['', /^\[[\d:.]+\] INFO: serving \{"tppSystems":/m],
      ['log: { format: json }\n', /^\{"level":"info",.*"message":"serving"\}/m],
    ] as const) {
      const file = writeConfigFile(t, `${settings('https://bank.example', 0)}${more}`);
      const { stdout, signal } = await startOnTerminal(
        t,
        ...[process.execPath, 'src/main.ts', 'serve', '--config', file],
      );
      await until(20_000, 'the gateway has logged that it serves', () => expected.test(stdout()));
      await signal('SIGTERM');
    }
  });
});

test('penstock serve drains on Ctrl-C, also if a Node that is too old has started it', {
  skip: skipWithoutScript,
}, async (t) => {
  const file = writeConfigFile(t, settings('https://bank.example', 0));
  for (const node of [process.execPath, findOlderNode() ?? process.execPath]) {
    const { stdout, signal } = await startOnTerminal(t, node, 'bin/penstock.cjs', 'serve', '--config', file);
    await until(20_000, 'the gateway has logged that it serves', () => /INFO: serving/.test(stdout()));
    assert.equal(await signal('SIGINT'), '0', stdout());
    assert.match(stdout(), /INFO: stopped/);
  }
});

describe('a start that fails until somebody changes the configuration', () => {
  for (const [what, section, why] of [
    [
      'the folder of the state file does not exist',
      'state: { file: /nowhere/penstock/state.db }',
      /\/nowhere\/penstock/,
    ],
    [
      'a key file is malformed',
      'state: { file: penstock.db, encryptionKeyFile: test/wrong-configurations/files/short.key }',
      /state\.encryptionKeyFile: .*line 1 is not a key/,
    ],
  ] as const)
    test(`exits with 78, so that systemd does not restart the gateway, if ${what}`, async (t) => {
      const file = writeConfigFile(t, `${settings('https://bank.example', 0)}${section}\n`);
      const command = startCommand(t, process.execPath, ['src/main.ts', 'serve', '--config', file]);
      assert.equal(await command.exitCode(), 78, command.stdout());
      assert.match(command.stdout() + command.stderr(), why);
    });
});

describe('a listener that other hosts can reach', () => {
  const warned = async (t: TestContext, more: string) => {
    const text = settings('https://bank.example', 0).replace('port: 0 }', `port: 0, host: 0.0.0.0${more}`);
    const command = startCommand(t, process.execPath, [
      ...['src/main.ts', 'serve', '--config'],
      writeConfigFile(t, text),
    ]);
    await command.waitForOutput('"serving"');
    return command
      .stdout()
      .split('\n')
      .filter((line) => line.includes('"level":"warn"') && line.includes('listen.'));
  };

  test('is a warning at the start if no client is configured, and if links point to loopback', async (t) => {
    const warnings = await warned(t, ' }');
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? '', /listen\.host: every host that can reach 0\.0\.0\.0 can send payments/);
    assert.match(warnings[1] ?? '', /listen\.publicUrl: links in responses point to http:\/\/127\.0\.0\.1/);
  });

  test('is no warning at the start if the clients are identified and links have a public URL', async (t) => {
    const clients = `clients: [{ name: a, apiKeySha256: ${'ab12'.repeat(16)} }]`;
    assert.deepEqual(await warned(t, `, publicUrl: https://pay.test }\n${clients}`), []);
  });
});

describe('the demo', () => {
  test('prints next steps, or the reason why it cannot start', async (t) => {
    const command = startCommand(t, process.execPath, ['src/main.ts', 'demo']);
    const hasPrinted = () =>
      /Try these in another shell/.test(command.stdout()) ||
      /stop the program that uses the port/.test(command.stderr());
    await until(
      10_000,
      'the demo has printed something',
      () => hasPrinted() || /Error/.test(command.stderr()),
    );
    assert.ok(hasPrinted(), command.stderr());
  });

  test('completes its tour and exits with 0', async (t) => {
    const command = startCommand(t, process.execPath, ['src/main.ts', 'demo', '--tour']);
    assert.equal(await command.exitCode(), 0, command.stderr());
    assert.match(command.stdout(), /^Starting .*\n[\s\S]*\[1\/28\] initiate a payment[\s\S]*\[28\/28\]/);
    assert.match(command.stdout(), /cancel it/);
    assert.match(command.stdout(), /Tour complete: 28 steps/);
    assert.doesNotMatch(command.stdout(), /"level":/, 'no line of a log among the steps');
  });
});
