/** What a fleet still knows after a restart, and after Redis was emptied. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentsOf, readinessReasons } from '../fleet/instance-queries.ts';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { startFleet } from '../kit/fleet.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import { until } from '../kit/within.ts';

/** @param redis the one that the instances share */
export function testRestarts(redis: () => Promise<FleetRedis>): void {
  test('after a restart of both instances, the active environment and the environment of every payment are as before', async (t) => {
    const { one, other } = await startFleet(t, await redis());
    const ids = [await one.pay('shop'), await other.pay('shop')];
    await switchEnvironment(one, 'production');
    ids.push(await one.pay('shop'), await other.pay('shop'));

    assert.deepEqual(await Promise.all([one.stop(), other.stop()]), [0, 0]);
    await Promise.all([one.start(), other.start()]);

    for (const instance of [one, other]) {
      const { active, version } = await readAdminApi(instance, '/api/environments');
      assert.deepEqual([active, version], ['production', 2]);
      assert.deepEqual(await environmentsOf(ids, instance), [
        'sandbox',
        'sandbox',
        'production',
        'production',
      ]);
      assert.match(await instance.pay('shop'), /^production-/);
      assert.deepEqual(await readinessReasons(instance), []);
    }
  });

  test('when Redis was emptied, the active environment and the environment of every payment are as before', async (t) => {
    const { one, other } = await startFleet(t, await redis());
    const ids = [await one.pay('shop')];
    await switchEnvironment(one, 'production');
    await until(
      20_000,
      'the other instance has followed',
      async () => (await readAdminApi(other, '/api/environments')).active === 'production',
    );
    ids.push(await one.pay('shop'));

    const { flush } = await redis();
    await flush();

    for (const instance of [one, other]) {
      const { active, version } = await readAdminApi(instance, '/api/environments');
      assert.deepEqual([active, version], ['production', 2]);
      assert.match(await instance.pay('shop'), /^production-/);
      assert.deepEqual(await readinessReasons(instance), []);
      assert.deepEqual(await environmentsOf(ids, instance), ['sandbox', 'production']);
    }
  });
}
