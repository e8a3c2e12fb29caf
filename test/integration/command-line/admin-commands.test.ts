/** The commands of operators, as processes of their own beside a gateway that serves. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { call } from '../../kit/call.ts';
import { startBank } from '../../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../../kit/gateway-process.ts';
import { initiation } from '../../kit/request.ts';
import { until } from '../../kit/within.ts';

/** A command, once it has ended. */
async function ran(served: GatewayProcess, ...args: readonly string[]) {
  const command = served.run(...args);
  const exitCode = await command.exitCode();
  return { exitCode, out: command.stdout(), complaint: command.stderr() };
}

test('penstock environment shows, refuses and switches, and penstock audit verify finds it all on record', async (t) => {
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

  const before = await ran(served, 'environment');
  assert.deepEqual(before, {
    exitCode: 0,
    out: `* sandbox      1.3.11   ${sandbox.baseUrl}\n  production   1.3.6    ${production.baseUrl}\n`,
    complaint: '',
  });

  const use = ['environment', 'use', 'production'];
  const silent = await ran(served, ...use);
  assert.deepEqual([silent.exitCode, silent.complaint], [64, 'Say why, for the audit log: --reason TEXT\n']);

  const slip = await ran(served, ...use, '--reason', 'a slip');
  assert.equal(slip.exitCode, 1);
  assert.match(slip.out, /^Not switched: switching to production must be confirmed by its name\.$/m);

  const done = await ran(served, ...use, '--reason', 'go-live', '--confirm', 'production');
  assert.equal(done.exitCode, 0, done.complaint);
  assert.match(done.out, /^ok {5}tcp .*\nok {5}answer .*\nNew payments go to production now\.\n$/);
  assert.equal((await call(served.url, initiation)).header('Penstock-Environment'), 'production');

  const verified = await ran(served, 'audit', 'verify');
  assert.equal(verified.exitCode, 0);
  assert.match(verified.out, /whole: 2 records/);
});

test('a command says where it looked if no gateway runs there, and fails', async (t) => {
  const served = await startGatewayProcess(t, {
    environments: { sandbox: { baseUrl: 'https://bank.example' } },
  });
  served.command.kill('SIGKILL');
  await served.command.exitCode();
  const { exitCode, complaint } = await ran(served, 'environment');
  assert.equal(exitCode, 1);
  assert.equal(
    complaint,
    `No gateway answers at ${served.adminUrl}: is it running with this configuration?\n`,
  );
});

test('penstock in-doubt lists, resolves and leaves a record; the metric counts what is left', async (t) => {
  const bank = await startBank(t);
  const served = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  assert.equal((await ran(served, 'in-doubt')).out, 'Nothing is in doubt.\n');

  bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
  const lost = { ...initiation, headers: [...initiation.headers, ['X-Request-ID', randomUUID()] as const] };
  assert.equal((await call(served.url, lost)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
  const { out } = await ran(served, 'in-doubt');
  assert.match(
    out,
    /^[0-9a-f][\w-]{35}\.[\w-]{43}\n {2}initiatePayment of anonymous in sandbox, X-Request-ID .*\n {2}OUTCOME_UNKNOWN: /,
  );
  const [id = ''] = out.split('\n');
  await until(8_000, 'the metric counts it', async () =>
    (await metricsOf(served)).includes('penstock_in_doubt 1'),
  );

  const [payment = ''] = bank.payments.map(({ paymentId }) => paymentId);
  const silent = await ran(served, 'in-doubt', id, 'happened');
  assert.deepEqual([silent.exitCode, silent.complaint], [64, 'Say why, for the audit log: --reason TEXT\n']);
  const foreign = await ran(served, 'in-doubt', 'no-such-id', 'happened', '--reason', 'a slip');
  assert.deepEqual([foreign.exitCode, foreign.out], [1, 'Nothing is in doubt under this id.\n']);
  const said = ['--payment', payment, '--reason', 'the bank, by telephone'];
  const done = await ran(served, 'in-doubt', id, 'happened', ...said);
  assert.deepEqual(
    [done.exitCode, done.out],
    [0, 'Resolved: it happened. A repeated request is answered with that.\n'],
  );

  assert.equal((await ran(served, 'in-doubt')).out, 'Nothing is in doubt.\n');
  await until(8_000, 'the metric counts it', async () =>
    (await metricsOf(served)).includes('penstock_in_doubt 0'),
  );
  assert.match((await ran(served, 'audit', 'verify')).out, /whole: 1 record,/);
});

const metricsOf = async ({ adminUrl }: GatewayProcess) =>
  (await call(adminUrl, { method: 'GET', path: '/metrics' })).text;
