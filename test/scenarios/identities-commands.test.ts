/** The commands that say which tenants and environments are the same: with a running gateway, and without one. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createAuditTable } from '../../src/store/audit.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { startCommandRunner } from '../kit/command-runner.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { adminToken, type Sections, startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation } from '../kit/request.ts';
import { client } from '../kit/tenants.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';

const runCommand = startCommandRunner(scopeOfAllTests());

function run(served: GatewayProcess, ...words: readonly string[]) {
  const { args, variables } = served.order(...words);
  return runCommand(args, variables);
}

/** Runs a command that gives a reason. */
const change = (served: GatewayProcess, ...words: readonly string[]) =>
  run(served, ...words, '--reason', 'ticket 4711');

const payAs = (served: GatewayProcess, key: string) =>
  call(served.url, { ...initiation, headers: [...initiation.headers, ['X-API-Key', `key of ${key}`]] });

/** @param why a part of the message */
const assertRefusedStart = (served: GatewayProcess, why: string): Promise<void> =>
  assert.rejects(served.start(), ({ message }: Error) => {
    assert.match(message, /^the gateway ended with 78: /);
    assert.ok(message.includes(why), message);
    return true;
  });

describe('a running gateway', () => {
  test('renames, moves and refuses as the commands ask, and records it in the audit log', async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const clients = [client('shop'), client('rival'), { ...client('till'), tenant: 'shop' }];
    const served = await startGatewayProcess(t, { environments, clients });
    assert.equal((await payAs(served, 'shop')).status, 201);

    assert.match((await run(served, 'tenants', 'rename', 'shop', 'store')).stderr, /^Give a reason/);
    assert.deepEqual(await change(served, 'tenants', 'rename', 'shop', 'store'), {
      exitCode: 0,
      stdout: 'The tenant shop is also named store now: set the new name in the configuration, and reload.\n',
      stderr: '',
    });
    const inUse = await change(served, 'tenants', 'rename', 'rival', 'store');
    assert.deepEqual([inUse.exitCode, inUse.stdout], [1, '']);
    assert.match(inUse.stderr, /^Another tenant has or has had the name "store": choose another one\./);
    const unknown = await change(served, 'tenants', 'rename', 'nobody', 'somebody');
    assert.match(unknown.stderr, /^No tenant has or has had the name "nobody"\./);
    const wrong = await change(served, 'tenants', 'rename', 'shop', 'a b');
    assert.equal(wrong.exitCode, 64);
    const same = await change(served, 'tenants', 'rename', 'store', 'store');
    assert.equal(same.stdout, 'Nothing changes: the tenant has the name store already.\n');
    const reserved = await change(served, 'environment', 'rename', 'sandbox', 'active');
    assert.equal(reserved.exitCode, 64);
    assert.match(reserved.stderr, /to: environments\.active is a setting: choose another name/);

    const moved = await change(served, 'tenants', 'move-credential', 'till', 'rival');
    assert.match(moved.stdout, /^The client till works for tenant rival\./);
    const noClient = await change(served, 'tenants', 'move-credential', 'nobody', 'rival');
    assert.match(noClient.stderr, /^No client "nobody" is configured\./);

    const noAddress = await change(served, 'environment', 'moved', 'sandbox');
    assert.match(noAddress.stderr, /^Name the new address: --to URL/);
    const to = 'https://api.bank.example/psd2';
    const insecure = await change(served, 'environment', 'moved', 'sandbox', '--to', 'http://bank.example');
    assert.equal(insecure.exitCode, 64);
    assert.equal((await change(served, 'environment', 'moved', 'sandbox', '--to', `${to}/`)).exitCode, 0);
    const again = await change(served, 'environment', 'moved', 'sandbox', '--to', to);
    assert.equal(again.stdout, `Nothing changes: the payments of sandbox are at ${to} already.\n`);
    assert.equal((await change(served, 'environment', 'rename', 'sandbox', 'bank-a')).exitCode, 0);

    const records = (await readAdminApi(served, '/api/audit')) as unknown as readonly {
      who: string;
      action: string;
      outcome: string;
      details: Readonly<Record<string, string>>;
    }[];
    assert.deepEqual(
      records.map(({ who, action, outcome, details: { name, to, reason } }) =>
        [who, action, outcome, name, to, reason].join(' '),
      ),
      [
        'admin rename environment done sandbox bank-a ticket 4711',
        `admin move environment done sandbox ${to} ticket 4711`,
        `admin move environment done sandbox ${to} ticket 4711`,
        'admin move credential refused nobody rival ticket 4711',
        'admin move credential done till rival ticket 4711',
        'admin rename tenant done store store ticket 4711',
        'admin rename tenant refused nobody somebody ticket 4711',
        'admin rename tenant refused rival store ticket 4711',
        'admin rename tenant done shop store ticket 4711',
      ],
    );
    served.rewrite({
      environments: { 'bank-a': { baseUrl: to } },
      clients: [client('store', 'shop'), client('rival'), { ...client('till'), tenant: 'rival' }],
    });
    assert.equal((await run(served, 'reload')).exitCode, 0);
  });

  test('does not change anything for a command without a token', async (t) => {
    const served = await startGatewayProcess(t, {
      environments: { sandbox: { baseUrl: 'https://bank.example' } },
      clients: [client('shop')],
      admin: { operators: [{ name: 'olga', role: 'operate', tokenSha256: client(adminToken).apiKeySha256 }] },
    });
    const { args, variables } = served.order('tenants', 'rename', 'shop', 'store', '--reason', 'a test');
    const { exitCode } = await runCommand(args, { ...variables, PENSTOCK_ADMIN_TOKEN: 'another' });
    assert.equal(exitCode, 77);
  });
});

describe('after a refused start', () => {
  /** A gateway that has made a payment and ended, and whose configuration is then replaced. */
  async function startAndReplace(t: Parameters<typeof startBank>[0], first: Sections, next: Sections) {
    const bank = await startBank(t);
    const state = { file: join(temporaryFolder(t), 'penstock.db') };
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const served = await startGatewayProcess(t, { environments, ...first, state });
    const reply = await ('clients' in first ? payAs(served, 'shop') : call(served.url, initiation));
    assert.equal(reply.status, 201);
    await served.stop();
    served.rewrite({ environments, ...next, state });
    return { served, file: state.file };
  }

  test('the commands change the database of the configuration, so that the gateway starts', async (t) => {
    const { served, file } = await startAndReplace(
      t,
      { clients: [client('shop'), { ...client('till'), tenant: 'shop' }] },
      {
        clients: [client('store', 'shop'), { ...client('till'), tenant: 'rival' }],
        environments: { sandbox: { baseUrl: 'https://new.example' } },
      },
    );
    await assertRefusedStart(served, 'tenants rename shop store');
    const renamed = await change(served, 'tenants', 'rename', 'shop', 'store');
    assert.equal(renamed.exitCode, 0, renamed.stderr);
    assert.match(
      renamed.stdout,
      /^The tenant shop is also named store now.*\nNo gateway answered: the database/,
    );
    await assertRefusedStart(served, 'tenants move-credential till rival');
    assert.equal((await change(served, 'tenants', 'move-credential', 'till', 'rival')).exitCode, 0);
    await assertRefusedStart(served, 'environment moved sandbox --to https://new.example');
    assert.equal((await change(served, 'tenants', 'rename', 'store', 'rival')).exitCode, 1);
    assert.equal(
      (await change(served, 'environment', 'moved', 'sandbox', '--to', 'new.example')).exitCode,
      64,
    );
    const to = ['--to', 'https://new.example'];
    assert.equal((await change(served, 'environment', 'moved', 'sandbox', ...to)).exitCode, 0);

    const database = openSqlite(file);
    const records = await createAuditTable(database).newest(10);
    await database.close();
    assert.deepEqual(
      records.map(({ action, outcome }) => `${action}: ${outcome}`),
      ['move environment: done', 'rename tenant: refused', 'move credential: done', 'rename tenant: done'],
    );
    assert.match(records[0]?.who ?? '', /^command line \(.+\)$/);
    await served.start();
    assert.match((await run(served, 'audit', 'verify')).stdout, /intact/);
  });

  test('because of payments without clients, the tenant that made them is named', async (t) => {
    const { served } = await startAndReplace(t, {}, { clients: [client('shop')] });
    await assertRefusedStart(served, 'tenants rename anonymous NEW');
    assert.equal((await change(served, 'tenants', 'rename', 'anonymous', 'shop')).exitCode, 0);
    await served.start();
  });
});

test('without a gateway, a command fails if the database is in memory, missing, or not that of a gateway', async (t) => {
  const environments = { sandbox: { baseUrl: 'https://bank.example' } };
  const served = await startGatewayProcess(t, { environments });
  await served.stop();
  const rename = ['tenants', 'rename', 'anonymous', 'shop'] as const;
  const inMemory = await change(served, ...rename);
  assert.deepEqual([inMemory.exitCode, inMemory.stdout], [69, '']);
  assert.match(inMemory.stderr, /^No gateway answers, and the configuration has no database/);

  served.rewrite({ environments, state: { file: join(temporaryFolder(t), 'none.db') } });
  const missing = await change(served, ...rename);
  assert.equal(missing.exitCode, 78);
  assert.match(missing.stderr, /does not exist: if it is new, create its tables with penstock migrate/);

  served.rewrite({ environments, state: { file: '/nonexistent/penstock.db' } });
  const unreachable = await change(served, ...rename);
  assert.deepEqual([unreachable.exitCode, unreachable.stdout], [69, '']);
  assert.match(unreachable.stderr, /its database cannot be used: state\.file: .* does not exist; create it/);

  const remote = await change(served, ...rename, '--url', served.adminUrl);
  assert.equal(remote.exitCode, 69, 'the database of a gateway at --url is not known');
  assert.match(remote.stderr, /^No gateway answers at/);
});
