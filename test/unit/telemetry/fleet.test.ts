import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { migrate } from '../../../src/store/migrations.ts';
import { inMemory, openSqlite } from '../../../src/store/sqlite.ts';
import { createFleet, type Fleet } from '../../../src/telemetry/fleet.ts';
import { createReportTable, type InstanceReport } from '../../../src/telemetry/fleet-reports.ts';
import type { SecondCounts } from '../../../src/telemetry/live-stats.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { createFaultyDatabase, type FaultyDatabase } from '../../kit/faulty-database.ts';
import { instanceReport, secondWith } from '../../kit/fleet-reports.ts';
import { skipWithoutPostgres } from '../../kit/postgres.ts';

interface FleetMember {
  readonly name: string;
  readonly fleet: Fleet;
  /** What its fleet has noticed, such as `lost two`. */
  readonly noticed: readonly string[];
  /** Its connection to the database. */
  readonly link: FaultyDatabase;
  /** Whether it does anything; a killed one never does again. */
  isRunning: boolean;
  /** By how much its clock is ahead. */
  aheadMs: number;
  /** The requests of every second, and the reports' other contents. */
  requests: number;
  more: Partial<InstanceReport>;
}

/** Instances on one database, which has the clock of the test. Time passes in quarters of a second. */
async function startNetwork(t: TestContext) {
  const startMs = Date.UTC(2026, 0, 31, 12);
  const clock = { nowMs: startMs };
  const database = openSqlite(inMemory, () => clock.nowMs);
  t.after(() => database.close());
  await migrate(database);
  const members: FleetMember[] = [];

  function start(name: string): FleetMember {
    const noticed: string[] = [];
    const link = createFaultyDatabase(database);
    const fleet = createFleet(
      createReportTable(link),
      name,
      {
        onLost: (last) => noticed.push(`lost ${last.name}`),
        onReturned: (last) => noticed.push(`returned ${last.name}`),
      },
      () => clock.nowMs - startMs,
      () => clock.nowMs + member.aheadMs,
    );
    const member: FleetMember = {
      ...{ name, fleet, noticed, link, isRunning: true, aheadMs: 0, requests: 0, more: {} },
    };
    members.push(member);
    return member;
  }

  function secondsOf({ requests, aheadMs }: FleetMember): readonly SecondCounts[] {
    const current = Math.floor((clock.nowMs + aheadMs) / 1_000);
    return Array.from({ length: 10 }, (_, index) => secondWith(current - 10 + index, requests));
  }

  async function pass(ms: number): Promise<void> {
    for (const endMs = clock.nowMs + ms; clock.nowMs < endMs; ) {
      clock.nowMs += 250;
      for (const member of members.filter(({ isRunning }) => isRunning)) {
        if (clock.nowMs % 1_000 === 0) member.fleet.publish(instanceReport(member.more), secondsOf(member));
        if (clock.nowMs % 1_000 === 250) await member.fleet.read();
        member.fleet.check();
      }
      await setImmediate();
    }
  }

  return {
    database,
    pass,
    start,
    statuses: ({ fleet }: FleetMember) =>
      Object.fromEntries(fleet.instances().map(({ name, status }) => [name, status])),
  };
}

describe('the fleet', () => {
  test('shows the same instances on each of them, in the order of their names', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [two, one] = [start('two'), start('one')];
    two.more = { ready: false, reasons: ['draining'] };
    await pass(2_000);
    const views = one.fleet.instances();
    assert.deepEqual(
      views.map(({ name, status, ready, reasons }) => [name, status, ready, reasons]),
      [
        ['one', 'up', true, []],
        ['two', 'up', false, ['draining']],
      ],
    );
    assert.deepEqual(two.fleet.instances(), views);
    assert.deepEqual(one.fleet.scope(), { isComplete: true, why: null });
  });

  test('shows an instance as down within three seconds after its end, and notices it once', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await pass(4_000);
    two.isRunning = false;
    await pass(2_250);
    assert.equal(statuses(one).two, 'up');
    await pass(750);
    const views = one.fleet.instances();
    assert.deepEqual(statuses(one), { one: 'up', two: 'down', three: 'up' });
    assert.deepEqual(three.fleet.instances(), views);
    assert.deepEqual(
      views.filter(({ name }) => name === 'two').map(({ ready, reasons }) => [ready, reasons]),
      [[false, ['no report since 2026-01-31T12:00:04.000Z']]],
    );
    await pass(60_000);
    assert.deepEqual([one.noticed, three.noticed], [['lost two'], ['lost two']]);
  });

  test('notices that a lost instance reports again', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    await pass(3_000);
    two.isRunning = false;
    await pass(10_000);
    two.isRunning = true;
    await pass(2_000);
    assert.deepEqual(one.noticed, ['lost two', 'returned two']);
    assert.deepEqual([statuses(one), statuses(two)], [statuses(two), { one: 'up', two: 'up' }]);
    assert.deepEqual(two.noticed, [], 'the others did not stop while it was suspended');
  });

  test('shows a stopped instance as stopped, and never as down', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    await pass(3_000);
    two.isRunning = false;
    await two.fleet.stop();
    await pass(60_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'stopped' });
    assert.deepEqual(one.noticed, []);
  });

  test('lists an instance for an hour after its end', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await pass(2_000);
    two.isRunning = three.isRunning = false;
    await three.fleet.stop();
    await pass(3_590_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'down', three: 'stopped' });
    await pass(20_000);
    assert.deepEqual(statuses(one), { one: 'up' });
  });

  test('does not judge the others while the database is unavailable, and says that it shows only itself', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const all = [start('one'), start('two'), start('three')];
    const [one, two, three] = [all[0] ?? assert.fail(), all[1] ?? assert.fail(), all[2] ?? assert.fail()];
    await pass(3_250); // the outage begins between the reports
    for (const member of all) member.link.fail('before');
    await pass(4_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'unknown', three: 'unknown' });
    assert.equal(one.fleet.scope().isComplete, false);
    assert.match(one.fleet.scope().why ?? '', /the database is unavailable/);
    await pass(120_000);
    three.isRunning = false;
    for (const member of all) member.link.recover();
    await pass(1_500);
    assert.deepEqual(statuses(one), { one: 'up', two: 'up', three: 'unknown' });
    await pass(3_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'up', three: 'down' });
    assert.deepEqual([one.noticed, two.noticed], [['lost three'], ['lost three']]);
  });

  test('does not judge the others while reports can be read and not be stored, as while a standby is missing', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const all = [start('one'), start('two')];
    const [one = assert.fail()] = all;
    await pass(4_000);
    for (const { link } of all) link.fail('before', /INSERT INTO instance_report/);
    await pass(10_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'unknown' });
    assert.equal(one.fleet.scope().isComplete, false);
    for (const { link } of all) link.recover();
    await pass(4_000);
    assert.deepEqual([statuses(one), one.noticed], [{ one: 'up', two: 'up' }, []]);
  });

  test('learns at its start which instances have ended before, and notices those that ended with all others', async (t) => {
    const { pass, start, statuses } = await startNetwork(t);
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await pass(2_000);
    one.isRunning = false;
    await pass(5_000);
    two.isRunning = false;
    await two.fleet.stop();
    three.isRunning = false; // killed while no other instance runs
    await pass(10_000);
    const four = start('four');
    await pass(1_250);
    assert.deepEqual(statuses(four), { one: 'unknown', two: 'stopped', three: 'unknown', four: 'up' });
    await pass(3_000);
    assert.deepEqual(statuses(four), { one: 'down', two: 'stopped', three: 'down', four: 'up' });
    assert.deepEqual(four.noticed, ['lost one', 'lost three']); // several instances may notice one loss
  });

  test('shows the version, the configuration and the clock of each instance', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    two.aheadMs = 5_000;
    two.more = { version: '0.2.0', configurationHash: 'another hash' };
    await pass(4_250);
    assert.deepEqual(
      one.fleet
        .instances()
        .map(({ name, version, configurationHash, clockDifferenceMs }) => [
          ...[name, version, configurationHash, clockDifferenceMs],
        ]),
      [
        ['one', '0.1.0', 'a hash', 0],
        ['two', '0.2.0', 'another hash', 5_000],
      ],
    );
    // The times are the database's.
    assert.deepEqual(
      one.fleet.instances().map(({ since, lastSeen }) => [since, lastSeen]),
      [
        ['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:04.000Z'],
        ['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:04.000Z'],
      ],
    );
  });

  test('ignores reports of a newer version, and members that it does not know', async (t) => {
    const { database, pass, start, statuses } = await startNetwork(t);
    const [one] = [start('one'), start('two')];
    await pass(2_250);
    const copyAs = (name: string, from: string, to: string) =>
      database.query(
        `INSERT INTO instance_report SELECT $1, started_at, reported_at, stopped_at, version, clock_difference_ms,
           configuration_hash, replace(report, $2, $3) FROM instance_report WHERE id = 'two'`,
        [name, from, to],
      );
    await copyAs('text', '{', '');
    await copyAs('changed', '"ready":true', '"ready":1');
    await copyAs('longer', '"ready":true', '"ready":true,"mood":"good"');
    await one.fleet.read();
    assert.deepEqual(statuses(one), { one: 'up', two: 'up', longer: 'up' });
    assert.ok(!('mood' in (one.fleet.instances()[0] ?? {})));
  });
});

describe('the seconds of the fleet', () => {
  const shown = ({ fleet }: FleetMember) => fleet.seconds().map(({ at, requests }) => [at % 100, requests]);

  test('are the sums of all instances, the same on each of them', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(3_250);
    assert.deepEqual(one.fleet.seconds(), two.fleet.seconds());
    assert.deepEqual(shown(one).at(-1), [2, 7]);
    assert.ok(shown(one).length >= 10);
  });

  test('are complete also if the clock of an instance is half a minute ahead', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests, two.aheadMs] = [3, 4, 30_000];
    await pass(20_250);
    const requestsOf = ({ fleet }: FleetMember) =>
      fleet
        .seconds()
        .slice(-10)
        .map(({ requests }) => requests);
    assert.deepEqual(
      requestsOf(one),
      Array.from({ length: 10 }, () => 7),
    );
    assert.deepEqual(
      requestsOf(two),
      Array.from({ length: 10 }, () => 7),
    );
  });

  test('reach an instance that has just started, also those from before', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(60_000);
    const three = start('three');
    await pass(3_000);
    assert.deepEqual(three.fleet.seconds(), one.fleet.seconds());
    assert.deepEqual(three.fleet.seconds(), two.fleet.seconds());
  });

  test('wait for an instance that is late, but not for one that is down', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(10_000);
    two.isRunning = false;
    await pass(1_000);
    assert.deepEqual(shown(one).at(-1), [9, 7], 'the tenth second is incomplete');
    await pass(5_000);
    assert.deepEqual(shown(one).at(-1), [15, 3]);
  });

  test('are those of this instance while the database is unavailable, and complete afterwards', async (t) => {
    const { pass, start } = await startNetwork(t);
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(5_000);
    one.link.fail('before');
    await pass(6_000);
    assert.deepEqual(shown(one).at(-1), [10, 3]);
    one.link.recover();
    await pass(4_000);
    assert.deepEqual(one.fleet.seconds(), two.fleet.seconds());
    assert.deepEqual(
      shown(one).find(([at]) => at === 8),
      [8, 7],
    );
  });
});

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`the table of reports: ${dialect}`, {
    skip: dialect === 'postgres' && skipWithoutPostgres,
  }, () => {
    const own = {
      ...instanceReport(),
      ...{ id: 'one', ageMs: 60_000, hasStopped: false, clockDifferenceMs: -7, from: 1, through: 9 },
    };

    test('contains one report of each instance, and its seconds once', async (t) => {
      const table = createReportTable(await newGatewayDatabase(t, dialect));
      const seconds = [secondWith(8, 3), secondWith(9, 4)];
      const storedAtMs = await table.write(own, seconds);
      assert.ok(Math.abs(storedAtMs - Date.now()) < 60_000);
      await table.write({ ...own, ready: false, reasons: ['draining'], through: 10 }, seconds);
      await table.write({ ...own, id: 'two', hasStopped: true }, [secondWith(9, 5)]);
      const { databaseNowMs, reports, seconds: found } = await table.readSince(undefined);
      assert.ok(databaseNowMs >= storedAtMs);
      assert.deepEqual(
        reports
          .toSorted((one, other) => one.id.localeCompare(other.id))
          .map(({ id, ready, hasStopped, through, clockDifferenceMs, configurationHash, version }) => [
            ...[id, ready, hasStopped, through, clockDifferenceMs, configurationHash, version],
          ]),
        [
          ['one', false, false, 10, -7, 'a hash', '0.1.0'],
          ['two', true, true, 9, -7, 'a hash', '0.1.0'],
        ],
      );
      for (const { startedAtMs, reportedAtMs } of reports) {
        assert.ok(Math.abs(reportedAtMs - startedAtMs - 60_000) < 5_000);
        assert.ok(reportedAtMs <= databaseNowMs);
      }
      assert.deepEqual(
        found.map(({ instance, counts }) => [instance, counts.at, counts.requests]).toSorted(),
        [
          ['one', 8, 3],
          ['one', 9, 4],
          ['two', 9, 5],
        ],
      );
    });

    test('is read from where the last read stopped, and loses what is old', async (t) => {
      const database = await newGatewayDatabase(t, dialect);
      const table = createReportTable(database);
      await table.write(own, [secondWith(9, 4)]);
      const age = (ms: number) =>
        database
          .query(`UPDATE instance_second SET inserted_at = inserted_at - ${ms}`)
          .then(() => database.query(`UPDATE instance_report SET reported_at = reported_at - ${ms}`));
      const countSince = async (last: number | undefined) => {
        const { reports, seconds } = await table.readSince(last);
        return [reports.length, seconds.length];
      };
      const { databaseNowMs } = await table.readSince(undefined);
      assert.deepEqual(await countSince(databaseNowMs), [1, 1], 'what may have been committed late');
      await age(10_000);
      assert.deepEqual(await countSince(databaseNowMs), [0, 0]);
      await table.deleteOld();
      assert.deepEqual(await countSince(undefined), [1, 1]);
      await age(890_000);
      await table.deleteOld();
      assert.deepEqual(await countSince(undefined), [1, 1], 'alerts look at the initiations of 15 minutes');
      await age(61_000);
      await table.deleteOld();
      assert.deepEqual(await database.query('SELECT * FROM instance_second'), []);
      assert.deepEqual(await countSince(undefined), [1, 0]);
      await age(3_600_000);
      await table.deleteOld();
      assert.deepEqual(await database.query('SELECT * FROM instance_report'), []);
    });
  });
