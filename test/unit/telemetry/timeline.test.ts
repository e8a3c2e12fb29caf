import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DatabaseError } from '../../../src/store/database.ts';
import { createTimeline, type Timeline } from '../../../src/telemetry/timeline.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { skipWithoutPostgres } from '../../kit/postgres.ts';
import { until } from '../../kit/within.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const latestMs = 8_640_000_000_000_000;
const textsOf = async (timeline: Timeline, fromMs = 0, toMs = latestMs) =>
  (await timeline.read(fromMs, toMs)).map(({ text }) => text);

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`the timeline: ${dialect}`, { skip: dialect === 'postgres' && skipWithoutPostgres }, () => {
    /** Two instances with one database, each with a link of its own. */
    async function startTimelines(t: TestContext) {
      const database = await newGatewayDatabase(t, dialect);
      const lost: string[] = [];
      const clock = { nowMs: Date.now() };
      const start = (instance: string) => {
        const link = createFaultyDatabase(database);
        const log = (_level: string, message: string) => void lost.push(message);
        return { ...createTimeline(link, instance, log, () => clock.nowMs), link };
      };
      const insertAged = (text: string, ageMs: number) =>
        database.query(
          `INSERT INTO timeline (id, happened_at, kind, instance, text, details)
           VALUES ($1, now_ms() - $2, 'start', 'one', $1, '{}')`,
          [text, ageMs],
        );
      return { database, insertAged, clock, lost, one: start('one'), other: start('other') };
    }

    test('shows the events of all instances on each of them, newest first', async (t) => {
      const { one, other } = await startTimelines(t);
      const startMs = Date.now();
      one.record({ kind: 'start', text: 'first' });
      await one.flush();
      const firstAt = (await one.read(0, latestMs))[0]?.at;
      // Times are those of the database, in milliseconds.
      await until(5_000, 'a later millisecond', () => Date.now() > Date.parse(String(firstAt)) + 1);
      other.record({
        kind: 'hold',
        text: 'second',
        who: 'olga',
        environment: 'sandbox',
        lane: 'write',
        details: { reason: 'a test' },
      });
      await other.flush();
      const entries = await one.read(startMs - 1_000, latestMs);
      assert.deepEqual(
        entries.map(({ at: _, ...entry }) => entry),
        [
          {
            kind: 'hold',
            instance: 'other',
            who: 'olga',
            environment: 'sandbox',
            lane: 'write',
            text: 'second',
            details: { reason: 'a test' },
          },
          {
            ...{ kind: 'start', instance: 'one', text: 'first', details: {} },
            ...{ who: null, environment: null, lane: null },
          },
        ],
      );
      assert.deepEqual(await other.read(startMs - 1_000, latestMs), entries);
    });

    test('stores all events that wait in one statement', async (t) => {
      const { one } = await startTimelines(t);
      for (let count = 0; count < 50; count++) one.record({ kind: 'hold', text: `${count}` });
      await one.flush();
      assert.equal(one.link.statements.length, 1);
      assert.equal((await textsOf(one)).length, 50);
    });

    test('shows an event once that several instances have noticed', async (t) => {
      const { one, other } = await startTimelines(t);
      one.record({ kind: 'lost', text: 'noticed by one', instance: 'third', id: 'lost:third' });
      await one.flush();
      other.record({ kind: 'lost', text: 'noticed by other', instance: 'third', id: 'lost:third' });
      await other.flush();
      assert.deepEqual(await textsOf(one), ['noticed by one']);
      assert.deepEqual(await textsOf(other), ['noticed by one']);
    });

    test('contains only the entries of the period, and deletes those of more than 7 days', async (t) => {
      const { one, insertAged } = await startTimelines(t);
      for (const days of [1, 2, 3, 6.9, 7.1, 8]) await insertAged(`${days} days`, days * dayMs);
      const now = Date.now();
      assert.deepEqual(await textsOf(one, now - 3.5 * dayMs, now - 1.5 * dayMs), ['2 days', '3 days']);
      await one.deleteExpired();
      assert.deepEqual(await textsOf(one), ['1 days', '2 days', '3 days', '6.9 days']);
    });

    test('keeps events while the database is unavailable, shows those of this instance, and stores them later with their times', async (t) => {
      const { one, other, insertAged } = await startTimelines(t);
      await insertAged('of another', hourMs);
      one.record({ kind: 'start', text: 'before' });
      await one.flush();
      one.link.fail('before');
      one.record({ kind: 'circuit', text: 'during' });
      const recordedMs = performance.now();
      await one.flush();
      assert.deepEqual((await textsOf(one)).toSorted(), ['before', 'during']);
      assert.deepEqual((await textsOf(other)).toSorted(), ['before', 'of another']);
      await until(5_000, 'some time has passed', () => performance.now() > recordedMs + 60);
      one.link.recover();
      await one.flush();
      const agesMs = (await other.read(0, latestMs)).map(({ at }) => Date.now() - Date.parse(at));
      assert.ok((agesMs[0] ?? 0) >= 55, 'the time is that of the event');
      for (const timeline of [one, other])
        assert.deepEqual((await textsOf(timeline)).toSorted(), ['before', 'during', 'of another']);
    });

    test('shows an event once whose insertion was repeated, because the database did not answer the first time', async (t) => {
      const { one, other } = await startTimelines(t);
      one.link.fail('after');
      one.record({ kind: 'start', text: 'once' });
      await one.flush();
      one.link.recover();
      await one.flush();
      assert.equal(one.link.statements.length, 2);
      assert.deepEqual(await textsOf(other), ['once']);
    });

    test('drops the oldest waiting events when there are too many, and logs that', async (t) => {
      const { lost, one } = await startTimelines(t);
      one.link.fail('before');
      for (let count = 0; count < 505; count++)
        one.record({ kind: 'switch', text: `event ${count}`, who: 'olga' });
      assert.equal(lost.length, 5);
      one.link.recover();
      await one.flush();
      assert.equal((await textsOf(one)).length, 500);
    });

    test('limits the circuit changes of an hour, and never what operators do', async (t) => {
      const { clock, one } = await startTimelines(t);
      for (let count = 0; count < 300; count++) one.record({ kind: 'circuit', text: `change ${count}` });
      for (let count = 0; count < 150; count++) one.record({ kind: 'hold', text: 'hold', who: 'olga' });
      await one.flush();
      const texts = await textsOf(one);
      assert.equal(texts.filter((text) => text.startsWith('change')).length, 99);
      assert.equal(texts.filter((text) => text.includes('only in the log')).length, 1);
      assert.equal(texts.filter((text) => text === 'hold').length, 150);
      clock.nowMs += hourMs;
      one.record({ kind: 'circuit', text: 'in the next hour' });
      await one.flush();
      assert.ok((await textsOf(one)).includes('in the next hour'));
    });

    test('ignores entries of a newer version, and shortens long ones', async (t) => {
      const { one, database } = await startTimelines(t);
      await database.query(
        "INSERT INTO timeline (id, happened_at, kind, instance, text, details) VALUES ('new', now_ms(), 'moved', 'one', 'moved', '{}')",
      );
      one.record({
        kind: 'reload',
        text: 'x'.repeat(5_000),
        who: 'olga',
        details: { long: 'x'.repeat(50_000) },
      });
      await one.flush();
      const [entry, ...others] = await one.read(0, latestMs);
      assert.deepEqual(others, []);
      assert.deepEqual([entry?.text.length, entry?.details], [1_000, { omitted: 'too long; see the log' }]);
    });

    test('stores the last events when it is closed, and ignores later ones', async (t) => {
      const { one, other } = await startTimelines(t);
      one.record({ kind: 'stop', text: 'last' });
      await one.close();
      one.record({ kind: 'circuit', text: 'too late' });
      await one.flush();
      assert.deepEqual(await textsOf(other), ['last']);
    });
  });

test('an entry that cannot be inserted at the moment is inserted later, and the others at once', async (t) => {
  const database = await newGatewayDatabase(t);
  let isLocked = true;
  const batch: typeof database.batch = async (statement, rows) => {
    if (!isLocked) return database.batch(statement, rows);
    const { rows: inserted } = await database.batch(statement, rows.slice(1));
    return { rows: inserted, refused: new Map([[0, new DatabaseError('a lock', 'none')]]) };
  };
  const timeline = createTimeline({ ...database, batch }, 'one', () => {});
  timeline.record({ kind: 'hold', text: 'first' });
  timeline.record({ kind: 'hold', text: 'second' });
  await timeline.flush();
  const stored = async () =>
    (await database.query('SELECT text FROM timeline ORDER BY text')).map(({ text }) => text);
  assert.deepEqual(await stored(), ['second']);
  isLocked = false;
  await timeline.flush();
  assert.deepEqual(await stored(), ['first', 'second']);
});

test('PostgreSQL does not accept every text: the other events are stored', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const lost: string[] = [];
  const timeline = createTimeline(await newGatewayDatabase(t, 'postgres'), 'one', (_level, message) => {
    lost.push(message);
  });
  timeline.record({ kind: 'hold', text: 'a NUL: \0' });
  timeline.record({ kind: 'hold', text: 'another event' });
  await timeline.flush();
  await timeline.flush();
  assert.deepEqual(await textsOf(timeline), ['another event']);
  assert.equal(lost.length, 1);
});
