/** Circuits that operators keep open or closed for a time, as a table. */

import type { Database, Row } from './database.ts';

export interface StoredHold {
  readonly environment: string;
  readonly lane: string;
  readonly as: 'open' | 'closed';
  readonly reason: string;
  /** For how much longer. Milliseconds. */
  readonly leftMs: number;
}

export type HoldTable = ReturnType<typeof createHoldTable>;

/** Every function @throws DatabaseError; a change may have been made nevertheless. */
export function createHoldTable(database: Database) {
  return {
    /** Those that have not ended. */
    async read(): Promise<readonly StoredHold[]> {
      const rows = await database.query(
        `SELECT environment, lane, held_as, reason, until_ms - now_ms() AS left_ms FROM hold
         WHERE until_ms > now_ms() ORDER BY environment, lane`,
      );
      return rows.map(holdOf);
    },

    /** Replaces an earlier hold on the circuit. */
    async hold({ environment, lane, as, reason, leftMs }: StoredHold): Promise<void> {
      await database.query(
        `INSERT INTO hold (environment, lane, held_as, reason, until_ms) VALUES ($1, $2, $3, $4, now_ms() + $5)
         ON CONFLICT (environment, lane) DO UPDATE SET held_as = excluded.held_as, reason = excluded.reason,
           until_ms = excluded.until_ms`,
        [environment, lane, as, reason, leftMs],
      );
    },

    async release({ environment, lane }: Pick<StoredHold, 'environment' | 'lane'>): Promise<void> {
      await database.query('DELETE FROM hold WHERE environment = $1 AND lane = $2', [environment, lane]);
    },

    async deleteEnded(): Promise<void> {
      await database.query('DELETE FROM hold WHERE until_ms <= now_ms()');
    },
  };
}

const holdOf = (row: Row): StoredHold => ({
  environment: String(row.environment),
  lane: String(row.lane),
  as: row.held_as === 'open' ? 'open' : 'closed',
  reason: String(row.reason),
  leftMs: Number(row.left_ms),
});
