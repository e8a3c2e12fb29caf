/** A gateway process reloads its configuration on SIGHUP, without losing a request. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
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
      .filter((line) => line.includes('the configuration') || line.includes('the old one stays'));
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
    const { level, message } = await reload(served, { ...sections, clients: [client('two')] });
    assert.deepEqual([level, message], ['info', 'the configuration was read again']);
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

  for (const [what, content] of [
    ['is invalid', { environments: { sandbox: { baseUrl: 'nowhere' } } }],
    ['is not YAML', 'environments: {{'],
    ['is empty', ''],
  ] as const) {
    test(`keeps the old configuration if the new one ${what}, and logs every error`, async (t) => {
      const { served } = await start(t);
      const { level, message, faults } = await reload(served, content);
      assert.deepEqual([level, message], ['error', 'the configuration is faulty; the old one stays']);
      assert.match(String(faults), /environments|penstock\.yaml/);
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
    assert.match(await values(), /"connect":450,.*"write":900.*"wait":450,/);

    await reload(served, sections);
    assert.match(await values(), /"connect":2000,.*"write":35000.*"wait":2000,/);
  });

  test('logs the settings that need a restart, and applies the others', async (t) => {
    const { served, sections } = await start(t);
    const { level, needRestart } = await reload(served, {
      ...sections,
      clients: [client('two')],
      listen: { host: '127.0.0.2' },
      log: { level: 'debug' },
      payments: { rememberFor: '30d' },
      idempotency: { memory: '1MiB' },
    });
    assert.deepEqual([level, needRestart], ['info', 'listen.host, payments, idempotency.memory, log']);
    assert.equal((await initiateAs(served, 'two'))[0], 201);
    const again = await reload(served, sections);
    assert.equal(again.needRestart, undefined, 'the settings of the start need no restart');
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
