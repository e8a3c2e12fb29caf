/** `penstock init`, and what the other commands make of its configuration. */

import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { createSimulatedBank } from '../../../src/simulated-bank/server.ts';
import { call } from '../../kit/call.ts';
import { cleanVariables, root, startCommand } from '../../kit/command.ts';
import { startCommandRunner } from '../../kit/command-runner.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { newPostgresDatabase, skipWithoutPostgres } from '../../kit/postgres.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../../kit/redis.ts';
import { initiation } from '../../kit/request.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';
import { until } from '../../kit/within.ts';

const run = startCommandRunner(scopeOfAllTests());

const skipWithoutScript =
  spawnSync('script', ['--version']).status === 0 ? false : 'there is no script of util-linux';

/** Runs `penstock init` for a file in a folder of the test's own. */
async function initialize(t: TestContext, ...options: readonly string[]) {
  const folder = temporaryFolder(t);
  const file = join(folder, 'penstock.yaml');
  const result = await run(['init', '--output', file, ...options]);
  return {
    ...result,
    folder,
    file,
    textOf: (name: string) => readFileSync(join(folder, name), 'utf8').trim(),
  };
}

/** Checks, creates the tables and starts the gateway, as the output of `penstock init` says. */
async function startAsAdvised(
  t: TestContext,
  file: string,
  variables: Readonly<Record<string, string>> = {},
) {
  const checked = await run(['check', '--config', file], variables);
  assert.equal(checked.exitCode, 0, checked.stderr);
  const migrated = await run(['migrate', '--config', file], variables);
  assert.equal(migrated.exitCode, 0, migrated.stderr);
  const ports = { PENSTOCK_LISTEN_PORT: '0', PENSTOCK_ADMIN_PORT: '0' };
  const gateway = startCommand(t, process.execPath, ['src/main.ts', 'serve', '--config', file], {
    ...ports,
    ...variables,
  });
  await gateway.waitForOutput('"serving"');
  const originOf = (listener: string) => {
    const [, origin] = new RegExp(`"${listener}":"([^"]*:\\d+)"`).exec(gateway.stdout()) ?? [];
    return `http://${origin}`;
  };
  const adminUrl = originOf('operators');
  const ready = await call(adminUrl, { method: 'GET', path: '/health/ready' });
  assert.equal(ready.status, 200, ready.text);
  return { url: originOf('tppSystems'), adminUrl, checked: checked.stdout };
}

describe('the configuration that penstock init writes', () => {
  test('runs a single process with a SQLite file, in which a payment is made once', async (t) => {
    const bank = createSimulatedBank({ name: 'sandbox' });
    t.after(() => bank.stop());
    const baseUrl = await bank.start();
    const { exitCode, stdout, stderr, folder, file, textOf } = await initialize(
      t,
      ...['--sandbox-url', baseUrl, '--client', 'checkout', '--operator', 'ann'],
    );
    assert.equal(exitCode, 0, stderr);
    const { url, adminUrl, checked } = await startAsAdvised(t, file);
    assert.equal(checked, 'The configuration is valid.\n');

    const requestId = randomUUID();
    const pay = (key: string) =>
      call(url, {
        ...initiation,
        requestId,
        headers: [...initiation.headers, ['X-API-Key', key]],
      });
    assert.equal((await pay('guessed')).status, 401);
    const key = textOf('checkout.api-key');
    assert.equal((await pay(key)).status, 201);
    assert.equal((await pay(key)).header('Idempotent-Replayed'), 'true');
    assert.equal(bank.payments.length, 1);

    const curl = /^ *(curl .*?')$/ms.exec(stdout)?.[1]?.replace('http://127.0.0.1:8080', url) ?? '';
    const shell = () => promisify(execFile)('sh', ['-ec', curl], { timeout: 20_000 });
    assert.match((await shell()).stdout, /^HTTP\/1\.1 201 /);
    assert.match((await shell()).stdout, /^Idempotent-Replayed: true\r$/im);
    assert.equal(bank.payments.length, 2);
    assert.match(stdout, /\n\d\. Give checkout its API key, and delete the file: .*checkout\.api-key\n$/);

    const status = await run(['status', '--url', adminUrl, '--token-file', join(folder, 'ann.token')]);
    assert.equal(status.exitCode, 0, status.stdout + status.stderr);

    assert.deepEqual(
      readdirSync(folder).filter((name) => !name.startsWith('penstock.db')),
      ['ann.token', 'checkout.api-key', 'encryption.key', 'penstock.yaml'],
    );
    const text = readFileSync(file, 'utf8') + stdout + stderr;
    for (const name of ['ann.token', 'checkout.api-key', 'encryption.key', 'penstock.yaml'])
      assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
    for (const name of ['ann.token', 'checkout.api-key', 'encryption.key']) {
      assert.match(textOf(name), /^[\w+/=-]{43,44}$/);
      assert.ok(!text.includes(textOf(name)), `${name} is secret`);
    }
    for (const step of ['check', 'migrate', 'serve', 'status'])
      assert.ok(stdout.includes(`npm exec penstock -- ${step} --config ${file}`), stdout);
  });

  test('runs with PostgreSQL and Redis, a sandbox and a production API', {
    skip: skipWithoutPostgres || skipWithoutRedis,
  }, async (t) => {
    const database = await newPostgresDatabase();
    const redis = await sharedRedisUrl(t);
    const withoutPassword = new URL(database);
    withoutPassword.password = '';
    const { exitCode, stderr, stdout, file } = await initialize(
      t,
      ...['--sandbox-url', 'https://sandbox.bank.test/psd2', '--production-url', 'https://bank.test/psd2'],
      ...['--client', 'checkout', '--database', withoutPassword.href, '--redis', redis],
      ...['--public-url', 'https://payments.tpp.test'],
    );
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /set PENSTOCK_STATE_POSTGRES to the whole URL/);
    assert.match(stdout, /set PENSTOCK_STATE_REDIS to the whole URL/);
    await startAsAdvised(t, file, { PENSTOCK_STATE_POSTGRES: database });
    const shown = await run(['config', 'show', '--json', '--config', file]);
    assert.equal(shown.exitCode, 0, shown.stderr);
    assert.match(shown.stdout, /"https:\/\/payments\.tpp\.test"/);
  });

  test('has what an example of a bank says, refers to certificates, and says which files are missing', async (t) => {
    const folder = temporaryFolder(t);
    const certificates = join(folder, 'certificates');
    const { exitCode, stdout, stderr, file, ...written } = await initialize(
      t,
      ...['--bank-like', 'handelsbanken', '--production-url', 'https://api.bank.test/openbanking'],
      ...['--client', 'checkout', '--certificates', certificates],
    );
    assert.equal(exitCode, 0, stderr);
    const portalKey = join(written.folder, 'production/x-ibm-client-id');
    const [certFile, keyFile] = ['crt', 'key'].map((end) => join(certificates, `production/qwac.${end}`));
    const config = parse(readFileSync(file, 'utf8'));
    assert.deepEqual(config.standard, { alsoOffer: ['updatePayment'] });
    assert.deepEqual(config.environments, {
      active: 'production',
      production: {
        baseUrl: 'https://api.bank.test/openbanking',
        segment: 'psd2',
        headers: { 'X-IBM-Client-Id': { file: portalKey } },
        pollHeaders: ['TPP-Transaction-ID', 'TPP-Request-ID', 'PSU-IP-Address'],
        standardVersion: '1.3.11',
        tls: { certFile, keyFile },
      },
    });
    assert.match(readFileSync(file, 'utf8'), /^# Your TPP systems send: TPP-Transaction-ID, /m);
    for (const missing of [portalKey, certFile, keyFile])
      assert.ok(stdout.includes(`ENOENT: ${missing}\n`), stdout);

    mkdirSync(join(certificates, 'production'), { recursive: true });
    const { cert, key } = createAuthority(t).issue('qwac');
    writeFileSync(String(certFile), cert);
    writeFileSync(String(keyFile), key);
    mkdirSync(join(written.folder, 'production'));
    writeFileSync(portalKey, 'client-of-the-portal\n');
    await startAsAdvised(t, file);
  });
});

describe('penstock init overwrites nothing', () => {
  const options = ['--sandbox-url', 'https://bank.test', '--client', 'checkout'];

  for (const name of ['penstock.yaml', 'checkout.api-key', 'operator.token', 'encryption.key'])
    test(`and writes nothing at all if ${name} exists`, async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, name), 'mine');
      const { exitCode, stderr } = await run(['init', '--output', join(folder, 'penstock.yaml'), ...options]);
      assert.match(stderr, new RegExp(`${name} exists, and is not overwritten;.*\nNothing was written\\.`));
      assert.equal(exitCode, 64);
      assert.deepEqual(readdirSync(folder), [name]);
      assert.equal(readFileSync(join(folder, name), 'utf8'), 'mine');
    });

  for (const database of ['penstock.db', 'other.sqlite'])
    test(`and refuses the former database ${database}, whose responses a new key could not read`, async (t) => {
      const folder = temporaryFolder(t);
      const output = join(folder, 'new.yaml');
      writeFileSync(join(folder, database), 'mine');
      const named = database === 'penstock.db' ? [] : ['--database', `sqlite:${join(folder, database)}`];
      const { exitCode, stderr } = await run(['init', '--output', output, ...options, ...named]);
      assert.match(
        stderr,
        /^--database: .* exists, and the new encryption key .* with --database sqlite:FILE/,
      );
      assert.equal(exitCode, 64);
      assert.deepEqual(readdirSync(folder), [database]);
    });

  test('and does not follow a symbolic link that leads nowhere', async (t) => {
    const folder = temporaryFolder(t);
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'encryption.key'));
    const { exitCode, stderr } = await run(['init', '--output', join(folder, 'penstock.yaml'), ...options]);
    assert.match(stderr, /encryption\.key exists, and is not overwritten.* Nothing was written\./);
    assert.equal(exitCode, 1);
    assert.deepEqual(readdirSync(folder), ['encryption.key']);
    assert.ok(!existsSync(join(folder, 'elsewhere')));
  });

  test('and names a folder that does not exist', async (t) => {
    const file = join(temporaryFolder(t), 'nowhere/penstock.yaml');
    const { exitCode, stderr } = await run(['init', '--output', file, ...options]);
    assert.match(stderr, /; name a file in a folder that exists, .* with --output\. Nothing was written\.\n/);
    assert.equal(stderr.split(';')[0], `ENOENT: ${file}`);
    assert.equal(exitCode, 1);
  });
});

test('penstock init asks in a terminal, and writes nothing if Ctrl-C ends the questions', {
  skip: skipWithoutScript,
}, async (t) => {
  const folder = temporaryFolder(t);
  const line = `'${process.execPath}' src/main.ts init --output '${folder}/penstock.yaml' --client checkout`;
  const terminal = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    cwd: root,
    env: { ...cleanVariables(), SHELL: '/bin/sh' },
  });
  t.after(() => terminal.kill('SIGKILL'));
  let said = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(terminal, 'close');
  const answers = [
    ['Interface of the bank', 'kbc\n'],
    ["URL of the bank's sandbox", '\u0003'],
  ] as const;
  for (const [question, typed] of answers) {
    await until(20_000, question, () => said.includes(question));
    terminal.stdin.write(typed);
  }
  assert.deepEqual(await ended, [1, null]);
  assert.match(said, /Nothing was written\./);
  assert.deepEqual(readdirSync(folder), []);
});

describe('penstock init refuses values', () => {
  const valid: Readonly<Record<string, string>> = {
    '--sandbox-url': 'https://bank.test/psd2',
    '--client': 'checkout',
  };
  const injection = 'x\nlog:\n  level: debug';
  for (const [option, value] of [
    ['--sandbox-url', 'https://bank.test/psd2\nproduction: { baseUrl: "https://evil.test" }'],
    ['--sandbox-url', 'https://bank.test/a"b'],
    ['--sandbox-url', 'https://bank.test/psd2 # comment'],
    ['--sandbox-url', 'http://bank.test'],
    ['--sandbox-url', `https://bank.test/${'a'.repeat(2000)}`],
    ['--production-url', 'https://bank.test/psd2?a: b'],
    ['--client', 'a: b'],
    ['--client', '../../etc/cron.d/x'],
    ['--client', injection],
    ['--client', '"'],
    ['--operator', "ann' # it"],
    ['--operator', 'gateway'],
    ['--operator', '{ name: eve }'],
    ['--database', 'sqlite:/tmp/\u001b[31m.db'],
    ['--database', 'mysql://host/database'],
    ['--database', 'postgres://penstock:secret@host/database'],
    ['--database', 'postgres://host/database?sslmode=maybe'],
    ['--redis', 'redis://:secret@host:6379'],
    ['--redis', '{ cluster: [redis://host] }'],
    ['--certificates', `/certs${injection}`],
    ['--public-url', 'https://tpp.test/\u2028x'],
    ['--bank-like', 'examples/banks/ing.yaml'],
    ['--bank-like', 'no-such-bank'],
  ] as const)
    test(`that cannot be used for ${option}: ${JSON.stringify(value).slice(0, 60)}`, async (t) => {
      const folder = temporaryFolder(t);
      const given = { ...valid, [option]: value, '--output': join(folder, 'penstock.yaml') };
      const { exitCode, stderr, stdout } = await run(['init', ...Object.entries(given).flat()]);
      assert.match(stderr, new RegExp(`^${option}: .*\nNothing was written\\.\n`), stderr);
      for (const quoted of ['secret', '\u001b']) assert.ok(!(stderr + stdout).includes(quoted), stderr);
      assert.equal(exitCode, 64);
      assert.deepEqual(readdirSync(folder), []);
    });

  test('that are missing, all of them at once, and asks nothing without a terminal', async () => {
    const { exitCode, stderr } = await run(['init']);
    assert.deepEqual(stderr.split('\n').slice(0, 3), [
      '--sandbox-url or --production-url: missing; name a URL of the bank',
      '--client: missing; name the TPP system that may call the gateway',
      'Nothing was written.',
    ]);
    assert.equal(exitCode, 64);
  });
});

test('penstock init writes the webhooks of the client as a comment, which is valid without its marks', async (t) => {
  const { file, folder } = await initialize(t, '--sandbox-url', 'https://bank.test', '--client', 'checkout');
  const text = readFileSync(file, 'utf8');
  assert.equal(parse(text).clients[0].notifications, undefined);
  writeFileSync(file, text.replaceAll(/^( +)# (?=notifications:| {2}(?:urls|secretFile):)/gm, '$1'));
  writeFileSync(join(folder, 'checkout.whsec'), `whsec_${'A'.repeat(43)}=\n`);
  const { exitCode, stderr } = await run(['check', '--config', file]);
  assert.equal(exitCode, 0, stderr);
  const { clients } = parse(readFileSync(file, 'utf8'));
  assert.equal(clients[0].notifications.secretFile, join(folder, 'checkout.whsec'));
});

test('penstock init writes odd paths as they are, without another setting', async (t) => {
  const folder = temporaryFolder(t);
  const odd = join(folder, `it's "odd": {x} # [1] - & *b %a !c`);
  mkdirSync(odd);
  const file = join(odd, 'penstock.yaml');
  const { exitCode, stderr, stdout } = await run([
    ...['init', '--output', file, '--database', `sqlite:${odd}/a: b #.db`, '--client', 'checkout'],
    ...['--production-url', 'https://bank.test', '--certificates', odd],
  ]);
  assert.equal(exitCode, 0, stderr);
  const config = parse(readFileSync(file, 'utf8'));
  assert.deepEqual(Object.keys(config), ['listen', 'admin', 'clients', 'environments', 'state']);
  assert.deepEqual(config.state, { file: `${odd}/a: b #.db`, encryptionKeyFile: `${odd}/encryption.key` });
  assert.equal(config.environments.production.tls.keyFile, `${odd}/production/qwac.key`);
  assert.ok(stdout.includes(`check --config '${file.replaceAll("'", `'\\''`)}'`), stdout);
});
