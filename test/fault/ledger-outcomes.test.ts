/** Statements of the ledger fail, before or after they take effect: nothing is paid twice, and no outcome is lost. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase, type FaultTime } from '../kit/faulty-database.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { until } from '../kit/within.ts';
import { newWrite, outcomeOf, withUpdates } from '../kit/writes.ts';

async function start(t: TestContext) {
  const bank = await startBank(t);
  const shared = await newGatewayDatabase(t);
  const database = createFaultyDatabase(shared);
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...withUpdates };
  const gateway = await startGateway(t, sections, { database, heartbeatDatabase: shared });
  const write = await newWrite(bank, 'initiation');
  const send = async () => outcomeOf(await call(gateway.url, write.call));
  return { bank, database, gateway, write, send };
}

describe('an initiation', () => {
  for (const when of ['before', 'after'] as const satisfies readonly FaultTime[]) {
    test(`is not sent if its claim fails ${when} it takes effect, and a repeat is executed`, async (t) => {
      const { database, write, send } = await start(t);
      database.fail(when, 'claim');
      assert.equal(await send(), '503 STATE_UNAVAILABLE');
      database.recover();
      assert.equal(write.timesReceived(), 0);
      await until(5_000, 'a repeat is executed', async () => (await send()) === '201');
      assert.deepEqual([write.timesReceived(), write.effectCount()], [1, 1]);
    });

    test(`is not sent if its mark fails ${when} it takes effect, and a repeat is executed`, async (t) => {
      const { database, write, send } = await start(t);
      database.fail(when, 'mark');
      assert.equal(await send(), '503 STATE_UNAVAILABLE');
      database.recover();
      assert.equal(write.timesReceived(), 0);
      assert.equal(await send(), '201');
      assert.deepEqual([write.timesReceived(), write.effectCount()], [1, 1]);
    });

    test(`is not sent if neither its mark nor its release is stored (${when}), and a repeat is executed`, async (t) => {
      const { database, write, send } = await start(t);
      database.fail(when, 'mark', 'release');
      assert.equal(await send(), '503 STATE_UNAVAILABLE');
      database.recover();
      await until(5_000, 'a repeat is executed', async () => (await send()) === '201');
      assert.deepEqual([write.timesReceived(), write.effectCount()], [1, 1]);
    });

    test(`has its answer stored later if that fails ${when} it takes effect, and a repeat gets it`, async (t) => {
      const { database, write, send, gateway } = await start(t);
      database.fail(when, 'recordAnswer', 'markInDoubt');
      assert.equal(await send(), '504 OUTCOME_UNKNOWN');
      if (when === 'before') assert.equal(await send(), '409 DUPLICATE_IN_FLIGHT');
      database.recover();
      await until(5_000, 'a repeat gets the answer', async () => (await send()) === '201 replayed');
      assert.deepEqual([write.timesReceived(), write.effectCount()], [1, 1]);
      assert.deepEqual(jsonOf(await callAdminApi(gateway, 'GET', '/api/in-doubt')), []);
    });
  }
});
