/**
 * The ledger as a table: one row for each write that a TPP has asked for, and how far it got (ADR 120).
 *
 *     claimed --> sending --> answered            the bank has answered
 *        |           |   \--> in-doubt --> happened | (deleted)   by an operator or a read
 *        |           \------> (deleted)           the bank has not processed it
 *        \------------------> (deleted)           nothing was sent
 *
 * Only a claimed row may be taken over by another attempt, and only if its instance is dead: nothing was sent. Every statement names the
 * attempt that it continues, and returns the attempts that it has changed; nothing else decides.
 */

import type { ColumnType, Database, InputOf, Row, Statement, Value } from './database.ts';

/** What identifies a write. `payment` is empty for an initiation. */
export interface LedgerKey {
  readonly tenant: string;
  readonly operation: string;
  readonly payment: string;
  readonly requestId: string;
}

/** A write that is to be claimed. */
export interface NewClaim extends LedgerKey {
  readonly attempt: string;
  readonly instance: string;
  readonly path: string;
  readonly fingerprintKey: string | undefined;
  readonly fingerprintRequest: string;
  readonly fingerprintContent: string;
  readonly followsReleased: boolean;
}

/** The answer of the bank. */
export interface LedgerAnswer {
  readonly status: number;
  /** JSON. */
  readonly headers: string;
  readonly body: Buffer;
  readonly paymentId: string | undefined;
  readonly outcome: string | undefined;
  /** Set if the answer leaves open whether the bank has executed the request: the reason. */
  readonly why: string | undefined;
}

/** One attempt, as later statements name it. */
export interface Attempt extends LedgerKey {
  readonly attempt: string;
}

/** A stored row. Times in milliseconds since 1970, on the clock of the database. */
export type LedgerRow = Row;

export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly activeEnvironment: string | undefined }
  /** Another attempt has the row. */
  | { readonly kind: 'exists'; readonly row: LedgerRow }
  | { readonly kind: 'refused'; readonly cause: Error };

/** An instance that has not reported for this long is dead. Milliseconds. */
const instanceLeaseMs = 6_000;

const keyColumns = { tenant: 'text', operation: 'text', payment: 'text', request_id: 'text' } as const;
const attemptColumns = { ...keyColumns, attempt: 'text' } as const;

const isSameRow =
  'ledger.tenant = i.tenant AND ledger.operation = i.operation AND ledger.payment = i.payment AND ledger.request_id = i.request_id';
const isSameAttempt = `${isSameRow} AND ledger.attempt = i.attempt`;

/** Sorted, so that two instances take the locks of several rows in one order. */
const claim = statement(
  {
    ...attemptColumns,
    instance: 'text',
    path: 'text',
    fingerprint_key: 'text',
    fingerprint_request: 'text',
    fingerprint_content: 'text',
    follows_released: 'boolean',
  },
  (input) => `
    INSERT INTO ledger AS l (tenant, operation, payment, request_id, step, attempt, instance, path,
      fingerprint_key, fingerprint_request, fingerprint_content, follows_released, claimed_at)
    SELECT i.tenant, i.operation, i.payment, i.request_id, 'claimed', i.attempt, i.instance, i.path,
      i.fingerprint_key, i.fingerprint_request, i.fingerprint_content, i.follows_released, now_ms()
    FROM ${input} AS i WHERE true ORDER BY i.tenant, i.operation, i.payment, i.request_id
    ON CONFLICT (tenant, operation, payment, request_id) DO UPDATE SET
      attempt = excluded.attempt, instance = excluded.instance, path = excluded.path,
      fingerprint_key = excluded.fingerprint_key, fingerprint_request = excluded.fingerprint_request,
      fingerprint_content = excluded.fingerprint_content, follows_released = l.follows_released, claimed_at = excluded.claimed_at
      WHERE l.step = 'claimed' AND NOT EXISTS (
        SELECT 1 FROM instance WHERE id = l.instance AND seen_at > now_ms() - ${instanceLeaseMs})
    RETURNING attempt, (SELECT environment FROM active_environment) AS environment`,
);

const read = statement(
  keyColumns,
  (input) => `SELECT ledger.* FROM ${input} AS i JOIN ledger ON ${isSameRow}`,
);

const markSending = statement(
  { ...attemptColumns, environment: 'text', listen_ms: 'bigint' },
  (input) => `
    UPDATE ledger SET step = 'sending', environment = i.environment, listened_until = now_ms() + i.listen_ms
    FROM ${input} AS i WHERE ${isSameAttempt} AND ledger.step = 'claimed'
    RETURNING ledger.attempt`,
);

const recordAnswer = statement(
  {
    ...attemptColumns,
    status: 'integer',
    headers: 'text',
    body: 'bytea',
    payment_id: 'text',
    outcome: 'text',
    why: 'text',
  },
  (input) => `
    UPDATE ledger SET step = 'answered', status = i.status, headers = i.headers, body = i.body,
      payment_id = i.payment_id, outcome = i.outcome, why = i.why, answered_at = now_ms()
    FROM ${input} AS i WHERE ${isSameAttempt} AND ledger.step IN ('sending', 'in-doubt')
    RETURNING ledger.attempt`,
);

const release = statement(
  attemptColumns,
  (input) => `
    DELETE FROM ledger WHERE (tenant, operation, payment, request_id, attempt) IN (
      SELECT i.tenant, i.operation, i.payment, i.request_id, i.attempt FROM ${input} AS i)
      AND step IN ('claimed', 'sending')
    RETURNING attempt`,
);

const markInDoubt = statement(
  { ...attemptColumns, why: 'text', outcome: 'text' },
  (input) => `
    UPDATE ledger SET step = 'in-doubt', why = i.why, outcome = i.outcome
    FROM ${input} AS i WHERE ${isSameAttempt} AND ledger.step = 'sending'
    RETURNING ledger.attempt`,
);

/** As happened, with the id of the payment if it is known. */
const resolveHappened = statement(
  { ...attemptColumns, payment_id: 'text' },
  (input) => `
    UPDATE ledger SET step = 'happened', why = NULL, payment_id = coalesce(i.payment_id, ledger.payment_id), answered_at = now_ms()
    FROM ${input} AS i WHERE ${isSameAttempt} AND ledger.why IS NOT NULL
    RETURNING ledger.attempt`,
);

/** As not happened: refused while the instance may still send, or the answer may still arrive. */
const resolveNotHappened = statement(
  attemptColumns,
  (input) => `
    DELETE FROM ledger WHERE (tenant, operation, payment, request_id, attempt) IN (
      SELECT i.tenant, i.operation, i.payment, i.request_id, i.attempt FROM ${input} AS i)
      AND why IS NOT NULL AND listened_until < now_ms()
    RETURNING attempt`,
);

export type Ledger = ReturnType<typeof createLedger>;

/**
 * The ledger in a database. Each function takes all writes of a tick together.
 *
 * @param onRefused called for a write that the database cannot store, such as a payment id with a NUL: its row stays as it was
 * @throws DatabaseError if the database cannot be reached
 */
export function createLedger(database: Database, onRefused: (cause: Error) => void = () => {}) {
  const changed = async <Columns extends Readonly<Record<string, ColumnType>>>(
    statement: Statement<Columns>,
    rows: readonly InputOf<Columns>[],
  ): Promise<ReadonlySet<string>> => {
    const { rows: returned, refused } = await database.batch(statement, rows);
    for (const cause of refused.values()) onRefused(cause);
    return new Set(returned.map(({ attempt }) => String(attempt)));
  };

  return {
    /** Claims writes; the outcomes are in the order of the claims. Of equal keys in one call, the first one is claimed. */
    async claim(claims: readonly NewClaim[]): Promise<readonly ClaimOutcome[]> {
      const firsts = firstsByKey(claims);
      const { rows, refused } = await database.batch(
        claim,
        firsts.map((one) => ({
          ...attemptOf(one),
          instance: one.instance,
          path: one.path,
          fingerprint_key: one.fingerprintKey ?? null,
          fingerprint_request: one.fingerprintRequest,
          fingerprint_content: one.fingerprintContent,
          follows_released: one.followsReleased,
        })),
      );
      const won = new Map(rows.map(({ attempt, environment }) => [attempt, environment]));
      const causes = new Map([...refused].map(([index, cause]) => [firsts[index], cause]));
      const others = claims.filter((one) => !won.has(one.attempt) && !causes.has(one));
      const stored = new Map((await readRows(others)).map((row) => [keyText(keyIn(row)), row]));
      return Promise.all(
        claims.map(async (one): Promise<ClaimOutcome> => {
          const environment = won.get(one.attempt);
          if (environment !== undefined)
            return {
              kind: 'claimed',
              activeEnvironment: environment === null ? undefined : String(environment),
            };
          const cause = causes.get(one);
          if (cause) return { kind: 'refused', cause };
          const row = stored.get(keyText(one));
          if (row) return { kind: 'exists', row };
          // No insert and no row: the other attempt was released in between.
          const [again] = await this.claim([one]);
          return again ?? { kind: 'refused', cause: new Error('the row was released again and again') };
        }),
      );
    },

    /**
     * The write-ahead mark: the bank may receive the request from now on.
     *
     * @param listenMs for how long an answer is awaited
     * @returns the attempts that may be sent; another attempt has taken over the others
     */
    markSending: (
      attempts: readonly (Attempt & { readonly environment: string; readonly listenMs: number })[],
    ) =>
      changed(
        markSending,
        attempts.map((one) => ({ ...attemptOf(one), environment: one.environment, listen_ms: one.listenMs })),
      ),

    /** @returns the attempts whose answers are stored, for repeats */
    recordAnswers: (attempts: readonly (Attempt & LedgerAnswer)[]) =>
      changed(
        recordAnswer,
        attempts.map((one) => ({
          ...attemptOf(one),
          status: one.status,
          headers: one.headers,
          body: one.body,
          payment_id: one.paymentId ?? null,
          outcome: one.outcome ?? null,
          why: one.why ?? null,
        })),
      ),

    /** Nothing was sent, or the bank has not processed the request. */
    release: (attempts: readonly Attempt[]) => changed(release, attempts.map(attemptOf)),

    /** It is unknown whether the bank has executed the request. */
    markInDoubt: (attempts: readonly (Attempt & { readonly why: string; readonly outcome?: string })[]) =>
      changed(
        markInDoubt,
        attempts.map((one) => ({ ...attemptOf(one), why: one.why, outcome: one.outcome ?? null })),
      ),

    resolveHappened: (attempts: readonly (Attempt & { readonly paymentId?: string })[]) =>
      changed(
        resolveHappened,
        attempts.map((one) => ({ ...attemptOf(one), payment_id: one.paymentId ?? null })),
      ),

    resolveNotHappened: (attempts: readonly Attempt[]) =>
      changed(resolveNotHappened, attempts.map(attemptOf)),

    read: (keys: readonly LedgerKey[]) => readRows(keys),

    /** The writes in doubt, the oldest first. */
    inDoubt: (limit: number) =>
      database.query('SELECT * FROM ledger WHERE why IS NOT NULL ORDER BY claimed_at LIMIT $1', [limit]),

    /** Reports that an instance lives. */
    heartbeat: async (instance: string): Promise<void> => {
      await database.query(
        `INSERT INTO instance (id, seen_at) VALUES ($1, now_ms())
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`,
        [instance],
      );
    },

    /** An instance that ends reports no more: the others need not wait until it counts as dead. */
    deregister: async (instance: string): Promise<void> => {
      await database.query('DELETE FROM instance WHERE id = $1', [instance]);
    },

    /**
     * Takes over what dead instances have left: a claim that was never marked is deleted, and a mark is in doubt.
     *
     * @param instance must have reported without a gap for `instanceLeaseMs`: after an outage of the database, everyone looks dead
     * @returns the attempts that are in doubt now
     */
    async recover(instance: string): Promise<readonly Row[]> {
      const isLeft = `answered_at IS NULL AND why IS NULL AND instance <> $1 AND NOT EXISTS (
        SELECT 1 FROM instance WHERE id = ledger.instance AND seen_at > now_ms() - ${instanceLeaseMs})`;
      await database.query(`DELETE FROM ledger WHERE step = 'claimed' AND ${isLeft}`, [instance]);
      return database.query(
        `UPDATE ledger SET step = 'in-doubt', why = 'the gateway instance that sent it has ended'
         WHERE step = 'sending' AND ${isLeft} RETURNING *`,
        [instance],
      );
    },

    /** Deletes answered writes whose window has passed. @returns how many; call it again if that is `limit` */
    async deleteExpired(windowMs: number, limit: number): Promise<number> {
      const deleted = await database.query(
        `DELETE FROM ledger WHERE (tenant, operation, payment, request_id) IN (
           SELECT tenant, operation, payment, request_id FROM ledger
           WHERE claimed_at < now_ms() - $1 AND answered_at < now_ms() - $1 AND why IS NULL
           ORDER BY claimed_at LIMIT $2)
         RETURNING attempt`,
        [windowMs, limit],
      );
      return deleted.length;
    },
  };

  async function readRows(keys: readonly LedgerKey[]): Promise<readonly LedgerRow[]> {
    if (keys.length === 0) return [];
    return (await database.batch(read, keys.map(keyOf))).rows;
  }
}

function statement<const Columns extends Readonly<Record<string, ColumnType>>>(
  columns: Columns,
  sql: (input: string) => string,
): Statement<Columns> {
  return { columns, sql };
}

const keyOf = ({ tenant, operation, payment, requestId }: LedgerKey) => ({
  tenant,
  operation,
  payment,
  request_id: requestId.toLowerCase(),
});

const attemptOf = (one: Attempt) => ({ ...keyOf(one), attempt: one.attempt });

const keyText = ({ tenant, operation, payment, requestId }: LedgerKey): string =>
  JSON.stringify([tenant, operation, payment, requestId.toLowerCase()]);

const keyIn = (row: Readonly<Record<string, Value>>): LedgerKey => ({
  tenant: String(row.tenant),
  operation: String(row.operation),
  payment: String(row.payment),
  requestId: String(row.request_id),
});

/** PostgreSQL refuses to update a row twice in one statement. */
function firstsByKey(claims: readonly NewClaim[]): readonly NewClaim[] {
  const firsts = new Map<string, NewClaim>();
  for (const one of claims) if (!firsts.has(keyText(one))) firsts.set(keyText(one), one);
  return [...firsts.values()];
}
