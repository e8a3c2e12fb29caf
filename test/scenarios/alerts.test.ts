/** Ten situations of an operator: each has its alerts and its screen of `penstock status` soon after its cause, and they go by themselves. */

import assert from 'node:assert/strict';
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { freePort } from '../kit/ports.ts';
import { administrate, skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { ask } from '../kit/replicated-postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import {
  created,
  type DecidedBank,
  startWatchedFleet,
  tppError,
  type WatchedFleet,
} from '../kit/watched-fleet.ts';
import { until } from '../kit/within.ts';

const instant = transfersPath.replace('sepa', 'instant-sepa');

interface Situation {
  /** `severity id` */
  readonly alerts: readonly string[];
  readonly text: RegExp;
  readonly exitCode: number;
  readonly screen: RegExp;
  readonly cause: () => unknown;
  /** Without it, the test does not wait until it is over. */
  readonly end?: () => unknown;
}

/** Lives through a situation, and prints what an operator sees. */
async function live(t: TestContext, fleet: WatchedFleet, name: string, one: Situation): Promise<void> {
  await one.cause();
  const { alerts, seconds } = await fleet.untilAlerts(one.alerts);
  assert.match(alerts.map(({ text }) => text).join('\n'), one.text);
  let screen = '';
  // The instances find it one after the other.
  await until(
    5_000,
    () => `the screen shows it:\n${screen}`,
    async () => {
      const status = await fleet.status();
      screen = status.screen;
      return status.exitCode === one.exitCode && one.screen.test(screen);
    },
  );
  await one.end?.();
  const ended = one.end ? `, gone ${(await fleet.untilQuiet()).toFixed(1)} s after the end` : '';
  t.diagnostic(`${name}: alerts after ${seconds.toFixed(1)} s${ended}\n${screen}`);
}

const life = scopeOfAllTests();
/** The server of the whole suite may lose payments, which is an alert. */
const safePostgres = lazy(() => startPostgres(life, 'fsync=on'));

/** A database of its own on it. */
async function newSafeDatabase(): Promise<string> {
  const { url } = await safePostgres();
  const name = `alerts_${randomUUID().replaceAll('-', '')}`;
  await administrate(url, `CREATE DATABASE ${name}`);
  return url.replace(/postgres$/, name);
}

describe('an operator sees', {
  concurrency: true,
  skip: skipWithoutPostgres || skipWithoutRedisServer,
}, () => {
  test('that the bank refuses all payments, or one product', async (t) => {
    const fleet = await startWatchedFleet(t, { postgres: await newSafeDatabase() });
    const { production, first } = fleet;
    assert.match((await fleet.status()).screen, /^Customers can pay\.\n {2}New payments go to production/);
    await live(t, fleet, 'the bank refuses all', {
      cause() {
        production.respond = () => tppError(401, 'CERTIFICATE_REVOKED');
      },
      end() {
        production.respond = undefined;
      },
      alerts: ['critical initiations-unauthorised'],
      text: /refuses payments with 401 CERTIFICATE_REVOKED/,
      exitCode: 2,
      screen: /^Customers cannot pay\./,
    });
    await live(t, fleet, 'one product refused', {
      async cause() {
        production.respond = ({ path }) =>
          path.includes('instant-sepa') ? tppError(403, 'PRODUCT_INVALID') : undefined;
        for (let count = 0; count < 12; count += 1) await call(first.url, { ...initiation, path: instant });
      },
      async end() {
        production.respond = undefined;
        for (let count = 0; count < 15; count += 1) await call(first.url, { ...initiation, path: instant });
      },
      alerts: ['warning initiations-unauthorised'],
      text: /403 PRODUCT_INVALID: (\d+) of \1 initiations of payments\/instant-sepa-credit-transfers/,
      exitCode: 1,
      screen: /^Some payments fail, or wait\./,
    });
  });

  test('that a 429 has lowered the rate, and that the bank is slow', async (t) => {
    const fleet = await startWatchedFleet(t, { postgres: await newSafeDatabase() });
    const { production, first } = fleet;
    await live(t, fleet, 'the bank is slow', {
      cause() {
        production.respond = () => setTimeout(5_500).then(created);
      },
      end() {
        production.respond = undefined;
      },
      alerts: ['warning bank-slow'],
      text: /The bank takes \d\.\d s for an initiation/,
      exitCode: 1,
      screen: /^Customers can pay\.[\s\S]*WARNING {2}bank-slow/,
    });
    await live(t, fleet, '429 lowers the rate', {
      async cause() {
        const endsAtMs = performance.now() + 5_000;
        production.respond = () =>
          performance.now() < endsAtMs ? tppError(429, 'ACCESS_EXCEEDED') : undefined;
        for (let count = 0; count < 4; count += 1) {
          await call(first.url, { ...initiation, path: instant });
          await fleet.pay();
        }
      },
      // The rate recovers within two minutes.
      alerts: ['warning rate-lowered'],
      text: /The bank has answered 429: production is called at \d+\.\d of 50\/s/,
      exitCode: 1,
      screen: /WARNING {2}rate-lowered/,
    });
  });

  // Three situations with their ends: two minutes on a busy machine.
  test('that Redis is gone, that configurations differ, and that an instance was killed', {
    timeout: 300_000,
  }, async (t) => {
    const redis = await startRedis(t);
    const fleet = await startWatchedFleet(t, { redis: redis.url, postgres: await newSafeDatabase() });
    const { second, settings } = fleet;
    await live(t, fleet, 'Redis is gone', {
      cause: () => redis.kill(),
      end: () => redis.restart(),
      alerts: ['warning redis-unavailable'],
      text: /./,
      exitCode: 1,
      screen: /^Customers can pay\.[\s\S]*No payment depends on it/,
    });
    await live(t, fleet, 'configurations differ', {
      cause() {
        second.rewrite({ ...settings, deadlines: { read: '7s' } });
        second.command.kill('SIGHUP');
      },
      end() {
        second.rewrite(settings);
        second.command.kill('SIGHUP');
      },
      alerts: ['warning configurations-differ'],
      text: /run with different configurations: .+ \/ /,
      exitCode: 1,
      screen: /penstock reload --all/,
    });
    await second.stop('SIGKILL');
    const { alerts, seconds } = await fleet.untilAlerts(['warning instance-lost']);
    assert.match(alerts[0]?.text ?? '', /is down: its last report was at/);
    const { exitCode, screen } = await fleet.status();
    assert.equal(exitCode, 1, screen);
    assert.match(screen, /^Customers can pay\./);
    await second.start();
    let last = '';
    // The instances find it one after the other.
    await until(
      10_000,
      () => `the lost instance is over: ${last}`,
      async () => {
        const restarted = await fleet.untilAlerts(['warning instance-restarts']); // for an hour
        const others = restarted.alerts.filter(({ id }) => id !== 'instance-restarts');
        last = JSON.stringify(others);
        return others.every(({ id, text }) => id === 'instance-lost' && text.includes('Over since'));
      },
    );
    t.diagnostic(`an instance is killed: alert after ${seconds.toFixed(1)} s\n${screen}`);
  });

  test('that the database is gone', async (t) => {
    const postgres = await startPostgres(t, 'fsync=on');
    const fleet = await startWatchedFleet(t, { postgres: postgres.url });
    await live(t, fleet, 'the database is gone', {
      cause: () => postgres.kill(),
      end: () => postgres.restart(),
      alerts: ['critical database-unavailable'],
      text: /The database cannot be used: .* Payments are refused\./,
      exitCode: 2,
      screen: /^Customers cannot pay\./,
    });
  });

  test('that payments are in doubt, of money and of the sandbox, and that an endpoint is down', async (t) => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/hook`;
    const secretFile = join(temporaryFolder(t), 'secret');
    writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}\n`);
    const key = 'key of the shop';
    const fleet = await startWatchedFleet(t, {
      postgres: await newSafeDatabase(),
      perSecond: 0.5,
      sections: {
        clients: [
          {
            name: 'shop',
            apiKeySha256: hash('sha256', key, 'hex'),
            notifications: { urls: [url], secretFile },
          },
        ],
      },
    });
    const { production, sandbox, first, settings } = fleet;
    /** The connection breaks when the bank has received the payment. */
    const breakWith = async (bank: DecidedBank, headers: readonly Field[]) => {
      const before = bank.stub.requests.length;
      bank.respond = () => new Promise<never>(() => {});
      const paid = fleet.pay({ headers });
      await until(10_000, 'the bank has received it', () => bank.stub.requests.length > before);
      bank.stub.dropConnections();
      assert.equal((await paid).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
      bank.respond = undefined;
    };
    const headers = [...initiation.headers, ['X-API-Key', key]] as const;
    const resolveAll = async () => {
      // The bank may answer for some minutes.
      await ask(settings.state.postgres, 'UPDATE ledger SET listened_until = 0 WHERE why IS NOT NULL');
      const found = JSON.parse((await callAdminApi(first, 'GET', '/api/in-doubt')).text);
      for (const { id, environment } of found) {
        const order = { outcome: 'did-not-happen', reason: 'a test', confirm: environment };
        const reply = await callAdminApi(first, 'POST', `/api/in-doubt/${id}`, order);
        assert.equal(reply.status, 200, reply.text);
      }
    };
    await live(t, fleet, 'in doubt in production', {
      cause: () => breakWith(production, headers),
      end: resolveAll,
      alerts: ['critical in-doubt'],
      text: /^1 payment is in doubt in production: the bank may have executed it\.$/m,
      exitCode: 2,
      screen: /^Customers can pay\.[\s\S]*Uncertain:\n {2}1 payment is in doubt in production/,
    });
    await breakWith(sandbox, [...headers, ['Penstock-Environment', 'sandbox']]);
    await until(10_000, 'it is listed', async () =>
      (await fleet.status()).screen.includes('in doubt in sandbox'),
    );
    const ofSandbox = await fleet.status();
    assert.equal(ofSandbox.exitCode, 0, ofSandbox.screen);
    t.diagnostic(`in doubt in the sandbox\n${ofSandbox.screen}`);
    await resolveAll();

    await live(t, fleet, 'an endpoint is down', {
      async cause() {
        const reply = await fleet.pay({ headers: [...headers, ['TPP-Notification-URI', url]] });
        assert.equal(reply.status, 201, reply.text);
        const paymentId = String(jsonOf(reply).paymentId);
        const path = `${initiation.path}/${paymentId}/status`;
        production.respond = ({ method }) =>
          method === 'GET'
            ? { ...created(), status: 200, body: JSON.stringify({ transactionStatus: 'ACSP' }) }
            : undefined;
        assert.equal(
          (await call(first.url, { method: 'GET', path, headers: [['X-API-Key', key]] })).status,
          200,
        );
        const { postgres } = settings.state;
        await until(20_000, 'an attempt has failed', async () => {
          const aged = await ask(
            postgres,
            'UPDATE subscription SET failed_since = failed_since - 600000 WHERE failed_since > 0 RETURNING id',
          );
          return aged.length > 0;
        });
      },
      end: () => ask(settings.state.postgres, 'DELETE FROM subscription RETURNING id'),
      alerts: ['warning webhook-endpoint-fails'],
      text: new RegExp(
        `^http://127\\.0\\.0\\.1:${port} of shop accepts no messages: 1 message waits\\.$`,
        'm',
      ),
      exitCode: 1,
      screen: /Tell its TPP/,
    });
  });
});
