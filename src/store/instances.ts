/** Which instances live, and what the dead ones have left. */

import type { Database, Row } from './database.ts';
import { abandon, instanceLeaseMs, isAlive, isAwaited, mayClaim } from './ledger-statements.ts';
import { schemaVersion } from './migrations.ts';

/** For how long an instance that was killed is remembered, and what a failover has lost is reported. Milliseconds. */
const keptMs = 24 * 60 * 60_000;
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

  /**
   * Of several instances, the first one notes it, and who lived until then: all that reported shortly before the last report. They count
   * as living again from now on, however long the outage was.
   */
  const noteFailover = () =>
    database.query(
      `WITH noted AS (
         UPDATE failover SET id = gen_random_uuid()::text, timeline = current_timeline(), noticed_at = now_ms()
         WHERE timeline <> current_timeline() RETURNING id)
       UPDATE instance SET awaited_at = now_ms(), seen_at = now_ms(), reporting_since = now_ms()
       WHERE EXISTS (SELECT 1 FROM noted) AND seen_at > (SELECT max(seen_at) FROM instance) - ${instanceLeaseMs}`,
    );

  return {
    /**
     * Reports that this instance lives: every second. After a gap of 3 s, `reporting_since` starts again.
     *
     * @param restored the failover after which this instance has written back what it remembers; `undefined` if it remembers nothing
     * @returns the last failover; in a new database, an id as well
     * @throws DatabaseError, as every function here
     */
    async report(restored?: string): Promise<string> {
      if (isAlone) await database.query('DELETE FROM instance WHERE id <> $1', [instance]);
      for (;;) {
        // Nothing before the failover is noted: the note says who lived until then.
        const [row] = await database.query(
          `INSERT INTO instance AS own (id, seen_at, reporting_since, schema_version, awaited_at)
           SELECT $1, now_ms(), now_ms(), ${schemaVersion}, CASE WHEN coalesce($2, f.id) <> f.id THEN now_ms() END
           FROM failover f WHERE f.timeline = current_timeline()
           ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at,
             awaited_at = CASE WHEN excluded.awaited_at IS NOT NULL THEN coalesce(own.awaited_at, excluded.awaited_at) END, reporting_since =
             CASE WHEN own.seen_at < excluded.seen_at - ${instanceLeaseMs / 2} THEN excluded.seen_at ELSE own.reporting_since END
           RETURNING (SELECT id FROM failover) AS failover`,
          [instance, restored ?? null],
        );
        if (row) return String(row.failover);
        await noteFailover();
      }
    },

    /** An instance that ends reports no more: the others need not wait until it counts as dead. */
    async deregister(): Promise<void> {
      if (isAlone) return; // the row stays: the next start reads the time from it
      // Unless it ends before it has written back after a failover: then the others wait, and report the loss.
      await database.query(
        `DELETE FROM instance WHERE id = $1 AND awaited_at IS NULL AND EXISTS (SELECT 1 FROM failover WHERE timeline = current_timeline())`,
        [instance],
      );
    },

    async isAlive(id: string): Promise<boolean> {
      const [row] = await database.query(`SELECT 1 AS one WHERE ${isAlive('$1')}`, [id]);
      return row !== undefined;
    },

    /**
     * Instances that lived before a failover of the last day, and have not written back what they remember: the payments of their last
     * moments may be lost.
     */
    async lostInFailover(): Promise<readonly string[]> {
      const rows = await database.query(
        `SELECT id FROM instance o WHERE awaited_at > now_ms() - ${keptMs} AND NOT (${isAwaited('o')}) ORDER BY id`,
      );
      return rows.map(({ id }) => String(id));
    },

    /** Deletes instances that ended long ago without saying so. */
    async deleteEnded(): Promise<void> {
      await database.query('DELETE FROM instance WHERE seen_at < now_ms() - $1 AND id <> $2', [
        keptMs,
        instance,
      ]);
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
           AND ${mayClaim} AND (instance = $1 OR (NOT ${isAlive('ledger.instance')} AND ${mayRecover}))
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
