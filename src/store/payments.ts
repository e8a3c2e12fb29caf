/**
 * Which environment and tenant a payment belongs to, as a table. The ledger inserts a payment together with the answer that names it, and
 * nothing ever gives it to another tenant.
 */

import { collect } from './collect.ts';
import { type Database, DatabaseError, type Row, rowsOfAll, statement, textOf } from './database.ts';
import { type Deleted, deletedAt } from './delete-in-batches.ts';
import { mayClaim } from './ledger-statements.ts';

export interface StoredPayment {
  readonly paymentId: string;
  readonly environment: string;
  readonly tenant: string;
  /** Service and product of its initiation; `undefined` if payments of several products have this id. */
  readonly initiatedAs: string | undefined;
  /** JSON: the ids that must be sent in the spelling of the bank. */
  readonly bankIds: string | undefined;
  readonly isPermanent: boolean;
  /** For how long it has not been used, with a precision of a day. Milliseconds. */
  readonly unusedMs: number;
}

/** A payment of a tenant. Two banks may give one id to two payments. */
export type PaymentKey = Pick<StoredPayment, 'paymentId' | 'environment' | 'tenant'>;

export type PaymentTable = ReturnType<typeof createPaymentTable>;

const find = statement({
  columns: { payment_id: 'text' },
  sql: (input) => `
    SELECT (${mayClaim}) AS may_claim, payment.payment_id, payment.environment, payment.tenant, payment.initiated_as, payment.bank_ids, payment.is_permanent,
      now_ms() - payment.used_at AS unused_ms
    FROM ${input} AS i LEFT JOIN payment ON payment.payment_id = i.payment_id ORDER BY payment.created_at, payment.environment`,
});

const touch = statement({
  columns: { payment_id: 'text', environment: 'text' },
  sql: (input) => `
    UPDATE payment SET used_at = now_ms() FROM ${input} AS i
    WHERE payment.payment_id = i.payment_id AND payment.environment = i.environment RETURNING payment.payment_id`,
});

/** Every function @throws DatabaseError. What is looked for in one turn of the event loop is sent together. */
export function createPaymentTable(database: Database) {
  /** `undefined` if the payment may be among those that a failover has lost. */
  const findBatch = collect(async (ids: readonly string[]) => {
    const inputs = [...new Set(ids)].map((id) => ({ payment_id: id }));
    const { rows, refused } = await database.batch(find, inputs);
    // An id that the database cannot store, such as one with a NUL, is that of no payment.
    for (const cause of refused.values()) if (cause.effect !== 'none-ever') throw cause;
    const found = rows.filter(({ payment_id }) => payment_id !== null);
    const payments = Map.groupBy(found.map(paymentOf), ({ paymentId }) => paymentId);
    const maybeLost = rows.some(({ may_claim }) => !may_claim);
    return ids.map((id) => payments.get(id) ?? (maybeLost ? undefined : []));
  });
  const touchBatch = collect(async (keys: readonly PaymentKey[]) => {
    const distinct = new Map(keys.map((key) => [JSON.stringify([key.paymentId, key.environment]), key]));
    const inputs = Array.from(distinct.values(), ({ paymentId, environment }) => ({
      payment_id: paymentId,
      environment,
    }));
    await rowsOfAll(database.batch(touch, inputs));
    return keys.map(() => undefined);
  });

  return {
    /** Whether no other process stores payments. */
    isAlone: database.dialect === 'sqlite',

    /** All payments with this id, those of other tenants included: in the order of their initiations. */
    async find(paymentId: string): Promise<readonly StoredPayment[]> {
      const found = await findBatch(paymentId);
      if (found) return found;
      throw new DatabaseError(
        'after a failover, instances still write back the payments that it has lost',
        'none',
      );
    },

    /** Notes that a payment is in use: it then does not expire. */
    touch: (key: PaymentKey): Promise<void> => touchBatch(key),

    /**
     * Replaces the ids of a payment, unless another instance has done so.
     *
     * @param known what they were
     * @returns whether they have been replaced
     */
    async replaceBankIds(
      { paymentId, environment, tenant }: PaymentKey,
      known: string | undefined,
      bankIds: string,
    ): Promise<boolean> {
      const replaced = await database.query(
        `UPDATE payment SET bank_ids = $1
         WHERE payment_id = $2 AND environment = $3 AND tenant = $4 AND coalesce(bank_ids, '') = $5 RETURNING payment_id`,
        [bankIds, paymentId, environment, tenant, known ?? ''],
      );
      return replaced.length > 0;
    },

    /**
     * A payment that the gateway has not initiated: its product is unknown.
     *
     * @returns false if there is a payment with this id in this environment
     */
    async insertFound(
      payment: PaymentKey & { readonly bankIds: string; readonly isPermanent: boolean },
    ): Promise<boolean> {
      const { paymentId, environment, tenant, bankIds, isPermanent } = payment;
      const inserted = await database.query(
        `INSERT INTO payment (payment_id, environment, tenant, bank_ids, is_permanent, created_at, used_at)
         VALUES ($1, $2, $3, $4, $5, now_ms(), now_ms()) ON CONFLICT (payment_id, environment) DO NOTHING RETURNING payment_id`,
        [paymentId, environment, tenant, bankIds, isPermanent],
      );
      return inserted.length > 0;
    },

    /**
     * Deletes payments that have not been used for this long, those first that have not been used for longest.
     *
     * @param from payments that were last used before this time are not looked at
     */
    async deleteExpired(unusedMs: number, limit: number, from = 0): Promise<Deleted> {
      // The conditions are repeated: a payment that is used at this moment stays. The time is read once, or no index would end the search.
      const isExpired = 'NOT is_permanent AND used_at < (SELECT now_ms() - $1)';
      const deleted = await database.query(
        `DELETE FROM payment WHERE (payment_id, environment) IN (
           SELECT payment_id, environment FROM payment WHERE ${isExpired} AND used_at >= $3 ORDER BY used_at LIMIT $2)
           AND ${isExpired}
         RETURNING used_at`,
        [unusedMs, limit, from],
      );
      return deletedAt(deleted.map(({ used_at }) => Number(used_at)));
    },
  };
}

const paymentOf = (row: Row): StoredPayment => ({
  paymentId: String(row.payment_id),
  environment: String(row.environment),
  tenant: String(row.tenant),
  initiatedAs: textOf(row.initiated_as),
  bankIds: textOf(row.bank_ids),
  isPermanent: Boolean(row.is_permanent),
  unusedMs: Number(row.unused_ms),
});
