/** What a fleet still knows when it was started anew, and what it does when Redis has forgotten. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Instance, startFleet } from '../kit/fleet.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import { until } from '../kit/within.ts';
import { homesOf, reasonsOf } from './asked.ts';

/** @param redis the one that the instances share */
export function promisesOfRestarts(redis: () => Promise<FleetRedis>): void {
  test('when both instances were started anew, the active environment and the home of every payment are as before', async (t) => {
    const { one, other } = await startFleet(t, await redis());
    const born = [await one.pay('shop'), await other.pay('shop')];
    await switchEnvironment(one, 'production');
    born.push(await one.pay('shop'), await other.pay('shop'));

    assert.deepEqual(await Promise.all([one.stop(), other.stop()]), [0, 0]);
    await Promise.all([one.start(), other.start()]);

    for (const instance of [one, other]) {
      const { active, version } = await readAdminApi(instance, '/api/environments');
      assert.deepEqual([active, version], ['production', 2]);
      assert.deepEqual(await homesOf(born, instance), ['sandbox', 'sandbox', 'production', 'production']);
      assert.match(await instance.pay('shop'), /^production-/);
      assert.deepEqual(await reasonsOf(instance), []);
    }
  });

  test('when Redis was emptied, both say so, and the active environment is restored to what it was', async (t) => {
    const { one, other } = await startFleet(t, await redis());
    const instances = [one, other];
    await switchEnvironment(one, 'production');
    await Promise.all(
      instances.map((instance) =>
        until(20_000, 'it has followed', () =>
          hasLogged(instance, { message: 'the active environment is known', environment: 'production' }),
        ),
      ),
    );
    const born = await one.pay('shop');

    const { flush } = await redis();
    await flush();
    await Promise.all(
      instances.map((instance) =>
        until(20_000, 'it is noticed', async () => /was emptied/.test((await reasonsOf(instance)).join())),
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
    assert.deepEqual(await homesOf([born], one), ['production'], 'who was told goes on');
  });
}

/** Whether a line has these fields. */
const hasLogged = (instance: Instance, fields: object) =>
  instance.logged().some((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
