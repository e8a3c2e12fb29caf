/** The audit log on each database: appends of two instances at the same time, and answers of the database that are lost. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAuditLog } from '../../src/environments/audit-log.ts';
import type { AuditEvent } from '../../src/request/audit-event.ts';
import { createAuditTable } from '../../src/store/audit.ts';
import { type Database, DatabaseError } from '../../src/store/database.ts';
import { databaseKinds } from '../kit/databases.ts';

const event = (reason: string): AuditEvent => ({
  who: 'olga',
  action: 'switch environment',
  outcome: 'switched',
  details: { environment: 'production', reason },
});

const auditLogOf = (database: Database) => createAuditLog(createAuditTable(database), () => {});

const reasonsIn = async (audit: ReturnType<typeof auditLogOf>) =>
  (await audit.newest(1_000)).map(({ details }) => details.reason).toReversed();

/** The next inserts of records lose the connection, each before or after it takes effect; what happens meanwhile is the test's. */
function losingAnswers(
  database: Database,
  ...losses: readonly (readonly ['before' | 'after', meanwhile?: () => Promise<unknown>])[]
): Database {
  const left = [...losses];
  return {
    ...database,
    async query(sql, values) {
      const [when, meanwhile] = (sql.includes('INSERT INTO audit') ? left.shift() : undefined) ?? [];
      if (!when) return database.query(sql, values);
      if (when === 'after') await database.query(sql, values);
      await meanwhile?.();
      throw new DatabaseError('the test cuts the connection', 'unknown');
    },
  };
}

for (const [name, { skip, open }] of Object.entries(databaseKinds)) {
  describe(`the audit log in ${name}`, { skip }, () => {
    test('is one chain without gaps if two instances append at the same time', async (t) => {
      const [one, other] = await open(t);
      const instances = [auditLogOf(one), auditLogOf(other)];
      const reasons = Array.from({ length: 200 }, (_, index) => `reason ${index}`);
      const records = await Promise.all(
        reasons.map((reason, index) => instances[index % 2]?.append(event(reason))),
      );

      const numbers = records.map((record) => record?.number ?? 0).toSorted((a, b) => a - b);
      assert.deepEqual(
        numbers,
        reasons.map((_, index) => index + 1),
      );
      for (const audit of instances) {
        assert.deepEqual(await audit.verify(), { records: 200 });
        assert.deepEqual((await reasonsIn(audit)).toSorted(), reasons.toSorted());
      }
    });

    test('accepts single records of one instance while another one appends many', async (t) => {
      const [one, other] = await open(t);
      const [many, single] = [auditLogOf(one), auditLogOf(other)];
      const appended = Promise.all(Array.from({ length: 500 }, (_, index) => many.append(event(`${index}`))));
      for (const reason of ['first', 'second', 'third']) await single.append(event(reason));
      await appended;
      assert.deepEqual(await single.verify(), { records: 503 });
    });

    test('has an event once if the commit took effect and its answer was lost', async (t) => {
      const [one, other] = await open(t);
      const audit = auditLogOf(losingAnswers(one, ['after']));
      assert.equal((await audit.append(event('one'))).number, 1);
      await audit.append(event('two'));
      assert.deepEqual(await reasonsIn(auditLogOf(other)), ['one', 'two']);
      assert.deepEqual(await audit.verify(), { records: 2 });
    });

    test('has an event once if the connection was lost before the commit', async (t) => {
      const [one, other] = await open(t);
      const audit = auditLogOf(losingAnswers(one, ['before']));
      assert.equal((await audit.append(event('one'))).number, 1);
      assert.deepEqual(await reasonsIn(auditLogOf(other)), ['one']);
      assert.deepEqual(await audit.verify(), { records: 1 });
    });

    test('has an event once if another instance appended after the commit whose answer was lost', async (t) => {
      const [one, other] = await open(t);
      const onOther = auditLogOf(other);
      const audit = auditLogOf(losingAnswers(one, ['after', () => onOther.append(event('other'))]));
      assert.equal((await audit.append(event('one'))).number, 1);
      assert.equal((await audit.append(event('two'))).number, 3);
      assert.deepEqual(await reasonsIn(onOther), ['one', 'other', 'two']);
      assert.deepEqual(await audit.verify(), { records: 3 });
    });

    test('gives an event the next number if another instance took its number when the connection was lost', async (t) => {
      const [one, other] = await open(t);
      const onOther = auditLogOf(other);
      const audit = auditLogOf(losingAnswers(one, ['before', () => onOther.append(event('other'))]));
      assert.equal((await audit.append(event('one'))).number, 2);
      assert.deepEqual(await reasonsIn(onOther), ['other', 'one']);
      assert.deepEqual(await audit.verify(), { records: 2 });
    });
  });
}
