/**
 * The ledger as a table: one row for each write that a TPP has asked for, and how far it got (ADR 120, ledger-steps.ts).
 *
 * Only the row of an attempt that has sent nothing can become that of another attempt. If an answer of the database is lost, a statement
 * is repeated: it has an effect only once, and finds out what has become of its row.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { collect } from './collect.ts';
import {
  type BatchResult,
  type Columns,
  type Database,
  DatabaseError,
  type InputOf,
  type Row,
  rowsOfAll,
  type Statement,
} from './database.ts';
import { type Deleted, deletedAt } from './delete-in-batches.ts';
import * as statements from './ledger-statements.ts';

/** What identifies a write. `payment` is empty for an initiation. */
export interface LedgerKey {
  readonly tenant: string;
  readonly operation: string;
  readonly payment: string;
  readonly requestId: string;
}

/** One attempt to execute a write. */
export interface Attempt extends LedgerKey {
  readonly attempt: string;
}

/** A write that is to be claimed. */
export interface NewClaim extends Attempt {
  readonly instance: string;
  readonly path: string;
  readonly fingerprintKey: string | undefined;
  readonly fingerprintRequest: string;
  readonly fingerprintContent: string;
  /** Whether it is a step of an authorisation before the last one: it executes nothing. */
  readonly isFirstFactor: boolean;
}

/** An attempt that the bank may have received: with all that its row contains, in case the database has lost the row. */
export interface SentWrite extends NewClaim {
  readonly environment: string;
  /** For how long after the mark an answer is awaited. Milliseconds. */
  readonly listenMs: number;
  /** When it was marked, in milliseconds of `performance.now()`. */
  readonly markedAtMs: number;
}

export interface Mark extends Attempt, Pick<SentWrite, 'environment' | 'listenMs'> {
  /** The revision of the tenants that the request was identified with. */
  readonly identityRevision: number;
}

/** The answer of the bank. */
export interface LedgerAnswer {
  readonly status: number;
  /** JSON. */
  readonly headers: string;
  readonly body: Buffer;
  readonly outcome: string | undefined;
  /** Set if the answer leaves open whether the bank has executed the request: the reason. */
  readonly why: string | undefined;
  /** The payment that an initiation has created. */
  readonly created: NewPayment | undefined;
}

export interface NewPayment {
  readonly paymentId: string;
  /** Service and product: `payments/sepa-credit-transfers`. */
  readonly initiatedAs: string;
  /** JSON: the ids that must be sent in the spelling of the bank. */
  readonly bankIds?: string | undefined;
  /** Whether it is remembered for ever. */
  readonly isPermanent: boolean;
}

export interface Doubt {
  readonly why: string;
  readonly outcome?: string;
  /** Whether the reason takes the place of that of an earlier doubt. */
  readonly replaces?: boolean;
}

/** A stored row. Times in milliseconds since 1970, on the clock of the database. */
export type LedgerRow = Row;

export type ClaimOutcome =
  | {
      readonly kind: 'claimed';
      readonly activeEnvironment: string | undefined;
      /** Whether an earlier attempt with this key was sent, and released. */
      readonly followsReleased: boolean;
    }
  /** Another attempt has the row. */
  | { readonly kind: 'exists'; readonly row: LedgerRow }
  /** Nothing is stored, and nothing may be sent. */
  | { readonly kind: 'refused'; readonly cause: DatabaseError };

/**
 * What has become of the outcome of a write that was sent. `in-doubt`: the answer is not stored, because it names a payment that may belong
 * to another tenant, or cannot be stored; the TPP does not get it. `two-attempts`: another attempt has reached the bank, too.
 */
export type RecordOutcome = 'recorded' | 'in-doubt' | 'two-attempts';

/** How often a row that another attempt changes at the same time is looked at again. */
const maxLooks = 5;
/** Until an instance notices a failover, and the others have written back what they remember. Milliseconds. */
const maxFailoverMs = 2 * statements.instanceLeaseMs;
/** Interval at which an answer to another tenant, and the end of a failover, is looked for. Milliseconds. */
const lookAgainMs = 25;

export type LedgerTable = ReturnType<typeof createLedgerTable>;

/** The ledger in a database. Every function @throws DatabaseError. What is called in one turn of the event loop is sent together. */
export function createLedgerTable(database: Database) {
  const readBatch = batched(statements.read, byKey);
  const claimBatch = collect(async (claims: readonly NewClaim[]) => {
    const firsts = firstsByKey(claims);
    const { rows, refused } = await database.batch(statements.claim, firsts.map(claimColumns));
    const won = new Map(rows.map((row) => [row.attempt, row]));
    const causes = new Map([...refused].map(([index, cause]) => [firsts[index], cause]));
    return claims.map((one) => ({ row: won.get(one.attempt), cause: causes.get(one) }));
  }, database.batches);
  const markBatch = batched(statements.mark);
  const recordBatch = batched(statements.recordAnswer);
  const releaseBatch = batched(statements.release);
  const inDoubtBatch = batched(statements.markInDoubt);
  const insertLostBatch = batched(statements.insertLost);
  const happenedBatch = batched(statements.resolveHappened);
  const notHappenedBatch = batched(statements.resolveNotHappened);

  let failover: Promise<void> | undefined;

  async function claim(one: NewClaim, looksLeft = maxLooks): Promise<ClaimOutcome> {
    const { row, cause } = await claimBatch(one);
    if (cause) return { kind: 'refused', cause };
    if (row)
      return {
        kind: 'claimed',
        activeEnvironment: row.active_environment === null ? undefined : String(row.active_environment),
        followsReleased: Boolean(row.follows_released),
      };
    const stored = await read(one);
    if (stored && stored.step !== 'released') return existing(stored, one);
    await failoverHasEnded();
    // It may be free by now: another attempt has just released it.
    return looksLeft > 0 ? claim(one, looksLeft - 1) : existing(stored, one);
  }

  /** Waits until claims are allowed. One look for all that wait. */
  function failoverHasEnded(): Promise<void> {
    failover ??= lookUntilItHasEnded().finally(() => {
      failover = undefined;
    });
    return failover;
  }

  async function lookUntilItHasEnded(): Promise<void> {
    const waitUntilMs = performance.now() + maxFailoverMs;
    for (;;) {
      const [row] = await database.query(`SELECT ${statements.mayClaim} AS may_claim`);
      if (row?.may_claim) return;
      if (performance.now() > waitUntilMs)
        throw new DatabaseError(
          'claims were not allowed for 12 s after a failover: the logs of the instances say why they cannot report',
          'none',
        );
      await sleep(lookAgainMs);
    }
  }

  /** After a failover: a write that this instance is sending, if the database has lost the mark. */
  async function restoreMark(sent: SentWrite): Promise<void> {
    const columns = {
      ...attemptColumns(sent),
      environment: sent.environment,
      ...timesOf(sent),
    };
    const restore = async () => ((await changes(statements.restoreMark, columns)) ? 'recorded' : undefined);
    await recordOutcome(sent, undefined, restore);
  }

  const read = async (key: LedgerKey): Promise<LedgerRow | undefined> =>
    rowOf(await readBatch(keyColumns(key)));

  /** The write-ahead mark: the bank may receive the request from now on. @returns false if nothing may be sent */
  async function mark(one: Mark): Promise<boolean> {
    const { environment, listenMs, identityRevision } = one;
    const columns = {
      ...{ ...attemptColumns(one), environment },
      ...{ listen_ms: listenMs, identity_revision: identityRevision },
    };
    return rowOf(await markBatch(columns)) !== undefined;
  }

  /** Nothing was sent, or the bank has not processed the request. */
  async function release(one: Attempt, looksLeft = maxLooks): Promise<void> {
    if (rowOf(await releaseBatch(attemptColumns(one)))) return;
    const stored = await read(one);
    if (stored?.attempt !== one.attempt || (stored.step !== 'claimed' && stored.step !== 'sending')) return;
    // Its mark, whose answer was lost, was executed at the same time: the statement has waited for it, and then found another step.
    if (looksLeft === 0) throw new DatabaseError('the row was not released', 'unknown');
    await release(one, looksLeft - 1);
  }

  /**
   * The answer, for repeats.
   *
   * @param waitMs how long to wait for the answer to another tenant that has sent an initiation with the same X-Request-ID
   */
  const recordAnswer = (sent: SentWrite, answer: LedgerAnswer, waitMs = 0): Promise<RecordOutcome> =>
    recordAnswerWithin(sent, { ...answer, isRestored: false }, waitMs);

  /** After a failover: an answer that was recorded before it. */
  const restoreAnswer = (sent: SentWrite, answer: LedgerAnswer): Promise<RecordOutcome> =>
    recordAnswerWithin(sent, { ...answer, isRestored: true }, 0);

  async function recordAnswerWithin(
    sent: SentWrite,
    answer: LedgerAnswer & { readonly isRestored: boolean },
    waitMs: number,
  ): Promise<RecordOutcome> {
    const waitUntilMs = performance.now() + waitMs;
    for (;;) {
      const mayWait = performance.now() < waitUntilMs;
      const outcome = await recordAnswerNow(sent, answer, mayWait);
      if (outcome !== 'must-wait') return outcome;
      await sleep(lookAgainMs);
    }
  }

  async function recordAnswerNow(
    sent: SentWrite,
    answer: LedgerAnswer & { readonly isRestored: boolean },
    mayWait: boolean,
  ): Promise<RecordOutcome | 'must-wait'> {
    const { created } = answer;
    const columns = {
      ...attemptColumns(sent),
      environment: sent.environment,
      status: answer.status,
      headers: answer.headers,
      body: answer.body,
      outcome: answer.outcome ?? null,
      why: answer.why ?? null,
      ...paymentColumns(created),
      is_restored: answer.isRestored,
    };
    const recordNow = async () => {
      const { row, cause } = await recordBatch(columns);
      if (cause?.effect === 'none-ever')
        return putInDoubt(sent, `the answer of the bank cannot be stored: ${cause.reason}`);
      if (cause) throw cause;
      return row && 'recorded';
    };
    return recordOutcome(sent, answer, async () => {
      let outcome = await recordNow();
      if (outcome || !created || !(await isUnanswered(sent))) return outcome;
      if (!answer.isRestored) {
        await failoverHasEnded(); // another tenant may have sent it first, and its instance has not written that back yet
        outcome = await recordNow();
        if (outcome) return outcome;
      }
      const waits = await changes(statements.waitsForOther, {
        ...attemptColumns(sent),
        environment: sent.environment,
      });
      if (waits && mayWait) return 'must-wait';
      const why = 'the payment in the answer may belong to another tenant';
      return (waits ? undefined : await recordNow()) ?? putInDoubt(sent, why); // the other answer may just have arrived
    });
  }

  /** The answer is not stored. */
  async function putInDoubt(sent: SentWrite, why: string): Promise<RecordOutcome> {
    const outcome = await markInDoubt(sent, { why, outcome: 'in-doubt', replaces: true });
    return outcome === 'two-attempts' ? outcome : 'in-doubt';
  }

  async function isUnanswered(sent: SentWrite): Promise<boolean> {
    const stored = await read(sent);
    return stored?.attempt === sent.attempt && stored.ended_at === null;
  }

  /** It is unknown whether the bank has executed the request. */
  async function markInDoubt(
    sent: SentWrite,
    { why, outcome, replaces = false }: Doubt,
  ): Promise<RecordOutcome> {
    return recordOutcome(sent, undefined, async () => {
      const { environment } = sent;
      const doubt = { ...attemptColumns(sent), environment, why, outcome: outcome ?? null, replaces };
      return rowOf(await inDoubtBatch(doubt)) && 'recorded';
    });
  }

  /**
   * @param answer `undefined` for a mark or a doubt
   * @param write  returns `undefined` if it has found no row of this attempt that it may change
   */
  async function recordOutcome<Outcome extends string>(
    sent: SentWrite,
    answer: LedgerAnswer | undefined,
    write: () => Promise<Outcome | undefined>,
    looksLeft = maxLooks,
  ): Promise<Outcome | RecordOutcome> {
    const outcome = await write();
    if (outcome) return outcome;
    const stored = await read(sent);
    const isOwn = stored?.attempt === sent.attempt;
    if (isOwn && isFinal(stored, answer)) {
      await changes(statements.confirm, attemptColumns(sent));
      return finalOutcome(stored, answer); // after a lost answer of the database, or an operator
    }
    if (!stored) rowOf(await insertLost(sent));
    // Its own row, which was not there when `write` looked: after a failover, this instance writes back the mark or a doubt at the same time.
    else if (!isOwn && !(await takeBack(sent, stored)) && (await reportTwo(sent, stored)))
      return 'two-attempts';
    if (looksLeft === 0)
      throw new DatabaseError('another attempt changes the row of the ledger again and again', 'unknown');
    return recordOutcome(sent, answer, write, looksLeft - 1);
  }

  /** If another attempt is faster and inserts its own, the next look finds that. */
  const insertLost = (sent: SentWrite) => insertLostBatch(sentColumns(sent));

  const takeBack = (sent: SentWrite, { attempt }: LedgerRow) =>
    changes(statements.takeBack, { ...sentColumns(sent), other: attempt ?? null });

  const reportTwo = (sent: SentWrite, { attempt }: LedgerRow) =>
    changes(statements.reportOther, {
      ...keyColumns(sent),
      other: attempt ?? null,
      described: `another attempt with this X-Request-ID has reached ${sent.environment}, too`,
    });

  /** Whether a statement has changed or found a row. */
  async function changes<Input extends Columns>(
    statement: Statement<Input>,
    input: InputOf<Input>,
  ): Promise<boolean> {
    const rows = await rowsOfAll(database.batch(statement, [input]));
    return rows.length > 0;
  }

  return {
    claim: (one: NewClaim) => claim(one),
    read,
    mark,
    restoreMark,
    recordAnswer,
    restoreAnswer,
    markInDoubt,

    release: (one: Attempt) => release(one),

    /** @returns false if it is not in doubt any more, or the payment belongs to another tenant */
    async resolveHappened(one: Attempt, created?: NewPayment): Promise<boolean> {
      const columns = { ...attemptColumns(one), ...paymentColumns(created) };
      return rowOf(await happenedBatch(columns)) !== undefined;
    },

    /** @returns false if it is not in doubt any more, or its answer may still arrive */
    async resolveNotHappened(one: Attempt): Promise<boolean> {
      return rowOf(await notHappenedBatch(attemptColumns(one))) !== undefined;
    },

    /** The writes in doubt, the oldest first. */
    inDoubt: (limit: number): Promise<readonly LedgerRow[]> =>
      database.query('SELECT * FROM ledger WHERE why IS NOT NULL ORDER BY claimed_at LIMIT $1', [limit]),

    async inDoubtWith(attempt: string): Promise<LedgerRow | undefined> {
      const [row] = await database.query(
        'SELECT ledger.*, now_ms() AS read_at FROM ledger WHERE why IS NOT NULL AND attempt = $1',
        [attempt],
      );
      return row;
    },

    /** Of those whose effect a read can show, the oldest. */
    readableInDoubt: (limit: number): Promise<readonly LedgerRow[]> =>
      database.query(
        `SELECT attempt, operation, path, payment, environment FROM ledger
         WHERE why IS NOT NULL AND operation IN ('cancelPayment', 'updatePsuData', 'updatePayment') ORDER BY claimed_at LIMIT $1`,
        [limit],
      ),

    /** How many are in doubt, by environment and operation: `writes`, of which so many were sent `twice`, the oldest claimed at `since`. */
    countsInDoubt: (): Promise<readonly LedgerRow[]> =>
      database.query(
        `SELECT environment, operation, is_first_factor, count(*) AS writes, count(other_attempt) AS twice, min(claimed_at) AS since
         FROM ledger WHERE why IS NOT NULL GROUP BY environment, operation, is_first_factor`,
      ),

    /**
     * Whether another tenant has sent an initiation with this id to the same bank before, and the bank has not refused it. An answer that
     * cannot be read may then show its payment.
     */
    async followsOther({ requestId, tenant, operation, environment, attempt }: SentWrite): Promise<boolean> {
      const found = await database.query(
        `SELECT 1 AS one FROM ledger l JOIN ledger o ON o.request_id = l.request_id AND o.operation = l.operation
         WHERE l.request_id = $1 AND l.tenant = $2 AND l.operation = $3 AND l.payment = '' AND l.attempt = $4
           AND o.tenant <> l.tenant AND o.environment = $5 AND o.marked_at <= l.marked_at
           AND o.step <> 'released' AND NOT (o.step = 'answered' AND o.payment_id IS NULL AND o.why IS NULL) LIMIT 1`,
        [requestId.toLowerCase(), tenant, operation, attempt, environment],
      );
      return found.length > 0;
    },

    /**
     * Deletes writes whose window has passed since they ended, the oldest claims first.
     *
     * @param from the time of a claim: older ones are not looked at
     */
    async deleteExpired(windowMs: number, limit: number, from = 0): Promise<Deleted> {
      // The conditions are repeated: a row that a new attempt claims at this moment stays. The time is read once, or no index would end the search.
      const isExpired = `claimed_at < (SELECT now_ms() - $1) AND ended_at < (SELECT now_ms() - $1) AND why IS NULL`;
      const deleted = await database.query(
        `DELETE FROM ledger WHERE (request_id, tenant, operation, payment) IN (
           SELECT request_id, tenant, operation, payment FROM ledger
           WHERE ${isExpired} AND claimed_at >= $3 ORDER BY claimed_at LIMIT $2)
           AND ${isExpired}
         RETURNING claimed_at`,
        [windowMs, limit, from],
      );
      return deletedAt(deleted.map(({ claimed_at }) => Number(claimed_at)));
    },
  };

  /** Executes a statement for all inputs of a turn of the event loop; the result of each is the row that it has returned. */
  function batched<Input extends Columns>(
    statement: Statement<Input>,
    rowsFor: typeof byAttempt = byAttempt,
  ) {
    return collect(async (inputs: readonly InputOf<Input>[]) => {
      return rowsFor(inputs, await database.batch(statement, inputs));
    }, database.batches);
  }
}

interface Returned {
  readonly row: Row | undefined;
  readonly cause: DatabaseError | undefined;
}

/** @throws DatabaseError that the database has refused the input with */
function rowOf({ row, cause }: Returned): Row | undefined {
  if (cause) throw cause;
  return row;
}

function byAttempt(inputs: readonly Row[], { rows, refused }: BatchResult): readonly Returned[] {
  const found = new Map(rows.map((row) => [row.attempt, row]));
  return inputs.map((input, index) => ({
    row: input.attempt === undefined ? undefined : found.get(input.attempt),
    cause: refused.get(index),
  }));
}

function byKey(inputs: readonly Row[], { rows, refused }: BatchResult): readonly Returned[] {
  const found = new Map(rows.map((row) => [keyText(row), row]));
  return inputs.map((input, index) => ({ row: found.get(keyText(input)), cause: refused.get(index) }));
}

const keyText = ({ request_id, tenant, operation, payment }: Row): string =>
  JSON.stringify([request_id, tenant, operation, payment]);

/** The same for equal keys: an X-Request-ID in upper and lower case is one. */
export const keyTextOf = (key: LedgerKey): string => keyText(keyColumns(key));

/** Whether this answer, or this mark or doubt, may not change the row any more. */
const isFinal = ({ step }: LedgerRow, answer: LedgerAnswer | undefined): boolean =>
  step !== 'claimed' && step !== 'sending' && (step !== 'in-doubt' || answer === undefined);

/** Of a write whose row is not changed any more. */
function finalOutcome({ step, payment_id }: LedgerRow, answer: LedgerAnswer | undefined): RecordOutcome {
  // The answer names a payment that is not stored: the operator has named another one, or it may belong to another tenant.
  const isOther = step === 'happened' && answer?.created && answer.created.paymentId !== payment_id;
  return step === 'in-doubt' || isOther ? 'in-doubt' : 'recorded';
}

/** The row that another attempt has, or had until now. */
function existing(stored: LedgerRow | undefined, one: NewClaim): ClaimOutcome {
  return { kind: 'exists', row: stored ?? { ...claimColumns(one), step: 'claimed' } };
}

const keyColumns = ({ tenant, operation, payment, requestId }: LedgerKey) => ({
  request_id: requestId.toLowerCase(),
  tenant,
  operation,
  payment,
});

const attemptColumns = (one: Attempt) => ({ ...keyColumns(one), attempt: one.attempt });

const paymentColumns = (created: NewPayment | undefined) => ({
  payment_id: created?.paymentId ?? null,
  initiated_as: created?.initiatedAs ?? null,
  bank_ids: created?.bankIds ?? null,
  is_permanent: created?.isPermanent ?? null,
});

const claimColumns = (one: NewClaim) => ({
  ...attemptColumns(one),
  instance: one.instance,
  path: one.path,
  fingerprint_key: one.fingerprintKey ?? null,
  fingerprint_request: one.fingerprintRequest,
  fingerprint_content: one.fingerprintContent,
  is_first_factor: one.isFirstFactor,
});

/** Milliseconds. */
const timesOf = ({ markedAtMs, listenMs }: SentWrite) => ({
  age_ms: Math.max(0, Math.round(performance.now() - markedAtMs)),
  listen_ms: listenMs,
});

const sentColumns = (sent: SentWrite) => ({
  ...claimColumns(sent),
  environment: sent.environment,
  ...timesOf(sent),
});

/** PostgreSQL refuses to change a row twice in one statement. */
function firstsByKey(claims: readonly NewClaim[]): readonly NewClaim[] {
  const firsts = new Map<string, NewClaim>();
  for (const one of claims) {
    const key = keyTextOf(one);
    if (!firsts.has(key)) firsts.set(key, one);
  }
  return [...firsts.values()];
}
