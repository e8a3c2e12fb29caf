/**
 * What operators see of payments: a list, and the history of each. Records of requests, the ledger and the audit log are only read here.
 * The changes of the transaction status have a table of their own, which is written behind the requests.
 */

import { type Database, type DatabaseError, type InputOf, type Row, statement, textOf } from './database.ts';

/** A transaction status in an answer of the bank. */
export interface SeenStatus {
  readonly paymentId: string;
  /** The id of the environment. */
  readonly environment: string;
  readonly status: string;
  readonly seenBy: SeenBy;
  /** The X-Request-ID; `undefined` for a read of the gateway itself. */
  readonly requestId: string | undefined;
}

export type SeenBy = 'initiation' | 'status read' | 'payment read' | 'poll' | 'cancellation' | 'update';

/** How long ago it was seen, in milliseconds. */
export interface AgedStatus extends SeenStatus {
  readonly ageMs: number;
}

export interface ListedPayment {
  readonly paymentId: string;
  readonly environment: string;
  readonly tenant: string;
  /** Service and product; `undefined` if it is not known. */
  readonly initiatedAs: string | undefined;
  /** Times in milliseconds since 1970. */
  readonly createdAt: number;
  /** The last one that was seen. */
  readonly status: string | undefined;
  readonly statusSince: number | undefined;
  /** Whether a write of it is in doubt. */
  readonly isInDoubt: boolean;
}

/** A place in the list, which is sorted by these three. */
export type ListPosition = Pick<ListedPayment, 'createdAt' | 'paymentId' | 'environment'>;

export interface ListConditions {
  /** Ids. */
  readonly environment?: string | undefined;
  readonly tenant?: string | undefined;
  /** Both included. */
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  readonly onlyInDoubt?: boolean;
  /** The last one of the page before. */
  readonly after?: ListPosition | undefined;
}

/** A request for the payment, or its initiation. */
export interface PaymentRecord {
  readonly receivedAt: number;
  readonly requestId: string;
  readonly operation: string;
  readonly client: string | undefined;
  /** The id, or a name. */
  readonly environment: string | undefined;
  readonly status: number;
  readonly outcome: string;
  readonly bankError: string | undefined;
  readonly error: string | undefined;
  readonly why: string | undefined;
}

/** A write of the payment that is in doubt, or has not ended yet. */
export interface OpenWrite {
  readonly requestId: string;
  readonly operation: string;
  readonly claimedAt: number;
  /** `undefined` if it is not in doubt. */
  readonly why: string | undefined;
}

export interface StatusChange {
  readonly status: string;
  readonly seenAt: number;
  readonly seenBy: string;
  readonly requestId: string | undefined;
}

export type PaymentHistoryTable = ReturnType<typeof createPaymentHistoryTable>;

/** Inserts a status that differs from the one before it, which another instance may have seen. */
const insertStatuses = statement({
  columns: {
    payment_id: 'text',
    environment: 'text',
    status: 'text',
    age_ms: 'bigint',
    seen_by: 'text',
    request_id: 'text',
  },
  sql: (input) => `
    INSERT INTO payment_status (payment_id, environment, status, seen_at, seen_by, request_id)
    SELECT s.payment_id, s.environment, s.status, s.seen_at, s.seen_by, s.request_id FROM (
      SELECT i.payment_id, i.environment, i.status, i.seen_by, i.request_id, (SELECT now_ms()) - i.age_ms AS seen_at,
        lag(i.status) OVER (PARTITION BY i.payment_id, i.environment ORDER BY i.age_ms DESC) AS former
      FROM ${input} AS i) AS s
    JOIN payment ON payment.payment_id = s.payment_id AND payment.environment = s.environment
    WHERE s.status <> coalesce(s.former, (
        SELECT o.status FROM payment_status o WHERE o.payment_id = s.payment_id AND o.environment = s.environment
          AND o.seen_at <= s.seen_at ORDER BY o.seen_at DESC LIMIT 1), '')
    RETURNING payment_id, environment, (
      SELECT count(*) FROM payment_status o WHERE o.payment_id = payment_status.payment_id
        AND o.environment = payment_status.environment) AS stored`,
});

/** So many changes of the status of one payment are kept, because a bank may alternate between two for ever. */
const maxStatuses = 200;
/** Of more changes, the first and the newest ones stay: together one more than `maxStatuses`, so that a reader sees that others are missing. */
const firstKept = 50;
const newestKept = maxStatuses - firstKept + 1;

const deleteStatusesBetween = statement({
  columns: { payment_id: 'text', environment: 'text' },
  sql: (input) => `
    DELETE FROM payment_status WHERE (payment_id, environment, seen_at) IN (
      SELECT r.payment_id, r.environment, r.seen_at FROM (
        SELECT s.payment_id, s.environment, s.seen_at,
          rank() OVER (PARTITION BY s.payment_id, s.environment ORDER BY s.seen_at) AS from_first,
          rank() OVER (PARTITION BY s.payment_id, s.environment ORDER BY s.seen_at DESC) AS from_newest
        FROM ${input} AS i JOIN payment_status s ON s.payment_id = i.payment_id AND s.environment = i.environment) AS r
      WHERE r.from_first > ${firstKept} AND r.from_newest > ${newestKept})`,
});

/** The payments of writes in doubt. The answer to an initiation may name its payment, and leave open whether the bank has executed it. */
const inDoubt = `SELECT DISTINCT coalesce(nullif(payment, ''), payment_id) AS payment_id, environment FROM ledger
  WHERE why IS NOT NULL AND coalesce(nullif(payment, ''), payment_id) IS NOT NULL`;

const lastStatus = (column: string) => `
  (SELECT s.${column} FROM payment_status s WHERE s.payment_id = p.payment_id AND s.environment = p.environment
   ORDER BY s.seen_at DESC LIMIT 1)`;

/** @param page a table expression with the columns of `payment` */
const selectListed = (page: string) => `
  SELECT p.payment_id, p.environment, p.tenant, p.initiated_as, p.created_at,
    ${lastStatus('status')} AS status, ${lastStatus('seen_at')} AS status_since,
    (p.payment_id, p.environment) IN (${inDoubt}) AS is_in_doubt
  FROM ${page} AS p`;

const newestFirst = 'ORDER BY p.created_at DESC, p.payment_id DESC, p.environment DESC';

/** The reads of a payment are many, and say nothing unless they fail: the statuses that they have shown are rows of their own. The index has the same condition. */
const isRemarkable = `(outcome <> 'succeeded'
  OR operation IN ('initiatePayment', 'startAuthorisation', 'updatePsuData', 'updatePayment', 'cancelPayment'))`;

/** Every function @throws DatabaseError. */
export function createPaymentHistoryTable(database: Database) {
  return {
    /**
     * Stores the statuses that are changes; those of payments that are not stored have no effect. Of a payment with more than 200 changes,
     * the first 50 and the newest 151 are kept: they show how it was initiated, and what the bank answers now.
     *
     * @param seen in the order of time
     * @returns those that the database has refused, with the reasons
     */
    async insertStatuses(seen: readonly AgedStatus[]): Promise<ReadonlyMap<number, DatabaseError>> {
      const inputs = seen.map(({ paymentId, environment, status, seenBy, requestId, ageMs }) => ({
        payment_id: paymentId,
        environment,
        status,
        age_ms: Math.round(ageMs),
        seen_by: seenBy,
        request_id: requestId ?? null,
      }));
      const { rows, refused } = await database.batch(insertStatuses, inputs);
      const tooMany = paymentsWithTooMany(rows);
      if (tooMany.length > 0) await database.batch(deleteStatusesBetween, tooMany);
      return refused;
    },

    /** The newest payments first. */
    async list(conditions: ListConditions, limit: number): Promise<readonly ListedPayment[]> {
      const { environment, tenant, createdFrom, createdTo, onlyInDoubt = false, after } = conditions;
      const values: (string | number)[] = [];
      const bound = (value: string | number) => `$${values.push(value)}`;
      const where = ['true'];
      if (environment !== undefined) where.push(`(p.environment || '') = ${bound(environment)}`);
      if (tenant !== undefined) where.push(`(p.tenant || '') = ${bound(tenant)}`);
      if (createdFrom !== undefined) where.push(`p.created_at >= ${bound(createdFrom)}`);
      if (createdTo !== undefined) where.push(`p.created_at <= ${bound(createdTo)}`);
      if (after) {
        const [createdAt, paymentId, of] = [after.createdAt, after.paymentId, after.environment].map(bound);
        where.push(`p.created_at <= ${createdAt}`);
        where.push(`(p.created_at, p.payment_id, p.environment) < (${createdAt}, ${paymentId}, ${of})`);
      }
      // The doubts are few: their payments are looked up, and not found among all.
      const from = onlyInDoubt
        ? 'doubt d JOIN payment p ON p.payment_id = d.payment_id AND p.environment = d.environment'
        : 'payment p';
      const rows = await database.query(
        `${onlyInDoubt ? `WITH doubt AS MATERIALIZED (${inDoubt})` : ''}
         ${selectListed(`(SELECT p.* FROM ${from} WHERE ${where.join(' AND ')} ${newestFirst} LIMIT ${bound(limit)})`)} ${newestFirst}`,
        values,
      );
      return rows.map(listedOf);
    },

    /** The payment with this id in this environment. */
    async find(paymentId: string, environment: string): Promise<ListedPayment | undefined> {
      const [row] = await database.query(
        selectListed('(SELECT * FROM payment WHERE payment_id = $1 AND environment = $2)'),
        [paymentId, environment],
      );
      return row && listedOf(row);
    },

    /** The number of initiations in doubt: nobody knows the ids of their payments. */
    async countInitiationsInDoubt(): Promise<number> {
      const [row] = await database.query(
        `SELECT count(*) AS writes FROM ledger WHERE why IS NOT NULL AND payment = '' AND payment_id IS NULL`,
      );
      return Number(row?.writes);
    },

    /**
     * The changes of the status, in the order of time. If two instances have seen the same change, only the first of them.
     *
     * @returns `complete`: whether none was deleted, because there were too many
     */
    async statuses(
      paymentId: string,
      environment: string,
    ): Promise<{ readonly changes: readonly StatusChange[]; readonly complete: boolean }> {
      const newestFirst = await database.query(
        `SELECT status, seen_at, seen_by, request_id FROM payment_status
         WHERE payment_id = $1 AND environment = $2 ORDER BY seen_at DESC LIMIT ${maxStatuses + 1}`,
        [paymentId, environment],
      );
      const stored = newestFirst.toReversed().map((row) => ({
        status: String(row.status),
        seenAt: Number(row.seen_at),
        seenBy: String(row.seen_by),
        requestId: textOf(row.request_id),
      }));
      return {
        changes: stored.filter(({ status }, index) => status !== stored[index - 1]?.status),
        complete: stored.length <= maxStatuses,
      };
    },

    /** The newest records of requests of a tenant for a payment with this id, newest first, without reads that have succeeded. */
    async records(paymentId: string, tenant: string, limit: number): Promise<readonly PaymentRecord[]> {
      const rows = await database.query(
        `SELECT received_at, request_id, operation, client, environment, status, outcome, bank_error, error, why FROM request_record
         WHERE payment_id = $1 AND tenant = $2 AND operation IS NOT NULL AND ${isRemarkable} ORDER BY received_at DESC LIMIT $3`,
        [paymentId, tenant, limit],
      );
      return rows.map((row) => ({
        receivedAt: Number(row.received_at),
        requestId: String(row.request_id),
        operation: String(row.operation),
        client: textOf(row.client),
        environment: textOf(row.environment),
        status: Number(row.status),
        outcome: String(row.outcome),
        bankError: textOf(row.bank_error),
        error: textOf(row.error),
        why: textOf(row.why),
      }));
    },

    /** The writes of the payment that are in doubt, or have not ended. */
    async openWrites(paymentId: string, environment: string): Promise<readonly OpenWrite[]> {
      // Two conditions, because each has an index.
      const select = (condition: string) => `
        SELECT request_id, operation, claimed_at, why, attempt FROM ledger
        WHERE ${condition} AND environment = $2 AND (payment = $1 OR payment_id = $1)`;
      const rows = await database.query(`${select('why IS NOT NULL')} UNION ${select('ended_at IS NULL')}`, [
        paymentId,
        environment,
      ]);
      return rows.map((row) => ({
        requestId: String(row.request_id),
        operation: String(row.operation),
        claimedAt: Number(row.claimed_at),
        why: textOf(row.why),
      }));
    },
  };
}

/** @param inserted rows of `insertStatuses`; PostgreSQL has counted those that were stored before */
function paymentsWithTooMany(inserted: readonly Row[]) {
  const payments = Map.groupBy(inserted, (row) => JSON.stringify([row.payment_id, row.environment]));
  const tooMany: InputOf<typeof deleteStatusesBetween.columns>[] = [];
  for (const [row, ...others] of payments.values())
    if (row && Number(row.stored) + others.length >= maxStatuses)
      tooMany.push({ payment_id: String(row.payment_id), environment: String(row.environment) });
  return tooMany;
}

const listedOf = (row: Row): ListedPayment => ({
  paymentId: String(row.payment_id),
  environment: String(row.environment),
  tenant: String(row.tenant),
  initiatedAs: textOf(row.initiated_as),
  createdAt: Number(row.created_at),
  status: textOf(row.status),
  statusSince: row.status_since === null ? undefined : Number(row.status_since),
  isInDoubt: Boolean(row.is_in_doubt),
});
