import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DatabaseError } from '../../../src/store/database.ts';
import { createLatestRows } from '../../../src/store/latest-rows.ts';

const notAccepted = 666;

/** Rows of numbers, of which at most `max` wait. */
function start(max: number) {
  const written: (readonly number[])[] = [];
  const refused: unknown[] = [];
  let failsAt = Number.POSITIVE_INFINITY;
  const rows = createLatestRows<number>(
    async (some) => {
      if (written.length === failsAt) throw new DatabaseError('the test refuses the write', 'unknown');
      written.push(some.filter((row) => row !== notAccepted));
      if (some.includes(notAccepted)) throw new DatabaseError('the test does not accept a row', 'none-ever');
    },
    max,
    (thrown) => refused.push(thrown),
  );
  return {
    rows,
    written,
    refused,
    /** The write after so many others fails. */
    failAfter(writes: number) {
      failsAt = writes;
    },
  };
}

describe('rows that wait until they are written', () => {
  test('are replaced by a later row of the same key', async () => {
    const { rows, written } = start(10);
    rows.set('a', 1);
    rows.set('b', 2);
    rows.set('a', 3);
    await rows.write();
    await rows.write();
    assert.deepEqual(written, [[2, 3]]);
  });

  test('wait for the next write if one fails, without those that were written', async () => {
    const { rows, written, failAfter } = start(1_000);
    for (let row = 0; row < 600; row++) rows.set(String(row), row);
    failAfter(1);
    await assert.rejects(rows.write(), DatabaseError);
    rows.set('300', -300);
    failAfter(Number.POSITIVE_INFINITY);
    await rows.write();
    assert.deepEqual(
      written.map(({ length }) => length),
      [250, 250, 100],
    );
    assert.ok(written.flat().includes(-300) && !written.flat().includes(300));
  });

  test('are written without a row that the database does not accept', async () => {
    const { rows, written, refused } = start(1_000);
    for (let row = 0; row < 300; row++) rows.set(String(row), row);
    rows.set('bad', notAccepted);
    rows.set('0', 0);
    await rows.write();
    await rows.write();
    assert.deepEqual(
      written.map(({ length }) => length),
      [250, 50],
    );
    assert.equal(refused.length, 1);
  });

  test('lose the oldest ones beyond the limit, also after a failed write', async () => {
    const { rows, written, failAfter } = start(3);
    for (let row = 0; row < 3; row++) rows.set(String(row), row);
    failAfter(0);
    const failing = rows.write();
    for (let row = 3; row < 6; row++) rows.set(String(row), row);
    await assert.rejects(failing, DatabaseError);
    rows.set('6', 6);
    failAfter(Number.POSITIVE_INFINITY);
    await rows.write();
    assert.deepEqual(written, [[4, 5, 6]]);
  });
});
