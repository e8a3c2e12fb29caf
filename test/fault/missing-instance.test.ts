/** Redis restarts and loses nothing, but an instance is gone: nobody knows whether its last writes are lost. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { startPaymentFleet } from '../kit/payment-fleet.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { readState } from '../kit/state-reports.ts';
import { until } from '../kit/within.ts';

describe('an instance that waits for a killed one after a restart of Redis', {
  skip: skipWithoutRedisServer,
}, () => {
  test('reports that by a metric and in the log, until an operator accepts the loss', async (t) => {
    const redis = await startRedis(t, ['--appendonly', 'yes', '--appendfsync', 'always']);
    const { instances, newPayments, send } = await startPaymentFleet(t, redis.url, 2);
    const [remaining, killed] = [instances[0] ?? assert.fail(), instances[1] ?? assert.fail()];
    const succeedsAt = async (instance: number) =>
      (await Promise.all(newPayments(1).map((payment) => send(payment, instance)))).every(
        ({ outcome }) => outcome === '201',
      );
    for (const instance of [0, 1]) await until(20_000, 'payments succeed', () => succeedsAt(instance));

    await killed.stop('SIGKILL');
    await redis.restart();
    let missing: readonly string[] = [];
    await until(20_000, 'the remaining instance waits for the killed one', async () => {
      const report = await readState(remaining);
      missing = report?.missing.map(({ instance }) => instance) ?? [];
      return report?.status === 'checking' && missing.length === 1;
    });
    const [id = assert.fail()] = missing;
    const metrics = await call(remaining.adminUrl, { method: 'GET', path: '/metrics' });
    assert.match(metrics.text, /^penstock_state_loss 1$/m);
    assert.ok(
      remaining
        .logged()
        .some(
          (line) =>
            line.level === 'error' &&
            /waits for another instance/.test(String(line.why)) &&
            line.missing === id,
        ),
    );
    const [payment = assert.fail()] = newPayments(1);
    const { text } = await send(payment, 0);
    assert.match(text, /waits for another instance/);
    assert.ok(!text.includes(id), 'TPP systems do not see the ids of instances');

    const body = { reason: 'the payments of the instance are resolved with the bank' };
    assert.equal((await callAdminApi(remaining, 'POST', '/api/state/accept-loss', body)).status, 200);
    await until(20_000, 'payments succeed again', () => succeedsAt(0));
  });
});
