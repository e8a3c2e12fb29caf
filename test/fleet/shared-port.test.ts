/** Two processes on one port: both are restarted in turn under load, and one is killed. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { reusePortWarning } from '../../src/http/reuse-port.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { type Fleet, type Instance, startFleet } from '../kit/fleet.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { runInNetworkNamespace, skipWithoutNetworkNamespace } from '../kit/network-namespace.ts';
import { skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { mixed } from './mixed-load.ts';

describe('two processes on one port', { skip: skipWithoutRedisServer || skipWithoutPostgres }, () => {
  if (reusePortWarning() !== undefined) {
    test('warn at the start if the kernel does not migrate pending connections', async (t) => {
      const { one, other } = await startFleet(t, await startSingleRedis(t), { port: 'shared' });
      for (const instance of [one, other]) assert.equal(warningsOf(instance).length, 1);
    });

    // Where the kernel resets connections that a stopping process has not accepted, the gateway cannot prevent failures.
    test('restart and fail without loss in a network namespace that migrates pending connections', {
      skip: skipWithoutNetworkNamespace(),
    }, async (t) => {
      const { socketUrl } = await startPostgres(t, 'fsync=off');
      const { code, said } = await runInNetworkNamespace(import.meta.filename, socketUrl);
      assert.equal(code, 0, said);
      assert.match(said, /tests 2\n/);
    });
    return;
  }

  test('can be restarted one after the other without a failed request', async (t) => {
    const { one, other, sandbox } = await startFleet(t, await startSingleRedis(t), { port: 'shared' });
    const ids = await Promise.all(Array.from({ length: 10 }, () => one.pay('shop')));
    sandbox.injectFault({ name: 'latency', ms: 300 }, { operation: 'getPayment' });
    assert.deepEqual([one, other].flatMap(warningsOf), []);
    const ask = createClient(t, one);

    let isRestarting = false;
    const load = startLoad(t, { perSecond: 75 }, (number) =>
      measureExchange(mixed(ids, number), (sent) =>
        ask(sent, number).catch((error: unknown) => {
          if (isRestarting && isReset(error)) return ask(sent, number);
          throw error;
        }),
      ),
    );
    for (const instance of [one, other]) {
      await hasServed(instance);
      isRestarting = true;
      assert.equal(await instance.stop(), 0);
      await instance.start();
      isRestarting = false;
    }
    await Promise.all([one, other].map(hasServed));
    const exchanges = await load.stop();

    assert.deepEqual(failuresIn(exchanges), {});
    const initiated = exchanges.filter(({ call: { path } }) => path === transfersPath);
    assert.equal(sandbox.payments.length, ids.length + initiated.length, 'each payment once');
  });

  test('lose only the requests in progress when one is killed, and the other lists its payments in doubt', async (t) => {
    const fleet = await startFleet(t, await startSingleRedis(t), { port: 'shared' });
    const { one, other, sandbox } = fleet;
    const ids = await Promise.all(Array.from({ length: 10 }, () => one.pay('shop')));
    const before = sandbox.payments.length;
    const ask = createClient(t, one);
    sandbox.injectFault(
      { name: 'latency', ms: 2_000, strikes: 'after-effect' },
      { operation: 'initiatePayment' },
    );

    const payments = Array.from({ length: 20 }, () => measureExchange(initiation, (sent) => ask(sent, 0)));
    const load = startLoad(t, { perSecond: 75 }, (number) =>
      measureExchange(mixed(ids, 4 + (number % 4)), (sent) => ask(sent, number)),
    );
    await load.hasSent(75);
    await sandbox.waitUntil(() => sandbox.payments.length === before + payments.length);
    assert.equal(await one.stop('SIGKILL'), 'SIGKILL');
    const goneAtMs = performance.now();
    await load.hasSentMore(150);

    const exchanges = [...(await Promise.all(payments)), ...(await load.stop())];
    const lost = exchanges.filter(({ came }) => came instanceof Error || came.status >= 300);
    for (const { sentAtMs, came } of lost) {
      assert.ok(came instanceof Error, 'the connection broke, and nothing else failed');
      assert.ok(
        sentAtMs <= goneAtMs,
        `sent ${Math.round(sentAtMs - goneAtMs)} ms after the process was gone`,
      );
    }
    const lostPayments = lost.filter(({ call: { path } }) => path === transfersPath).length;
    assert.ok(lostPayments > 0 && lostPayments < payments.length, `${lostPayments} payments were lost`);
    await until(30_000, 'they are listed', async () => (await inDoubt(fleet)) === lostPayments);
    assert.equal(sandbox.payments.length, before + payments.length, 'each payment once');
    assert.equal(await other.stop(), 0);
  });
});

/** Waits until a process has taken its part of the load: it logs a line for each request. */
const hasServed = (instance: Instance) => until(20_000, 'it serves', () => instance.logged().length > 50);

/**
 * A process that stops closes the connections on which it has received no request for 100 ms, and a client that is about
 * to send one on a busy machine gets a reset. The repeat has another X-Request-ID: if the process had received the first
 * request, there would be two payments.
 */
const isReset = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ECONNRESET';

/** Its warnings about the kernel setting. */
const warningsOf = (instance: Instance) =>
  instance
    .logged()
    .filter(({ level, message }) => level === 'warn' && /tcp_migrate_req/.test(String(message)));

/** Sends two of three requests on connections that are kept, and each third one on a new one. */
function createClient(t: TestContext, { url }: Instance) {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  return ({ headers = [], ...rest }: Call, number: number) => {
    const sent = { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf('shop')] as const] };
    return call(url, sent, number % 3 === 0 ? undefined : agent);
  };
}

/** How many payments the other process lists. */
async function inDoubt({ other }: Fleet): Promise<number> {
  const listed: unknown = jsonOf(await callAdminApi(other, 'GET', '/api/in-doubt'));
  return Array.isArray(listed) ? listed.length : -1;
}
