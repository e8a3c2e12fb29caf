/** Which instances live, and what the dead ones have left. */

import type { Database, Row } from './database.ts';
import { abandon, instanceLeaseMs, isAlive } from './ledger-statements.ts';
import { schemaVersion } from './migrations.ts';

/** The writes that are recovered at once. */
const maxRecovered = 1_000;

export type InstanceTable = ReturnType<typeof createInstanceTable>;

/**
 * @param database its own connection: a report must not wait behind the writes
 * @param instance id of this instance, new after every start
 */
export function createInstanceTable(database: Database, instance: string) {
  /** A SQLite file belongs to one process: all other instances have ended. */
  const isAlone = database.dialect === 'sqlite';

  return {
    /** Reports that this instance lives: every second. After a gap of 3 s, `reporting_since` starts again. @throws DatabaseError, as every function here */
    async report(): Promise<void> {
      if (isAlone) await database.query('DELETE FROM instance WHERE id <> $1', [instance]);
      await database.query(
        `INSERT INTO instance AS own (id, seen_at, reporting_since, schema_version) VALUES ($1, now_ms(), now_ms(), ${schemaVersion})
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, reporting_since =
           CASE WHEN own.seen_at < excluded.seen_at - ${instanceLeaseMs / 2} THEN excluded.seen_at ELSE own.reporting_since END`,
        [instance],
      );
    },

    /** An instance that ends reports no more: the others need not wait until it counts as dead. */
    async deregister(): Promise<void> {
      if (isAlone) return; // the row stays: the next start reads the time from it
      await database.query('DELETE FROM instance WHERE id = $1', [instance]);
    },

    async isAlive(id: string): Promise<boolean> {
      const [row] = await database.query(`SELECT 1 AS one WHERE ${isAlive('$1')}`, [id]);
      return row !== undefined;
    },

    /** The number of instances that live. */
    async countLiving(): Promise<number> {
      const [row] = await database.query(
        `SELECT count(*) AS living FROM instance WHERE seen_at > now_ms() - ${instanceLeaseMs}`,
      );
      return Number(row?.living);
    },

    /**
     * Takes over what dead instances have left, and what this one has left without knowing it, because the answer of the database to its
     * claim was lost. It takes over from others only when it has reported for 6 s without a gap: after an outage of the database, all of
     * them look dead.
     *
     * @param isRunning whether this instance is executing an attempt
     * @returns the writes that are in doubt now
     */
    async recover(isRunning: (attempt: string) => boolean): Promise<readonly Row[]> {
      const mayRecover = isAlone
        ? 'true'
        : `EXISTS (SELECT 1 FROM instance WHERE id = $1 AND reporting_since <= now_ms() - ${instanceLeaseMs}
             AND seen_at > now_ms() - ${instanceLeaseMs})`;
      const left = await database.query(
        `SELECT request_id, tenant, operation, payment, attempt, instance FROM ledger
         WHERE ended_at IS NULL AND step IN ('claimed', 'sending')
           AND (instance = $1 OR (NOT ${isAlive('ledger.instance')} AND ${mayRecover}))
         ORDER BY claimed_at LIMIT ${maxRecovered}`,
        [instance],
      );
      const abandoned = left.filter((row) => row.instance !== instance || !isRunning(String(row.attempt)));
      if (abandoned.length === 0) return [];
      const inputs = abandoned.map(({ request_id, tenant, operation, payment, attempt }) => ({
        ...{ request_id: request_id ?? '', tenant: tenant ?? '', operation: operation ?? '' },
        ...{ payment: payment ?? '', attempt: attempt ?? '' },
      }));
      return (await database.batch(abandon, inputs)).rows;
    },
  };
}
