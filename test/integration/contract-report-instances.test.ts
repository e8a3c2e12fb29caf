/** The report of the contract guard on two instances with one PostgreSQL: counted together, and kept over restarts of both. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { dayMs } from '../../src/store/contract-report.ts';
import { DatabaseError } from '../../src/store/database.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { contractReportOf, type ShownReport, untilShown } from '../kit/contract-report.ts';
import {
  answered,
  countAnswers,
  message,
  missing,
  required,
  startCounting,
} from '../kit/counting-instance.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { startProxiedPostgres } from '../kit/postgres-proxy.ts';
import { initiation } from '../kit/request.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** @param keepFor `contract.keepFor` */
async function startFleet(t: TestContext, keepFor = '30d') {
  const bank = await startBank(t);
  const postgres = await newMigratedPostgres();
  const sections = {
    environments: {
      sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11', contract: { responses: 'off' } },
    },
    contract: { keepFor },
    state: { postgres },
    clients: clientSettings(),
  };
  return {
    /** @returns the instance, and how to stop it */
    async start() {
      const ends: (() => unknown)[] = [];
      const stop = async () => {
        for (const end of ends.splice(0)) await end();
      };
      t.after(stop);
      return {
        gateway: await startGateway({ after: (end) => void ends.push(end) }, sections),
        stop,
      };
    },
  };
}

/** Violates the standard. */
const withoutAmount = (client: ClientName, requestId: string): Call => ({
  ...initiation,
  requestId,
  headers: [...initiation.headers, ['X-API-Key', apiKeyOf(client)]],
  body: JSON.stringify({ ...jsonOf({ text: initiation.body }), instructedAmount: undefined }),
});

const harmfulRows = ({ deviations }: ShownReport) => deviations.filter(({ level }) => level === 'harmful');

/** Sends a request with a deviation, and waits until all instances show that many. @returns the row */
async function sendAndCount(
  to: GatewayUnderTest,
  client: ClientName,
  count: number,
  instances: readonly GatewayUnderTest[],
) {
  const requestId = randomUUID();
  assert.equal((await call(to.url, withoutAmount(client, requestId))).status, 201);
  const hasCount = (report: ShownReport) => harmfulRows(report)[0]?.count === count;
  const rows: ShownReport['deviations'][number][] = [];
  for (const gateway of [to, ...instances])
    rows.push(...harmfulRows(await untilShown(() => contractReportOf(gateway), hasCount)));
  assert.equal(rows.length, 1 + instances.length); // one row on each instance
  const [row = assert.fail()] = rows;
  for (const each of rows) assert.deepEqual(each, row);
  return { ...row, requestId };
}

describe('the report of two instances', { skip: skipWithoutPostgres }, () => {
  test('adds up their counts in one row, also after one of them has been replaced', async (t) => {
    const fleet = await startFleet(t);
    const [one, other] = [await fleet.start(), await fleet.start()];
    const both = [one.gateway, other.gateway];
    const first = await sendAndCount(one.gateway, 'shop', 1, both);
    const second = await sendAndCount(other.gateway, 'till', 2, both);
    const third = await sendAndCount(one.gateway, 'shop', 3, both);
    assert.deepEqual(
      [first, second, third].map(({ firstSeen, xRequestId, requestId }) => [
        firstSeen,
        xRequestId === requestId,
      ]),
      [1, 2, 3].map(() => [first.firstSeen, true]),
    );
    assert.ok(first.lastSeen < second.lastSeen && second.lastSeen < third.lastSeen);
    assert.deepEqual(third.clients, [
      { client: 'shop', count: 2 },
      { client: 'till', count: 1 },
    ]);

    assert.equal((await call(one.gateway.url, withoutAmount('shop', randomUUID()))).status, 201);
    await one.stop(); // it writes what it has counted
    const next = await fleet.start();
    const isFour = (report: ShownReport) => harmfulRows(report)[0]?.count === 4;
    await untilShown(() => contractReportOf(other.gateway), isFour);
    const fifth = await sendAndCount(next.gateway, 'rival', 5, [other.gateway]);
    assert.equal(fifth.firstSeen, first.firstSeen);
    assert.deepEqual(fifth.clients.map(({ client, count }) => [client, count]).toSorted(), [
      ['rival', 1],
      ['shop', 3],
      ['till', 1],
    ]);
  });

  test('has days of UTC, which expire after contract.keepFor', async (t) => {
    const midnightMs = Date.parse('2027-03-02T00:00:00Z');
    t.mock.timers.enable({ apis: ['Date'], now: midnightMs - 10_000 });
    const fleet = await startFleet(t, '1d');
    const [one, other] = [(await fleet.start()).gateway, (await fleet.start()).gateway];
    const first = await sendAndCount(one, 'shop', 1, [other]);
    t.mock.timers.setTime(midnightMs + 10_000);
    const second = await sendAndCount(other, 'till', 2, [one]);
    assert.equal(second.firstSeen, first.firstSeen);
    assert.ok(second.lastSeen > first.lastSeen);

    t.mock.timers.setTime(midnightMs + dayMs + 10_000);
    const later = await contractReportOf(one);
    assert.deepEqual(
      harmfulRows(later).map(({ count, clients }) => [count, clients[0]?.client]),
      [[1, 'till']],
    );
    t.mock.timers.setTime(midnightMs + 2 * dayMs + 10_000);
    assert.deepEqual((await contractReportOf(other)).deviations, []);
  });
});

describe('the report while PostgreSQL fails', { skip: skipWithoutPostgres }, () => {
  async function start(t: TestContext) {
    const { server, proxy, url } = await startProxiedPostgres(t);
    const connect = (address: string) => {
      const database = connectPostgres(address);
      t.after(() => database.close());
      return database;
    };
    const one = startCounting(connect(url));
    return { server, proxy, one, other: startCounting(connect(server.url), one.clock) };
  }

  test('keeps what was stored before a crash, and gets what both instances have counted until it is back', async (t) => {
    const { server, one, other } = await start(t);
    const both = [one, other];
    const countOnBoth = async () => {
      const stored: boolean[] = [];
      for (const { counts, writer } of both) {
        counts.add(message(), [required]);
        stored.push(await writer.flush());
      }
      return stored;
    };
    await countAnswers(one, 10, []);
    assert.deepEqual(await countOnBoth(), [true, true]);
    await server.kill();
    assert.deepEqual(await countOnBoth(), [false, false]);
    assert.equal(await countAnswers(one, 1, [missing]), false);
    assert.equal(await countAnswers(other, 1, [missing]), false);
    await assert.rejects(one.reader.read(0), DatabaseError);
    await server.restart();
    for (const { writer } of both) await until(20_000, 'the counts are stored', () => writer.flush());

    for (const { reader } of both) {
      const { deviations, messages } = await reader.read(0);
      assert.deepEqual(
        deviations.map((row) => [row.direction, row.count, row.changedMs !== undefined]),
        [
          ['request', 4, false],
          ['response', 2, true],
        ],
      );
      assert.deepEqual(messages.map((row) => row.count).toSorted(), [12, 4]);
    }
    assert.equal(one.changes.length + other.changes.length, 1);
  });

  for (const when of ['before', 'after'] as const)
    test(`counts once if the connection is cut ${when} the server has executed the write`, async (t) => {
      const { proxy, one, other } = await start(t);
      await countAnswers(one, 10, []);
      for (const table of ['contract_deviation', 'contract_check', 'contract_kind', 'contract_baseline']) {
        const { cuts, end } = proxy.cutAt(when, new RegExp(`INSERT INTO ${table}`));
        const deviation = { ...missing, path: `body/${table}` };
        one.counts.add(answered({ operation: 'initiatePayment' }), [deviation]);
        one.counts.add(answered({ operation: 'getPayment' }), []);
        assert.equal(await one.writer.flush(), false, table);
        assert.ok(cuts() > 0, table);
        end();
        assert.equal(await one.writer.flush(), true, table);
        const { deviations } = await other.reader.read(0);
        const row = deviations.find(({ path }) => path === deviation.path);
        assert.deepEqual([row?.count, row?.changedMs !== undefined], [1, true], table);
      }
      const { messages } = await other.reader.read(0);
      assert.deepEqual(
        messages.map((row) => row.count),
        [18],
      );
      assert.equal(one.changes.length, 4);
    });
});
