/** A command on either instance finds an audit record that was altered in the database. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectPostgres } from '../../src/store/postgres.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { startFleet } from '../kit/fleet.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';

describe('penstock audit verify', { skip: skipWithoutRedisServer }, () => {
  test('reports a record of which one byte was changed in the database', async (t) => {
    const redis = await startSingleRedis(t);
    const { one, other, postgres } = await startFleet(t, redis);
    for (const [instance, environment] of [
      [one, 'production'],
      [other, 'sandbox'],
      [one, 'production'],
    ] as const) {
      const order = { environment, reason: 'a test', confirm: environment };
      assert.equal((await callAdminApi(instance, 'PUT', '/api/environments/active', order)).status, 200);
    }
    const intact = other.run('audit', 'verify');
    assert.equal(await intact.exitCode(), 0);
    assert.equal(intact.stdout(), 'The hash chain of the audit log is intact (3 records).\n');

    const database = connectPostgres(postgres);
    t.after(() => database.close());
    await database.query(`UPDATE audit SET details = replace(details, 'a test', 'a tess') WHERE number = 2`);
    for (const instance of [one, other]) {
      const broken = instance.run('audit', 'verify');
      assert.equal(await broken.exitCode(), 1);
      assert.match(broken.stdout(), /record 2 was altered/);
    }
  });
});
