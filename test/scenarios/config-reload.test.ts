/** A gateway process reloads its configuration on SIGHUP, without losing a request. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi, readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { impatientState, type Sections, startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const client = (name: string) => ({
  name,
  tenant: 'shop',
  apiKeySha256: createHash('sha256').update(name).digest('hex'),
});

/** Initiates a payment as a client, whose API key is its name. @returns status and environment */
async function initiateAs(
  { url }: GatewayProcess,
  name: string,
): Promise<readonly [number, string | undefined]> {
  const { status, header } = await call(url, {
    ...initiation,
    headers: [...initiation.headers, ['X-API-Key', name]],
  });
  return [status, header('Penstock-Environment')];
}

async function start(t: TestContext, more: Sections = {}) {
  const [sandbox, production] = [
    await startBank(t, { name: 'sandbox' }),
    await startBank(t, { name: 'production' }),
  ];
  const environments = { active: 'sandbox', sandbox: { baseUrl: sandbox.baseUrl } };
  const sections: Sections = { clients: [client('one')], environments, ...more };
  const served = await startGatewayProcess(t, sections);
  return { sandbox, production, served, sections, environments };
}

/** Rewrites the file and waits until the gateway logs the result. @returns that line of the log */
async function reload(
  { command, rewrite }: GatewayProcess,
  content: Sections | string,
): Promise<Record<string, unknown>> {
  const about = () =>
    command
      .stdout()
      .split('\n')
      .filter((line) => /"configuration (not )?reloaded/.test(line));
  const before = about().length;
  rewrite(content);
  command.kill('SIGHUP');
  await until(10_000, 'the gateway has loaded its configuration', () => about().length > before);
  return JSON.parse(about().at(-1) ?? '{}');
}

describe('a reload (H5)', () => {
  test('accepts a new client, and refuses a removed one', async (t) => {
    const { served, sections } = await start(t);
    assert.deepEqual(
      [(await initiateAs(served, 'one'))[0], (await initiateAs(served, 'two'))[0]],
      [201, 401],
    );
    const { level, message, requestedBy, changes } = await reload(served, {
      ...sections,
      clients: [client('two')],
    });
    assert.deepEqual([level, message, requestedBy], ['info', 'configuration reloaded', 'SIGHUP']);
    assert.equal(changes, 'clients.one: removed; clients.two: added');
    assert.deepEqual(
      [(await initiateAs(served, 'one'))[0], (await initiateAs(served, 'two'))[0]],
      [401, 201],
    );
  });

  test('adds an environment that can be switched to, and does not change the active one', async (t) => {
    const { served, sections, environments, production } = await start(t);
    const both = { ...environments, active: 'production', production: { baseUrl: production.baseUrl } };
    await reload(served, { ...sections, environments: both });
    assert.deepEqual(await initiateAs(served, 'one'), [201, 'sandbox']);
    await switchEnvironment(served, 'production');
    assert.deepEqual(await initiateAs(served, 'one'), [201, 'production']);
    assert.equal((await readAdminApi(served, '/api/environments')).version, 2);
  });

  test('reports that a profile has another content, although no setting has changed', async (t) => {
    const profile = join(temporaryFolder(t), 'bank.yaml');
    const write = (name: string) =>
      writeFileSync(profile, `fields: [{ body: singlePayment, field: ${name}, presence: optional }]\n`);
    write('ownField');
    const bank = await startBank(t);
    const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, contract: { profile } } };
    const { served, sections } = await start(t, { environments });
    assert.equal((await reload(served, sections)).changes, 'none');
    write('otherField');
    const { changes } = await reload(served, sections);
    assert.match(
      String(changes),
      /^environments\.sandbox\.contract\.profile \(content\): [0-9a-f]{16} -> [0-9a-f]{16}$/,
    );
  });

  for (const [what, content] of [
    ['is invalid', { environments: { sandbox: { baseUrl: 'nowhere' } } }],
    ['is not YAML', 'environments: {{'],
    ['is empty', ''],
  ] as const) {
    test(`keeps the old configuration if the new one ${what}, and logs every error`, async (t) => {
      const { served } = await start(t);
      const { level, message, requestedBy, errors } = await reload(served, content);
      assert.deepEqual(
        [level, message, requestedBy],
        ['error', 'configuration not reloaded; the previous configuration stays in effect', 'SIGHUP'],
      );
      assert.match(String(errors), /environments|penstock\.yaml/);
      assert.deepEqual(await initiateAs(served, 'one'), [201, 'sandbox']);
    });
  }

  test('derives the defaults that follow a new setting, as a start does, and logs them', async (t) => {
    const { served, sections } = await start(t);
    await reload(served, { ...sections, deadlines: { write: '900ms' } });
    const { derived } =
      served.logged().find(({ message }) => message === 'some defaults follow other settings') ?? {};
    assert.match(String(derived), /^derived: deadlines\.connect 450ms \(deadlines\.write is 900ms\)$/m);
    const values = async () => {
      const { deadlines, idempotency } = await readAdminApi(served, '/api/config');
      return JSON.stringify([deadlines, idempotency]);
    };
    assert.match(await values(), /"connect":"450ms",.*"write":"900ms".*"wait":"450ms",/);

    await reload(served, sections);
    assert.match(await values(), /"connect":"2s",.*"write":"35s".*"wait":"2s",/);
  });

  test('logs the settings that need a restart, and applies the others', async (t) => {
    const { served, sections } = await start(t);
    const changed = {
      ...sections,
      clients: [client('two')],
      listen: { host: '127.0.0.2' },
      log: { level: 'debug' },
      payments: { rememberFor: '30d' },
    };
    const { level, changes, restartRequired } = await reload(served, changed);
    assert.deepEqual([level, changes], ['info', 'clients.one: removed; clients.two: added']);
    const waiting =
      'listen.host: 127.0.0.1 -> 127.0.0.2; payments.rememberFor: 400d -> 30d; log.level: info -> debug';
    assert.equal(restartRequired, waiting);
    assert.equal((await initiateAs(served, 'two'))[0], 201);
    const { listen, log } = await readAdminApi(served, '/api/config');
    assert.match(JSON.stringify([listen, log]), /"host":"127\.0\.0\.1".*"level":"info"/, 'as in effect');

    const same = await reload(served, changed);
    assert.deepEqual([same.changes, same.restartRequired], ['none', waiting]);
    const again = await reload(served, sections);
    assert.equal(again.restartRequired, undefined, 'the settings of the start need no restart');
  });

  test('can be requested by an operator, who gets the changes and is named in the log and in the audit log', async (t) => {
    const { served, sections } = await start(t);
    served.rewrite({ ...sections, shaping: { rate: '7/s' }, log: { level: 'debug' } });
    const body = { reason: 'the bank lowered our rate' };
    const { status, text } = await callAdminApi(served, 'POST', '/api/config/reload', body);
    assert.equal(status, 200, text);
    const change = { setting: 'shaping.rate', from: '100000/s', to: '7/s' };
    const waiting = { setting: 'log.level', from: 'info', to: 'debug' };
    assert.deepEqual(JSON.parse(text), { changes: [change], restartRequired: [waiting] });

    const line = served.logged().find(({ message }) => message === 'configuration reloaded');
    assert.deepEqual([line?.requestedBy, line?.changes], ['operator admin', 'shaping.rate: 100000/s -> 7/s']);
    const [record] = JSON.parse((await callAdminApi(served, 'GET', '/api/audit')).text);
    assert.deepEqual(
      [record.who, record.action, record.outcome],
      ['admin', 'reload configuration', 'applied'],
    );
    assert.equal(record.details.reason, body.reason);
  });

  test('is refused to an operator with all errors if the configuration is invalid', async (t) => {
    const { served, sections } = await start(t);
    served.rewrite({ ...sections, shaping: { rate: 7 }, deadlines: { read: '1' } });
    const { status, text } = await callAdminApi(served, 'POST', '/api/config/reload', {});
    assert.equal(status, 409);
    const { error, errors } = JSON.parse(text);
    assert.match(error, /^Not reloaded: .* the previous one stays in effect\.$/);
    assert.equal(errors.length, 2);
    assert.match(
      errors.join(),
      /deadlines\.read: expected a duration.*shaping\.rate: expected a rate|shaping\.rate: expected a rate.*deadlines\.read: expected a duration/,
    );
  });

  test('is counted by its outcome', async (t) => {
    const { served, sections } = await start(t);
    const reloads = async () => {
      const { text } = await call(served.adminUrl, { method: 'GET', path: '/metrics' });
      return text.match(/^penstock_config_reloads_total\{.*$/gm);
    };
    await reload(served, { ...sections, shaping: { rate: '7/s' } });
    await reload(served, 'environments: {{');
    await reload(served, sections);
    assert.deepEqual(await reloads(), [
      'penstock_config_reloads_total{outcome="applied"} 2',
      'penstock_config_reloads_total{outcome="refused"} 1',
    ]);
  });

  test('continues the pause that the bank has requested', async (t) => {
    const { served, sections, sandbox } = await start(t);
    sandbox.injectFault({ name: 'rate-limit', perSecond: 0.001, burst: 1, retryAfterSeconds: 60 });
    const pay = async () => (await initiateAs(served, 'one'))[0];
    assert.deepEqual([await pay(), await pay(), await pay()], [201, 429, 503]);
    await reload(served, sections);
    const statuses = await Promise.all(Array.from({ length: 10 }, pay));
    assert.deepEqual(new Set(statuses), new Set([503]));
    assert.equal(sandbox.requests.length, 2);
  });

  test('does not refill the rate while Redis is unavailable, and the gauge of the own share returns to 0 afterwards', {
    skip: skipWithoutRedisServer,
  }, async (t) => {
    const redis = await startRedis(t);
    const { served, sections } = await start(t, {
      state: { redis: redis.url, ...impatientState },
      shaping: { rate: '20/min', burst: 60, maxWait: { read: '500ms' } },
      deadlines: { read: '1min' },
    });
    const read = () => call(served.url, { ...callOf.read, headers: [['X-API-Key', 'one']] });
    const alone = async () =>
      /penstock_shaping_alone 1$/m.test(
        (await call(served.adminUrl, { method: 'GET', path: '/metrics' })).text,
      );
    assert.equal((await read()).status, 404);
    redis.freeze();
    t.after(redis.thaw);
    await until(
      10_000,
      'the instance uses its own share',
      async () => (await read()).status === 503 && alone(),
    );
    await reload(served, sections);
    assert.equal((await read()).status, 503);
    redis.thaw();
    await until(
      10_000,
      'the instance shares the rate again',
      async () => (await read()).status === 404 && !(await alone()),
    );
  });

  test('changes the configuration that the admin API shows', async (t) => {
    const { served, sections } = await start(t);
    await reload(served, { ...sections, clients: [client('one'), client('two')] });
    const { clients } = await readAdminApi(served, '/api/config');
    assert.ok(Array.isArray(clients));
    assert.deepEqual(
      clients.map(({ name }) => name),
      ['one', 'two'],
    );
  });
});
