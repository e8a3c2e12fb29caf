/** What a fleet still knows after a restart, and what it does when Redis was emptied. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Instance, startFleet } from '../kit/fleet.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import { until } from '../kit/within.ts';
import { environmentsOf, isNoDurabilityWarning, readinessReasons } from './instance-queries.ts';

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
      assert.deepEqual((await readinessReasons(instance)).filter(isNoDurabilityWarning), []);
    }
  });

  test('when Redis was emptied, both instances report it, and the active environment is restored', async (t) => {
    const { one, other } = await startFleet(t, await redis());
    const instances = [one, other];
    await switchEnvironment(one, 'production');
    await Promise.all(
      instances.map((instance) =>
        until(20_000, 'it has followed', () =>
          hasLogged(instance, {
            message: 'active environment read from the shared state',
            environment: 'production',
          }),
        ),
      ),
    );
    const id = await one.pay('shop');

    const { flush } = await redis();
    await flush();
    await Promise.all(
      instances.map((instance) =>
        until(20_000, 'it is noticed', async () =>
          /was emptied/.test((await readinessReasons(instance)).join()),
        ),
      ),
    );

    for (const instance of instances) {
      await until(20_000, 'it is logged', () =>
        hasLogged(instance, { level: 'error', activeEnvironment: 'production' }),
      );
      const { active, version } = await readAdminApi(instance, '/api/environments');
      assert.deepEqual([active, version], ['production', 2]);
      assert.match(await instance.pay('shop'), /^production-/);
    }
    assert.deepEqual(
      await environmentsOf([id], one),
      ['production'],
      'the instance that created it still knows it',
    );
  });
}

/** Whether a line has these fields. */
const hasLogged = (instance: Instance, fields: object) =>
  instance.logged().some((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
