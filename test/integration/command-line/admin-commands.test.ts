/** The commands that call the admin API of a running gateway. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { call, jsonOf } from '../../kit/call.ts';
import { startCommandRunner } from '../../kit/command-runner.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { adminToken, startBank } from '../../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../../kit/gateway-process.ts';
import { freePort } from '../../kit/ports.ts';
import { initiation } from '../../kit/request.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';
import { until } from '../../kit/within.ts';

const runCommand = startCommandRunner(scopeOfAllTests());

/** Runs a command with the configuration of the gateway. */
function run(served: GatewayProcess, ...words: readonly string[]) {
  const { args, variables } = served.order(...words);
  return runCommand(args, variables);
}

test('penstock environment shows, refuses and performs switches, and penstock audit verify finds their records', async (t) => {
  const [sandbox, production] = [
    await startBank(t, { name: 'sandbox' }),
    await startBank(t, { name: 'production' }),
  ];
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl: sandbox.baseUrl },
    production: { baseUrl: production.baseUrl, standardVersion: '1.3.6' },
  };
  const served = await startGatewayProcess(t, { environments });

  assert.equal((await run(served, 'health', '--live')).stdout, 'live\n');
  assert.match((await run(served, 'health')).stdout, /^ready\n/);
  const before = await run(served, 'environment');
  assert.deepEqual(before, {
    exitCode: 0,
    stdout: `* sandbox      1.3.11   ${sandbox.baseUrl}\n  production   1.3.6    ${production.baseUrl}\n`,
    stderr: '',
  });

  const use = ['environment', 'use', 'production'];
  const silent = await run(served, ...use);
  assert.equal(silent.exitCode, 64);
  assert.match(silent.stderr, /^Give a reason, for the audit log: --reason TEXT\n/);

  const slip = await run(served, ...use, '--reason', 'a slip');
  assert.equal(slip.exitCode, 1);
  assert.match(slip.stderr, /^Not switched: switching to production must be confirmed by its name\.$/m);

  const done = await run(served, ...use, '--reason', 'go-live', '--confirm', 'production');
  assert.equal(done.exitCode, 0, done.stderr);
  assert.match(
    done.stdout,
    /^ok {5}tcp .*\nok {5}answer .*\n {20}The connection works\. The bank does not know probePath.*\nNo request in sandbox was judged .*\nNew payments go to production now\.\n$/,
  );
  assert.equal((await call(served.url, initiation)).header('Penstock-Environment'), 'production');

  const verified = await run(served, 'audit', 'verify');
  assert.equal(verified.exitCode, 0);
  assert.match(verified.stdout, /intact \(2 records\)/);
});

test('a command fails and names the address if no gateway runs there', async (t) => {
  const served = await startGatewayProcess(t, {
    environments: { sandbox: { baseUrl: 'https://bank.example' } },
  });
  served.command.kill('SIGKILL');
  await served.command.exitCode();
  const { exitCode, stderr } = await run(served, 'environment');
  assert.equal(exitCode, 69);
  assert.match(stderr, new RegExp(`^No gateway answers at ${served.adminUrl} \\(ECONNREFUSED\\)\\.`));
});

test('penstock in-doubt lists and resolves a request in doubt, which updates the metric and the audit log', async (t) => {
  const bank = await startBank(t);
  const served = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  assert.equal((await run(served, 'in-doubt')).stdout, 'No request is in doubt.\n');

  bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
  const requestId = randomUUID();
  const lost = { ...initiation, headers: [...initiation.headers, ['X-Request-ID', requestId] as const] };
  assert.equal((await call(served.url, lost)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
  const { stdout } = await run(served, 'in-doubt');
  assert.match(
    stdout,
    /^[0-9a-f][\w-]{35}\n {2}initiatePayment of anonymous in sandbox, X-Request-ID .*\n {2}OUTCOME_UNKNOWN: /,
  );
  const [id = ''] = stdout.split('\n');
  const listed = await run(served, 'in-doubt', '--environment', 'sandbox', '--why', 'outcome_unknown');
  assert.match(
    listed.stdout,
    /\nTo resolve all 1: penstock in-doubt all OUTCOME --environment sandbox --why outcome_unknown --selection [0-9a-f]{16}-[0-9a-z]+ --reason TEXT\n/,
  );
  const blind = await run(
    served,
    'in-doubt',
    'all',
    'happened',
    '--environment',
    'sandbox',
    '--reason',
    'a slip',
  );
  assert.deepEqual([blind.exitCode, blind.stdout], [64, '']);
  assert.match(blind.stderr, /--selection SELECTION/);
  await until(8_000, 'the metric counts it', async () =>
    (await metricsOf(served)).includes('penstock_in_doubt 1'),
  );

  const [payment = ''] = bank.payments.map(({ paymentId }) => paymentId);
  const silent = await run(served, 'in-doubt', id, 'happened');
  assert.equal(silent.exitCode, 64);
  assert.match(silent.stderr, /^Give a reason, for the audit log: --reason TEXT\n/);
  const foreign = await run(served, 'in-doubt', 'no-such-id', 'happened', '--reason', 'a slip');
  assert.deepEqual(
    [foreign.exitCode, foreign.stderr],
    [1, 'No request in doubt has this id or X-Request-ID.\n'],
  );
  const said = ['--payment', payment, '--reason', 'the bank, by telephone'];
  const shown = await run(served, 'in-doubt', requestId, '--json');
  assert.deepEqual(
    JSON.parse(shown.stdout).map((request: { id: string }) => request.id),
    [id],
  );
  const done = await run(served, 'in-doubt', requestId, 'happened', ...said);
  assert.deepEqual(
    [done.exitCode, done.stdout],
    [0, 'Resolved: happened. A repeat gets 409 with the paymentId.\n'],
  );

  assert.equal((await run(served, 'in-doubt')).stdout, 'No request is in doubt.\n');
  await until(8_000, 'the metric counts it', async () =>
    (await metricsOf(served)).includes('penstock_in_doubt 0'),
  );
  assert.match((await run(served, 'audit', 'verify')).stdout, /intact \(1 record\)/);
});

test('penstock payments lists payments, and penstock payment shows the history of one', async (t) => {
  const bank = await startBank(t);
  const served = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  const requestId = randomUUID();
  const paymentId = String(jsonOf(await call(served.url, { ...initiation, requestId })).paymentId);
  await until(10_000, 'the status is listed', async () =>
    (await run(served, 'payments', '--status', 'RCVD')).stdout.includes(paymentId),
  );
  const line = `pending RCVD  payments/sepa-credit-transfers of anonymous in sandbox  ${paymentId}\n`;
  const listed = await run(served, 'payments', '--environment', 'sandbox', '--outcome', 'pending');
  assert.ok(listed.stdout.endsWith(line), listed.stdout);
  assert.equal((await run(served, 'payments', '--outcome', 'rejected')).stdout, 'No payment was found.\n');
  const shown = await run(served, 'payment', paymentId);
  assert.equal(shown.exitCode, 0, shown.stderr);
  assert.ok(
    shown.stdout.includes(`status: RCVD  seen by: initiation  X-Request-ID ${requestId}`),
    shown.stdout,
  );
  assert.equal((await run(served, 'payment', 'unknown')).exitCode, 1);
  assert.equal((await run(served, 'payments', '--outcome', 'RCVD')).exitCode, 64);
});

test('commands reach a gateway by --url, with the token of a file and without a configuration', async (t) => {
  const bank = await startBank(t);
  const operator = (name: string, role: string) => ({ name, role, tokenSha256: sha256(`token-of-${name}`) });
  const served = await startGatewayProcess(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    admin: { port: await freePort(), operators: [operator('olga', 'operate'), operator('bob', 'read')] },
  });
  const runAs = async (name: string, ...args: readonly string[]) => {
    const tokenFile = join(temporaryFolder(t), 'token');
    writeFileSync(tokenFile, `token-of-${name}\n`);
    const address = ['--url', served.adminUrl, '--token-file', tokenFile];
    return runCommand([...args, ...address]);
  };

  const hold = ['circuits', 'hold', 'sandbox', 'write', 'open', '--reason', 'maintenance'];
  const refused = await runAs('bob', ...hold, '--json');
  assert.deepEqual([refused.exitCode, refused.stdout], [77, '']);
  assert.match(JSON.parse(refused.stderr).error, /role/);
  assert.equal((await runAs('nobody', 'circuits')).exitCode, 77);
  assert.equal((await runAs('olga', ...hold, '--for', '3 weeks')).exitCode, 64);

  const held = await runAs('olga', ...hold, '--for', '30min');
  assert.equal(held.exitCode, 0, held.stderr);
  assert.match(held.stdout, /^sandbox +write +\w+ +held open until \d{4}-.*Z maintenance\n$/);
  assert.equal((await call(served.url, initiation)).header('Penstock-Error'), 'CIRCUIT_OPEN');
  const [circuit] = JSON.parse((await runAs('bob', 'circuits', '--json')).stdout);
  assert.deepEqual([circuit.lane, circuit.hold], ['write', 'open']);

  const released = await runAs('olga', 'circuits', 'release', 'sandbox', 'write', '--reason', 'over');
  assert.equal(released.exitCode, 0, released.stderr);
  assert.equal((await call(served.url, initiation)).status, 201);

  const purged = await runAs('olga', 'cache', 'purge');
  assert.deepEqual([purged.exitCode, purged.stdout], [0, 'Removed all cached statuses, on all instances.\n']);
  const audit = await runAs('bob', 'audit', 'list');
  assert.match(
    audit.stdout,
    /^3 .* {2}olga {2}purge status cache: done\n2 .* {2}olga {2}hold circuit: done .*reason="over"\n1 .* reason="maintenance"/,
  );
});

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const metricsOf = async ({ adminUrl }: GatewayProcess) =>
  (await call(adminUrl, { method: 'GET', path: '/metrics' })).text;

test('penstock reload makes a gateway load its configuration again, and prints what changed or the errors', async (t) => {
  const bank = await startBank(t);
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } } };
  const served = await startGatewayProcess(t, sections);
  assert.equal((await run(served, 'reload')).stdout, 'Configuration reloaded: no setting has changed.\n');

  served.rewrite({ ...sections, deadlines: { write: '20s' }, log: { level: 'debug' } });
  const changed = await run(served, 'reload', '--reason', 'ticket 4711');
  assert.deepEqual([changed.exitCode, changed.stderr], [0, '']);
  assert.match(changed.stdout, /^Configuration reloaded:\n {2}deadlines\.write: 35s -> 20s\n/);
  assert.match(changed.stdout, /\nA restart is required for:\n {2}log\.level: info -> debug\n$/);
  const [record] = JSON.parse((await run(served, 'audit', 'list', '--json')).stdout);
  assert.deepEqual(
    [record.who, record.action, record.details.reason],
    ['admin', 'reload configuration', 'ticket 4711'],
  );

  // An address for the command, which could not read the invalid file either.
  served.rewrite('listen: { port: nowhere }');
  const variables = { PENSTOCK_ADMIN_TOKEN: adminToken };
  const refused = await runCommand(['reload', '--url', served.adminUrl], variables);
  assert.deepEqual([refused.exitCode, refused.stdout], [78, '']);
  assert.match(refused.stderr, /^Not reloaded: .*\n.*:1 listen\.port: /);
});
