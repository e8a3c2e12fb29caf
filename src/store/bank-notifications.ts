/** The payments that banks notify the gateway of, by the id of the token in the URI, and the secret of the tokens. */

import { type Database, type Row, textOf } from './database.ts';

export interface NotifiedPayment {
  readonly tenantId: string;
  /** The key of the payment in the cache. */
  readonly paymentKey: string;
}

export type BankNotificationTable = ReturnType<typeof createBankNotificationTable>;

/** How long a mark is kept. Longer than a call to the bank can take. Milliseconds. */
const earlyMs = 15 * 60_000;
const tokenSecret = 'bank notifications';

/** Every function @throws DatabaseError. */
export function createBankNotificationTable(database: Database) {
  return {
    /**
     * Finds the payment of a token. The gateway sends a token before it knows the payment id, so a notification can arrive before the payment
     * is stored: it leaves a mark for `record`.
     *
     * @param id of the token
     */
    async find(id: string): Promise<NotifiedPayment | undefined> {
      const find = () =>
        database.query('SELECT tenant, payment_key FROM notified_payment WHERE token_id = $1', [id]);
      const [known] = await find();
      if (known) return paymentIn(known);
      const marked = await database.query(
        `INSERT INTO notified_payment (token_id, is_early, kept_until) VALUES ($1, true, now_ms() + $2)
         ON CONFLICT (token_id) DO NOTHING RETURNING token_id`,
        [id, earlyMs],
      );
      if (marked.length > 0) return undefined;
      const [recorded] = await find(); // in the meantime
      return recorded && paymentIn(recorded);
    },

    /** Stores the payment of a token. @returns whether a notification has arrived before */
    async record(id: string, { tenantId, paymentKey }: NotifiedPayment, keepForMs: number): Promise<boolean> {
      const [row] = await database.query(
        `INSERT INTO notified_payment (token_id, tenant, payment_key, is_early, kept_until) VALUES ($1, $2, $3, false, now_ms() + $4)
         ON CONFLICT (token_id) DO UPDATE SET tenant = excluded.tenant, payment_key = excluded.payment_key,
           kept_until = excluded.kept_until RETURNING is_early`,
        [id, tenantId, paymentKey, keepForMs],
      );
      return Boolean(row?.is_early);
    },

    /** Deletes what is not kept any more. @returns how many */
    async deleteExpired(limit: number): Promise<number> {
      const deleted = await database.query(
        `DELETE FROM notified_payment WHERE token_id IN (
           SELECT token_id FROM notified_payment WHERE kept_until < (SELECT now_ms()) LIMIT $1) RETURNING token_id`,
        [limit],
      );
      return deleted.length;
    },

    async readSecret(): Promise<string | undefined> {
      const [row] = await database.query('SELECT value FROM secret WHERE name = $1', [tokenSecret]);
      return textOf(row?.value);
    },

    /** @param known the secret that is replaced; `undefined` if there must be none @returns whether it is stored */
    async writeSecret(known: string | undefined, value: string): Promise<boolean> {
      const written =
        known === undefined
          ? await database.query(
              'INSERT INTO secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING name',
              [tokenSecret, value],
            )
          : await database.query(
              'UPDATE secret SET value = $2 WHERE name = $1 AND value = $3 RETURNING name',
              [tokenSecret, value, known],
            );
      return written.length > 0;
    },
  };
}

function paymentIn({ tenant, payment_key: paymentKey }: Row): NotifiedPayment | undefined {
  const [tenantId, key] = [textOf(tenant), textOf(paymentKey)];
  return tenantId === undefined || key === undefined ? undefined : { tenantId, paymentKey: key };
}
