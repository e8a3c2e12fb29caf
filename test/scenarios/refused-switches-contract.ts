/** A switch to an environment that fails its checks is refused with the reason, and recorded, also if it is forced. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { writeConfigFile } from '../kit/command.ts';
import { type Instance, startFleet } from '../kit/fleet.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import { startBank } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { certificateValid, key } from '../unit/simulated-bank/certificate.ts';

const toProduction = ['environment', 'use', 'production', '--reason', 'go-live', '--confirm', 'production'];

/** @param redis the one that the instances share */
export function testRefusedSwitches(redis: () => Promise<FleetRedis>): void {
  test('a switch to an unreachable environment is refused unless it is forced, and the audit log contains both', async (t) => {
    const fleet = await startFleet(t, await redis());
    await fleet.production.stop();

    const refused = fleet.one.run(...toProduction);
    assert.equal(await refused.exitCode(), 1);
    assert.match(refused.stdout(), /^FAILED tcp +ECONNREFUSED\n$/);
    assert.match(refused.stderr(), /^Not switched: the pre-flight failed\.$/m);
    for (const instance of [fleet.one, fleet.other]) assert.match(await instance.pay('shop'), /^sandbox-/);

    const forced = fleet.other.run(...toProduction, '--force');
    assert.equal(await forced.exitCode(), 0);
    for (const instance of [fleet.one, fleet.other]) {
      assert.equal((await readAdminApi(instance, '/api/environments')).active, 'production');
      assert.deepEqual(await outcomesOf(instance), ['refused', 'forced']);
    }
  });

  test('a switch to an environment with an expired certificate is refused; after a forced one, no payment is sent there', async (t) => {
    const expired = certificateValid('2023-01-01', '2023-12-31');
    const production = await startBank(t, { name: 'production', tls: { key, cert: expired } });
    const variables = { NODE_EXTRA_CA_CERTS: writeConfigFile(t, expired) };
    const fleet = await startFleet(t, await redis(), { production, variables });

    const order = { environment: 'production', reason: 'go-live', confirm: 'production' };
    const expiry = /"step":"certificate","ok":false,"detail":"CERT_HAS_EXPIRED"/;
    const { status, text } = await callAdminApi(fleet.one, 'PUT', '/api/environments/active', order);
    assert.equal(status, 409);
    assert.match(text, expiry);
    assert.match(await fleet.other.pay('shop'), /^sandbox-/);

    await callAdminApi(fleet.one, 'PUT', '/api/environments/active', { ...order, force: true });
    assert.equal((await fleet.other.ask('shop', initiation)).header('Penstock-Error'), 'UPSTREAM_UNREACHED');
    assert.deepEqual(await outcomesOf(fleet.other), ['refused', 'forced']);
    assert.match((await callAdminApi(fleet.other, 'GET', '/api/audit')).text, expiry);
    assert.equal(production.requests.length, 0);
  });
}

/** How the switches ended that are on record, the oldest first. */
async function outcomesOf(instance: Instance): Promise<readonly unknown[]> {
  const records: unknown = JSON.parse((await callAdminApi(instance, 'GET', '/api/audit')).text);
  assert.ok(Array.isArray(records));
  return records.map(({ outcome }) => outcome).reverse();
}
