/** Records of requests while the database refuses writes: they wait in order, are found, and are stored once. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { TimedEvent } from '../../src/request/request-events.ts';
import { createRequestRecords } from '../../src/request-records/create-request-records.ts';
import { DatabaseError } from '../../src/store/database.ts';
import { createRequestRecordTable } from '../../src/store/request-records.ts';
import { createLiveStats } from '../../src/telemetry/live-stats.ts';
import { createUnstoredRequests } from '../../src/telemetry/unstored-requests.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import { failedRecord, requestRecord } from '../kit/request-records.ts';

/** As the databases do: each row is refused alone. */
const fullDisk = new DatabaseError('the disk is full', 'none');

async function start(t: TestContext, { maxWaiting = 2_000, maxStoredPerTenant = 1024 ** 3 } = {}) {
  const database = createFaultyDatabase(await newGatewayDatabase(t, 'sqlite'));
  let isWritable = true;
  const table = createRequestRecordTable({
    ...database,
    batch: (statement, rows) =>
      isWritable
        ? database.batch(statement, rows)
        : Promise.resolve({ rows: [], refused: new Map(rows.map((_, index) => [index, fullDisk])) }),
  });
  const unstoredRequests = createUnstoredRequests(maxWaiting);
  let notStored = 0;
  const increment = (_name: string, _labels: object, by = 1) => {
    notStored += by;
  };
  const records = createRequestRecords({
    table,
    telemetry: {
      unstoredRequests,
      liveStats: createLiveStats(),
      metrics: { increment } as never, // only this is used
      log: () => assert.fail('nothing is to be logged'),
    },
    instance: 'gateway-1',
    settings: () => ({ keepFor: 3_600_000, maxStoredPerTenant }),
    tenantNames: { recordedAs: (name) => [name], nameOf: (recorded) => recorded },
  });
  const now = Date.now();
  const end = (...ended: readonly ReturnType<typeof requestRecord>[]) => {
    for (const record of ended) unstoredRequests.onRequestEnd(record);
  };
  const record = (more: object = {}) => requestRecord({ receivedAtMs: now - 1_000, ...more });
  return {
    database,
    records,
    end,
    record,
    unstoredRequests,
    setWritable(is: boolean) {
      isWritable = is;
    },
    notStored: () => notStored,
    find: (requestId?: string) => records.search.find({ requestId, fromMs: 0, toMs: now + 1_000, limit: 50 }),
  };
}

describe('records of requests while the database refuses writes', () => {
  test('are stored by a flush that ends, although other requests end during each of its writes', async (t) => {
    const { database, records, end, record, unstoredRequests } = await start(t);
    const { batch } = database;
    database.batch = (...args) => {
      end(record());
      return batch(...args);
    };
    const first = record();
    end(first);
    assert.equal(await records.flush(), true);
    const stored = await database.query('SELECT number FROM request_record');
    assert.deepEqual(stored.map(Object.values), [[first.number]]);
    assert.ok(unstoredRequests.take(10).length > 0);
  });

  test('are found, with a note that others may be missing, and are stored once it accepts them', async (t) => {
    const { records, end, record, find, setWritable } = await start(t);
    setWritable(false);
    const [waiting, failed] = [record(), { ...failedRecord('CIRCUIT_OPEN', 503), receivedAtMs: Date.now() }];
    end(waiting, failed);
    assert.equal(await records.flush(), false);
    const during = await find(waiting.requestId);
    assert.deepEqual([during.requests.length, during.isComplete], [1, false]);
    setWritable(true);
    assert.equal(await records.flush(), true);
    const after = await find(waiting.requestId);
    assert.deepEqual([after.requests.length, after.isComplete], [1, true]);
    assert.equal((await find()).requests.length, 2);
    assert.deepEqual(
      (await records.history.errors()).map(({ code, count }) => [code, count]),
      [['CIRCUIT_OPEN', 1]],
    );
  });

  test('lose the oldest ones beyond the limit, which a search reports', async (t) => {
    const { records, end, record, find, setWritable, notStored } = await start(t, { maxWaiting: 3 });
    setWritable(false);
    const all = Array.from({ length: 5 }, () => record());
    end(...all.slice(0, 2));
    await records.flush();
    end(...all.slice(2));
    await records.flush();
    setWritable(true);
    await records.flush();
    const { requests, notStored: missing } = await find();
    assert.deepEqual(
      requests.map(({ xRequestId }) => xRequestId).toReversed(),
      all.slice(2).map(({ requestId }) => requestId),
    );
    assert.deepEqual([missing, notStored()], [2, 2]);
  });

  test('are stored again with a late event, although the share of the tenant is used up by then', async (t) => {
    // A period is ten minutes of the hour: 4,000 bytes, of which a record takes 700 or more.
    const { records, end, record, find, unstoredRequests, notStored } = await start(t, {
      maxStoredPerTenant: 6 * 4_000,
    });
    const events: TimedEvent[] = [{ afterMs: 1, event: { what: 'recorded', as: 'in-doubt' } }];
    const late = record({ status: 504, events });
    end(late);
    for (let batches = 0; batches < 2; batches++) {
      end(...Array.from({ length: 20 }, () => record()));
      await records.flush();
    }
    const refused = notStored();
    assert.ok(refused > 0);
    const answer = { what: 'late-answer', status: 201 } as const;
    events.push({ afterMs: 2, event: { what: 'recorded', as: 'answered' } }, { afterMs: 3, event: answer });
    unstoredRequests.onLateEvent(answer, late);
    await records.flush();
    const { requests } = await find(late.requestId);
    assert.deepEqual(
      requests.map(({ outcome }) => outcome),
      ['succeeded'],
    );
    assert.equal(notStored(), refused);
  });

  test('count what a tenant uses once, although the answer of the database to the count is lost', async (t) => {
    const { database, records, end, record } = await start(t);
    const readShare = async () => {
      const [share] = await database.query('SELECT sum(bytes) AS bytes FROM record_share');
      return Number(share?.bytes);
    };
    end(record());
    database.fail('after', /record_share/);
    assert.equal(await records.flush(), false);
    database.recover();
    const once = await readShare();
    assert.ok(once > 0);
    assert.equal(await records.flush(), true);
    assert.equal(await readShare(), once);
  });
});
