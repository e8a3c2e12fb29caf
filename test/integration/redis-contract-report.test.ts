/** The report of the contract guard in Redis: of all instances, bounded, and kept for `contract.keepFor`. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { Deviation } from '../../src/contract/deviation.ts';
import { createDeviationCounts } from '../../src/contract-guard/deviation-counts.ts';
import { createReportReader } from '../../src/contract-guard/read-report.ts';
import { createReportWriter } from '../../src/contract-guard/write-report.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { contractReportOf, type ShownReport, untilShown } from '../kit/contract-report.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const life = scopeOfAllTests();
const redis = lazy(() => startRedis(life));
const dayMs = 86_400_000;

/** @param keepFor `contract.keepFor` */
async function startFleet(t: TestContext, keepFor = '30d') {
  const bank = await startBank(t);
  const prefix = `test-${randomUUID()}:`;
  const createState = redisStateFactory((await redis()).url, prefix);
  const sections = {
    environments: {
      sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11', contract: { responses: 'off' } },
    },
    contract: { keepFor },
    clients: clientSettings(),
  };
  return {
    prefix,
    /** @returns the instance, and how to stop it */
    async start() {
      const ends: (() => unknown)[] = [];
      const stop = async () => {
        for (const end of ends.splice(0)) await end();
      };
      t.after(stop);
      return {
        gateway: await startGateway({ after: (end) => void ends.push(end) }, sections, createState()),
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

describe('the report of two instances', { skip: skipWithoutRedisServer }, () => {
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

    const { command } = await redis();
    const day = midnightMs / dayMs - 1;
    const leftMs = Number(await command('PTTL', `${fleet.prefix}requests:{${1_000_000_000 + day}}:counters`));
    assert.ok(leftMs > 0 && leftMs <= dayMs + 10_000, `${leftMs} ms`);
  });

  test('is bounded: an instance adds 1,000 harmful deviations of requests to a day, and counts the others together', async (t) => {
    const state = redisStateFactory((await redis()).url)();
    t.after(() => state.close());
    const isReachable = () => state.requestLog.readCounters(0).then(Boolean, () => false);
    await until(10_000, 'Redis is reachable', isReachable);
    const counts = createDeviationCounts();
    const keepFor = () => 30 * dayMs;
    const { requestLog, keyValues } = state;
    const { flush } = createReportWriter({
      requestLog,
      keyValues,
      instance: randomUUID(),
      take: counts.take,
      keepFor,
      onChange: () => assert.fail('requests are no change of the bank'),
    });
    const required: Deviation = { level: 'harmful', rule: 'required', path: 'body', effect: 'refused' };
    const kind = { environment: 'sandbox', hash: 'hash', isOwn: true, direction: 'request' } as const;
    for (let client = 0; client < 5_003; client++)
      counts.add(
        kind,
        {
          operation: 'initiatePayment',
          client: `client-${client}`,
          requestId: randomUUID(),
          atMs: Date.now(),
        },
        [required],
      );
    const { deviations, messages, skipped } = await createReportReader({ requestLog, flush, keepFor }).read(
      0,
    );
    assert.deepEqual(
      deviations.map(({ count, clients }) => [count, clients.length]),
      [[1_000, 1_000]],
    );
    assert.deepEqual(
      messages.map(({ count, clients }) => [count, clients.length]),
      [[5_003, 5_003]],
    );
    assert.deepEqual(
      skipped.map(({ reason, count }) => [reason, count]),
      [['not-counted', 4_003]],
    );
  });
});
