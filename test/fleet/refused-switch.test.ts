/** A switch to a side of the bank that is not well is refused, says why, and stands on record, by force as well. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Instance, startFleet } from '../kit/fleet.ts';
import { oneRedis } from '../kit/fleet-redis.ts';
import { startBank } from '../kit/gateway.ts';
import { operate, shown } from '../kit/operator.ts';
import { withoutRedisServer } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { certificateValid, key } from '../unit/simulated-bank/certificate.ts';

const toProduction = ['environment', 'use', 'production', '--reason', 'go-live', '--confirm', 'production'];

describe('a switch to production', { skip: withoutRedisServer }, () => {
  test('is refused while it is down, and all instances stay; forced, it is done, and both stand on record', async (t) => {
    const fleet = await startFleet(t, await oneRedis(t));
    await fleet.production.stop();

    const refused = fleet.one.command(...toProduction);
    assert.equal(await refused.ended(), 1);
    assert.match(refused.stdout(), /^FAILED tcp +ECONNREFUSED\nNot switched: the pre-flight failed\.\n$/);
    for (const instance of [fleet.one, fleet.other]) assert.match(await instance.pay('shop'), /^sandbox-/);

    const forced = fleet.other.command(...toProduction, '--force');
    assert.equal(await forced.ended(), 0);
    for (const instance of [fleet.one, fleet.other]) {
      assert.equal((await shown(instance, '/api/environments')).active, 'production');
      assert.deepEqual(await outcomesOf(instance), ['refused', 'forced']);
    }
  });

  test('is refused if its certificate has expired, and says so on record; forced, not even a payment gets there', async (t) => {
    const expired = certificateValid('230101000000Z', '231231235959Z');
    const production = await startBank(t, { name: 'production', tls: { key, cert: expired } });
    const redis = await oneRedis(t);
    const trusted = join(redis.folder, 'trusted.pem');
    writeFileSync(trusted, expired);
    const fleet = await startFleet(t, redis, { production, variables: { NODE_EXTRA_CA_CERTS: trusted } });

    const order = { environment: 'production', reason: 'go-live', confirm: 'production' };
    const expiry = /"step":"certificate","ok":false,"detail":"CERT_HAS_EXPIRED"/;
    const { status, text } = await operate(fleet.one, 'PUT', '/api/environments/active', order);
    assert.equal(status, 409);
    assert.match(text, expiry);
    assert.match(await fleet.other.pay('shop'), /^sandbox-/);

    await operate(fleet.one, 'PUT', '/api/environments/active', { ...order, force: true });
    assert.equal((await fleet.other.ask('shop', initiation)).header('Penstock-Error'), 'UPSTREAM_UNREACHED');
    assert.deepEqual(await outcomesOf(fleet.other), ['refused', 'forced']);
    assert.match((await operate(fleet.other, 'GET', '/api/audit')).text, expiry);
    assert.equal(production.requests.length, 0);
  });
});

describe('penstock audit verify', { skip: withoutRedisServer }, () => {
  test('finds one byte that was changed in Redis', async (t) => {
    const redis = await oneRedis(t);
    const { one, other } = await startFleet(t, redis);
    for (const [instance, environment] of [
      [one, 'production'],
      [other, 'sandbox'],
      [one, 'production'],
    ] as const) {
      const order = { environment, reason: 'a test', confirm: environment };
      assert.equal((await operate(instance, 'PUT', '/api/environments/active', order)).status, 200);
    }
    const whole = other.command('audit', 'verify');
    assert.equal(await whole.ended(), 0);
    assert.equal(whole.stdout(), 'The audit log is whole: 3 records, each following the one before.\n');

    const [name] = (await redis.command('KEYS', '*audit:2')) as string[]; // the answer to KEYS
    const record = String(await redis.command('GET', name ?? ''));
    await redis.command('SET', name ?? '', record.replace('a test', 'a tess'));
    for (const instance of [one, other]) {
      const broken = instance.command('audit', 'verify');
      assert.equal(await broken.ended(), 1);
      assert.match(broken.stdout(), /record 2 was altered/);
    }
  });
});

/** How the switches ended that are on record, the oldest first. */
async function outcomesOf(instance: Instance): Promise<readonly unknown[]> {
  const records: unknown = JSON.parse((await operate(instance, 'GET', '/api/audit')).text);
  assert.ok(Array.isArray(records));
  return records.map(({ outcome }) => outcome).reverse();
}
