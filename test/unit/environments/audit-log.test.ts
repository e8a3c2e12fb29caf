import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { createAuditLog } from '../../../src/environments/audit-log.ts';
import type { AuditEvent } from '../../../src/request/audit-event.ts';
import { createAuditTable, type StoredAuditRecord } from '../../../src/store/audit.ts';
import type { Value } from '../../../src/store/database.ts';
import { newMemoryDatabase } from '../../kit/database.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { errorOf } from './requests.ts';

const event = (reason: string): AuditEvent => ({
  who: 'olga',
  action: 'switch environment',
  outcome: 'switched',
  details: { environment: 'production', reason, preflight: { ok: true, steps: [] } },
});

function startAuditLog() {
  const database = createFaultyDatabase(newMemoryDatabase());
  const table = createAuditTable(database);
  const { log, lines } = captureLog();
  return { database, table, audit: createAuditLog(table, log), lines };
}

describe('the audit log', () => {
  test('gives each record the next number, the time, and the hash of its predecessor', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T12:00:00Z') });
    const { audit } = startAuditLog();
    const [first, second] = [await audit.append(event('one')), await audit.append(event('two'))];
    assert.deepEqual([first.number, second.number], [1, 2]);
    assert.equal(second.at, '2026-01-01T12:00:00.000Z');
    assert.equal(second.previous, first.hash);
    assert.match(first.previous, /^0{64}$/);
    assert.equal(second.hash, hashOf({ ...second, details: JSON.stringify(second.details) }));
    assert.deepEqual(second.details, event('two').details);
    assert.deepEqual(await audit.verify(), { records: 2 });
  });

  test('returns the requested number of records, newest first', async () => {
    const { audit } = startAuditLog();
    const records = [];
    for (const reason of ['one', 'two', 'three']) records.push(await audit.append(event(reason)));
    assert.deepEqual(await audit.newest(2), records.toReversed().slice(0, 2));
    assert.deepEqual(await audit.newest(100), records.toReversed());
  });

  test('is empty and valid at first', async () => {
    const { audit } = startAuditLog();
    assert.deepEqual(await audit.newest(100), []);
    assert.deepEqual(await audit.verify(), { records: 0 });
  });

  test('needs little more than one statement for each of many records that are appended together', async () => {
    const { audit, database } = startAuditLog();
    await audit.append(event('first'));
    const before = database.statements.length;
    await Promise.all(Array.from({ length: 100 }, (_, index) => audit.append(event(`reason ${index}`))));
    const statements = database.statements.slice(before);
    assert.equal(statements.filter((sql) => sql.includes('INSERT INTO audit')).length, 100);
    assert.ok(statements.length <= 111, `${statements.length} statements`);
    assert.deepEqual(await audit.verify(), { records: 101 });
  });

  test('fails all records that wait when the database is unavailable, and continues afterwards', async () => {
    const { audit, database, lines } = startAuditLog();
    database.fail('before', /INSERT INTO audit/);
    const results = await Promise.allSettled(
      ['one', 'two', 'three'].map((text) => audit.append(event(text))),
    );
    assert.ok(results.every(({ status }) => status === 'rejected'));
    assert.equal(lines.length, 3);
    database.recover();
    assert.equal((await audit.append(event('four'))).number, 1);
  });

  test('is in the database after an append whose commits all remain unknown, and fails it', async () => {
    const { audit, database } = startAuditLog();
    database.fail('after', /INSERT INTO audit/);
    assert.equal((await errorOf(() => audit.append(event('one')))).code, 'STATE_UNAVAILABLE');
    database.recover();
    assert.equal((await audit.append(event('two'))).number, 2);
    assert.deepEqual(await audit.verify(), { records: 2 });
  });

  test('gives up an append after 500 numbers that other instances have taken', async () => {
    const { table, lines } = startAuditLog();
    let inserts = 0;
    const taken = {
      ...table,
      async insert() {
        inserts += 1;
        return false;
      },
    };
    const { log } = captureLog();
    const audit = createAuditLog(taken, log);
    assert.equal((await errorOf(() => audit.append(event('one')))).code, 'STATE_UNAVAILABLE');
    assert.equal(inserts, 500);
    assert.deepEqual(lines, []);
  });

  test('preserves every character of a reason', async () => {
    const { audit } = startAuditLog();
    const reason = 'ü 🏦 "quoted" \\ \n \u0000 \u2028 \ud800';
    await audit.append(event(reason));
    assert.equal((await audit.newest(1))[0]?.details.reason, reason);
    assert.deepEqual(await audit.verify(), { records: 1 });
  });

  test('is also written to the log stream if the database is unavailable', async () => {
    const { audit, database, lines } = startAuditLog();
    for (const statement of [/SELECT/, /INSERT INTO audit/]) {
      database.fail('before', statement);
      const { details } = event(String(statement));
      assert.equal((await errorOf(() => audit.append({ ...event(''), details }))).code, 'STATE_UNAVAILABLE');
      const { message, fields } = lines.at(-1) ?? assert.fail('nothing was logged');
      assert.equal(message, 'audit');
      assert.deepEqual(
        [fields.who, fields.action, fields.outcome],
        ['olga', 'switch environment', 'switched'],
      );
      assert.deepEqual(fields.details, details);
    }
  });
});

const chainLength = 5;

/** A chain of five records, and write access to the database. */
async function createChain(length = chainLength) {
  const { audit, table, database } = startAuditLog();
  for (let number = 1; number <= length; number += 1) {
    const details = { environment: 'production', reason: `reason ${number}`, force: false };
    await audit.append({ who: 'olga', action: 'switch environment', outcome: 'switched', details });
  }
  const remove = (number: number) => database.query('DELETE FROM audit WHERE number = $1', [number]);
  const change = (number: number, column: string, value: Value) =>
    database.query(`UPDATE audit SET ${column} = $1 WHERE number = $2`, [value, number]);
  const recordAt = async (number: number): Promise<StoredAuditRecord> =>
    (await table.following(number - 1, 1))[0] ?? assert.fail(`there is no record ${number}`);
  /** Replaces the record with this number. */
  async function write(record: StoredAuditRecord): Promise<void> {
    await remove(record.number);
    assert.ok(await table.insert(record));
  }
  return { audit, database, remove, change, recordAt, write };
}

/** As the documented format says, for records with any details. */
function hashOf({ number, at, who, action, outcome, details, previous }: StoredAuditRecord): string {
  const text = JSON.stringify([number, at, who, action, outcome, JSON.parse(details), previous]);
  return createHash('sha256').update(text).digest('hex');
}

describe('the verification of the audit log', () => {
  const changes: readonly (readonly [column: string, value: string])[] = [
    ['recorded_at', '2020-01-01T00:00:00.000Z'],
    ['who', 'Olga'],
    ['action', 'switch environment '],
    ['outcome', 'refused'],
    ['details', '{"environment":"production","reason":"reason 3","force":true}'],
    ['details', '{"environment":"production","reason":"reason 3"}'],
    ['details', '{"environment":"production","reason":"reason 3","force":false }'],
    ['details', 'no JSON'],
    ['details', ''],
    ['previous', '0'.repeat(64)],
    ['hash', '0'.repeat(64)],
  ];
  for (const [column, value] of changes) {
    test(`finds a changed record: ${column} ${value}`, async () => {
      const { audit, change } = await createChain();
      await change(3, column, value);
      assert.deepEqual(await audit.verify(), { records: chainLength, broken: 'record 3 was altered' });
    });
  }

  test('finds a change in any record, the first and the last included', async () => {
    for (let number = 1; number <= chainLength; number += 1) {
      const { audit, change } = await createChain();
      await change(number, 'who', 'somebody else');
      assert.deepEqual(await audit.verify(), {
        records: chainLength,
        broken: `record ${number} was altered`,
      });
    }
  });

  test('finds a change beyond the first page of records', async () => {
    const length = 1_001;
    const { audit, change } = await createChain(length);
    assert.deepEqual(await audit.verify(), { records: length });
    await change(length, 'who', 'somebody else');
    assert.deepEqual(await audit.verify(), { records: length, broken: `record ${length} was altered` });
  });

  test('finds a changed record whose own hash was recomputed', async () => {
    const { audit, recordAt, write } = await createChain();
    const changed = { ...(await recordAt(3)), who: 'somebody else' };
    await write({ ...changed, hash: hashOf(changed) });
    assert.deepEqual(await audit.verify(), {
      records: chainLength,
      broken: 'record 4 does not follow record 3',
    });
  });

  test('finds a removed record', async () => {
    const { audit, remove } = await createChain();
    await remove(3);
    assert.deepEqual(await audit.verify(), { records: chainLength, broken: 'record 3 is missing' });
  });

  test('finds a removed record if the later ones were moved up', async () => {
    const { audit, recordAt, write, remove } = await createChain();
    await write({ ...(await recordAt(4)), number: 3 });
    await write({ ...(await recordAt(5)), number: 4 });
    await remove(5);
    assert.deepEqual(await audit.verify(), { records: 4, broken: 'record 3 was altered' });
  });

  test('finds an inserted record with a valid hash', async () => {
    const { audit, recordAt, write } = await createChain();
    for (let number = chainLength; number > 2; number -= 1)
      await write({ ...(await recordAt(number)), number: number + 1 });
    const [second, third] = [await recordAt(2), await recordAt(4)];
    const inserted = { ...third, number: 3, previous: second.hash, who: 'nobody' };
    await write({ ...inserted, hash: hashOf(inserted) });
    assert.deepEqual(await audit.verify(), { records: 6, broken: 'record 4 was altered' });
  });

  test('finds two records that were swapped', async () => {
    const { audit, recordAt, write } = await createChain();
    const [second, third] = [await recordAt(2), await recordAt(3)];
    await write({ ...third, number: 2 });
    await write({ ...second, number: 3 });
    assert.deepEqual(await audit.verify(), { records: chainLength, broken: 'record 2 was altered' });
  });

  test('finds a record with a number beyond the end of the chain', async () => {
    const { audit, recordAt, write } = await createChain();
    await write({ ...(await recordAt(5)), number: 9 });
    assert.deepEqual(await audit.verify(), { records: 9, broken: 'record 6 is missing' });
  });

  test('is not stopped by records that cannot be listed', async () => {
    const { audit, change } = await createChain();
    for (const details of ['', 'null', '[]', 'no JSON']) {
      await change(4, 'details', details);
      const numbers = (await audit.newest(10)).map(({ number }) => number);
      assert.deepEqual(numbers, [5, 3, 2, 1], details);
      assert.equal((await audit.verify()).broken, 'record 4 was altered', details);
    }
  });

  test('accepts a name that was cut within a character', async () => {
    const { audit } = startAuditLog();
    const { who } = await audit.append({ ...event('one'), who: '🏦'.slice(0, 1) });
    assert.ok(who.isWellFormed());
    assert.deepEqual(await audit.verify(), { records: 1 });
  });

  test('accepts records that are appended while it reads', async () => {
    const { audit, database } = await createChain();
    const unblock = database.block(/number > \$1/);
    const verified = audit.verify();
    await audit.append(event('one more'));
    unblock();
    assert.equal((await verified).broken, undefined);
  });

  // The log stream reveals the two cases that the chain cannot reveal.
  test('does not find that the newest records were removed', async () => {
    const { audit, remove } = await createChain();
    await remove(5);
    await remove(4);
    assert.deepEqual(await audit.verify(), { records: 3 });
  });

  test('does not find a change if all later hashes were recomputed', async () => {
    const { audit, recordAt, write } = await createChain();
    let previous = (await recordAt(2)).hash;
    for (let number = 3; number <= chainLength; number += 1) {
      const forged = { ...(await recordAt(number)), who: 'somebody else', previous };
      previous = hashOf(forged);
      await write({ ...forged, hash: previous });
    }
    assert.deepEqual(await audit.verify(), { records: chainLength });
  });
});
