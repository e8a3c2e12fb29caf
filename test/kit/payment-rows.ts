/** Rows of payments and of records of requests, as the gateway stores them. */

import type { Database } from '../../src/store/database.ts';

interface PaymentRows {
  /** With `count`, the beginning of the ids: `p-1`, `p-2`. */
  readonly paymentId: string;
  readonly environment?: string;
  readonly tenant?: string;
  readonly product?: string;
  readonly ageMs: number;
  /** Each following one is a millisecond younger. */
  readonly count?: number;
}

export async function insertPayments(
  database: Database,
  { paymentId, environment = 'sandbox', tenant = 'shop', product, ageMs, count }: PaymentRows,
): Promise<void> {
  await database.query(
    `INSERT INTO payment (payment_id, environment, tenant, initiated_as, is_permanent, created_at, used_at)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count ?? 1})
     SELECT ${count === undefined ? '$1' : `$1 || '-' || n`}, $2, $3, $4, false, (SELECT now_ms()) - $5 + n, (SELECT now_ms()) - $5 + n FROM numbers`,
    [paymentId, environment, tenant, product ?? 'payments/sepa-credit-transfers', ageMs],
  );
}

interface RecordRow {
  readonly number: number;
  readonly receivedAt?: number;
  readonly requestId?: string;
  readonly operation: string;
  readonly tenant?: string;
  readonly environment?: string;
  readonly paymentId?: string;
  readonly status?: number;
  readonly outcome?: string;
  readonly bankError?: string;
  readonly error?: string;
  readonly why?: string;
}

export async function insertRecord(database: Database, record: RecordRow): Promise<void> {
  const { number, receivedAt = number, requestId = `request-${number}`, operation } = record;
  const { tenant = 'shop', environment = 'sandbox', paymentId = 'p1', status = 201 } = record;
  const { outcome = 'succeeded', bankError = null, error = null, why = null } = record;
  await database.query(
    `INSERT INTO request_record (instance, number, received_at, request_id, operation, client, tenant, environment, payment_id,
       status, outcome, bank_error, error, why, events)
     VALUES ('test', $1, $2, $3, $4, 'checkout', $5, $6, $7, $8, $9, $10, $11, $12, '[]')`,
    [number, receivedAt, requestId, operation, tenant, environment, paymentId, status, outcome].concat([
      bankError,
      error,
      why,
    ] as never[]),
  );
}
