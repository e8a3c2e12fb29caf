/** The records of the audit log as a table: numbered from 1, without gaps. What they contain is the business of the audit log. */

import { z } from 'zod';
import type { Database, Row } from './database.ts';

export interface StoredAuditRecord {
  readonly number: number;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly who: string;
  readonly action: string;
  readonly outcome: string;
  /** JSON. */
  readonly details: string;
  /** The hash of the record before it. */
  readonly previous: string;
  readonly hash: string;
}

export type AuditTable = ReturnType<typeof createAuditTable>;

/** Every function @throws DatabaseError; a record may have been inserted nevertheless. */
export function createAuditTable(database: Database) {
  return {
    /** @returns false if there is a record with this number, of another instance */
    async insert(record: StoredAuditRecord): Promise<boolean> {
      const { number, at, who, action, outcome, details, previous, hash } = record;
      const inserted = await database.query(
        `INSERT INTO audit (number, recorded_at, who, action, outcome, details, previous, hash, payment_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (number) DO NOTHING RETURNING number`,
        [number, at, who, action, outcome, details, previous, hash, paymentIdIn(details)],
      );
      return inserted.length > 0;
    },

    /** Whether this very record is stored. */
    async contains({ number, hash }: Pick<StoredAuditRecord, 'number' | 'hash'>): Promise<boolean> {
      const found = await database.query('SELECT 1 AS found FROM audit WHERE number = $1 AND hash = $2', [
        number,
        hash,
      ]);
      return found.length > 0;
    },

    /** The newest ones first. */
    async newest(count: number): Promise<readonly StoredAuditRecord[]> {
      const rows = await database.query('SELECT * FROM audit ORDER BY number DESC LIMIT $1', [count]);
      return rows.map(recordOf);
    },

    /** The newest ones of a payment first, of all environments. The details decide: the hash does not cover the column. */
    async ofPayment(paymentId: string, count: number): Promise<readonly StoredAuditRecord[]> {
      const rows = await database.query(
        'SELECT * FROM audit WHERE payment_id = $1 ORDER BY number DESC LIMIT $2',
        [paymentId, count],
      );
      return rows.map(recordOf).filter(({ details }) => paymentIdIn(details) === paymentId);
    },

    /** In their order. @param after the number of the last one that is known, or 0 */
    async following(after: number, count: number): Promise<readonly StoredAuditRecord[]> {
      const rows = await database.query('SELECT * FROM audit WHERE number > $1 ORDER BY number LIMIT $2', [
        after,
        count,
      ]);
      return rows.map(recordOf);
    },
  };
}

const ofPaymentShape = z.object({ paymentId: z.string() });

/** For the index. An id that PostgreSQL cannot store is that of no payment. */
function paymentIdIn(details: string): string | null {
  const id = ofPaymentShape.safeParse(parsed(details)).data?.paymentId;
  return id?.isWellFormed() && !id.includes('\0') ? id : null;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // somebody has changed the record
  }
}

const recordOf = (row: Row): StoredAuditRecord => ({
  number: Number(row.number),
  at: String(row.recorded_at),
  who: String(row.who),
  action: String(row.action),
  outcome: String(row.outcome),
  details: String(row.details),
  previous: String(row.previous),
  hash: String(row.hash),
});
