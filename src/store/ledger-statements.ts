/**
 * The statements of the ledger. A statement on an attempt changes its row only if the attempt still has it, and is in a step that allows
 * it (ledger-steps.ts). It returns the attempts that it has changed, and nothing else decides.
 */

import { statement } from './database.ts';
import { stepsBefore } from './ledger-steps.ts';

/** An instance that has not reported for this long counts as dead. Milliseconds. */
export const instanceLeaseMs = 6_000;

const keyColumns = { request_id: 'text', tenant: 'text', operation: 'text', payment: 'text' } as const;
const attemptColumns = { ...keyColumns, attempt: 'text' } as const;
const claimColumns = {
  ...attemptColumns,
  instance: 'text',
  path: 'text',
  fingerprint_key: 'text',
  fingerprint_request: 'text',
  fingerprint_content: 'text',
  is_first_factor: 'boolean',
} as const;
/** Of a write that was sent: with the time since its mark, and for how long after it an answer is awaited. */
const sentColumns = { ...claimColumns, environment: 'text', age_ms: 'bigint', listen_ms: 'bigint' } as const;
const answerColumns = {
  ...attemptColumns,
  environment: 'text',
  status: 'integer',
  headers: 'text',
  body: 'bytea',
  payment_id: 'text',
  outcome: 'text',
  why: 'text',
  initiated_as: 'text',
  bank_ids: 'text',
  is_permanent: 'boolean',
  /** Whether it is written again after a failover: others wait for it. */
  is_restored: 'boolean',
} as const;

/**
 * What is read of a row. Listed, because a prepared statement that returns `*` fails when the migration of a newer build adds a column.
 */
const readColumns = [
  ...['request_id', 'tenant', 'operation', 'payment', 'step', 'attempt', 'instance', 'environment', 'path'],
  ...['fingerprint_key', 'fingerprint_request', 'fingerprint_content', 'is_first_factor', 'follows_released'],
  ...['payment_id', 'outcome', 'why', 'other_attempt', 'status', 'headers', 'body'],
  ...['claimed_at', 'marked_at', 'listened_until', 'ended_at'],
]
  .map((name) => `ledger.${name}`)
  .join(', ');

const sameKey = (one: string, other: string) =>
  ['request_id', 'tenant', 'operation', 'payment']
    .map((name) => `${one}.${name} = ${other}.${name}`)
    .join(' AND ');
const sameAttempt = (one: string, other: string) =>
  `${sameKey(one, other)} AND ${one}.attempt = ${other}.attempt`;

/** @param instance an expression */
export const isAlive = (instance: string): string =>
  `EXISTS (SELECT 1 FROM instance WHERE id = ${instance} AND seen_at > now_ms() - ${instanceLeaseMs})`;

/** In this time after a failover was noted, each instance reports at least once, also one whose row is lost. Milliseconds. */
const leastWaitMs = 3_000;

/** For how long after a failover the others wait for an instance that lives and writes back. Milliseconds. */
const maxWriteBackMs = 60_000;

/** Whether this instance is still expected to write back what it remembers after a failover. @param row of `instance` */
export const isAwaited = (row: string): string =>
  `${row}.awaited_at > now_ms() - ${maxWriteBackMs} AND ${row}.seen_at > now_ms() - ${instanceLeaseMs}`;

/**
 * Whether instances may claim and recover: not after a failover, until those that lived before it have written back what they remember
 * (ADR 122).
 */
export const mayClaim = `EXISTS (SELECT 1 FROM failover f WHERE f.timeline = current_timeline() AND f.noticed_at < now_ms() - ${leastWaitMs})
  AND NOT EXISTS (SELECT 1 FROM instance o WHERE ${isAwaited('o')})`;

/**
 * Inserts rows, and takes over those of released attempts, and of dead instances that have sent nothing. Sorted, so that two instances
 * lock several rows in one order.
 */
export const claim = statement({
  columns: claimColumns,
  sql: (input) => `
    INSERT INTO ledger AS l (request_id, tenant, operation, payment, step, attempt, instance, path,
      fingerprint_key, fingerprint_request, fingerprint_content, is_first_factor, follows_released, claimed_at)
    SELECT i.request_id, i.tenant, i.operation, i.payment, 'claimed', i.attempt, i.instance, i.path,
      i.fingerprint_key, i.fingerprint_request, i.fingerprint_content, i.is_first_factor, false, now_ms()
    FROM ${input} AS i WHERE ${mayClaim} ORDER BY i.request_id, i.tenant, i.operation, i.payment
    ON CONFLICT (request_id, tenant, operation, payment) DO UPDATE SET
      step = 'claimed', attempt = excluded.attempt, instance = excluded.instance, path = excluded.path,
      fingerprint_key = excluded.fingerprint_key, fingerprint_request = excluded.fingerprint_request,
      fingerprint_content = excluded.fingerprint_content, is_first_factor = excluded.is_first_factor, follows_released = (l.follows_released OR l.step = 'released'),
      environment = NULL, marked_at = NULL, listened_until = NULL, ended_at = NULL, claimed_at = excluded.claimed_at
      WHERE l.step = 'released' OR (l.step = 'claimed' AND NOT ${isAlive('l.instance')})
    RETURNING attempt, follows_released, (SELECT environment FROM active_environment) AS active_environment`,
});

export const read = statement({
  isRead: true,
  columns: keyColumns,
  sql: (input) =>
    `SELECT ${readColumns}, now_ms() AS read_at FROM ${input} AS i JOIN ledger ON ${sameKey('ledger', 'i')}`,
});

/**
 * The write-ahead mark. Changes nothing if the revision of the identities has increased since the request was identified, or if another
 * attempt with this key has reached the bank.
 *
 * A repeated mark of the same attempt renews the times: the request is sent on another connection, and the answer is awaited from then on.
 */
export const mark = statement({
  columns: { ...attemptColumns, environment: 'text', listen_ms: 'bigint', identity_revision: 'bigint' },
  sql: (input) => `
    UPDATE ledger SET step = 'sending', environment = i.environment, marked_at = now_ms(), listened_until = now_ms() + i.listen_ms
    FROM ${input} AS i WHERE ${sameAttempt('ledger', 'i')} AND ledger.step IN (${stepsBefore('sending')})
      AND ledger.other_attempt IS NULL AND i.identity_revision = (SELECT revision FROM identity_revision)
    RETURNING ledger.attempt`,
});

/**
 * Rows of other tenants that have sent an initiation with this id to the same bank before `l`. The tenant decides about marks of the same
 * millisecond: the two must not wait for each other.
 */
const earlierOfOthers = `
  SELECT 1 FROM ledger o WHERE o.request_id = i.request_id AND o.operation = i.operation AND o.environment = i.environment
    AND o.tenant <> i.tenant AND (o.marked_at < l.marked_at OR (o.marked_at = l.marked_at AND o.tenant < l.tenant))`;

/**
 * It is unknown which payment such an initiation has created. A bank that recognises repeats by X-Request-ID gives the second tenant the
 * payment of the first one, so its answer does not prove whose it is.
 */
const mayBelongToOther = `EXISTS (${earlierOfOthers}
    AND (o.ended_at IS NULL OR o.why IS NOT NULL OR (o.step = 'happened' AND o.payment_id IS NULL)))`;

/** An operator may have said that it happened: then only the payment is missing, unless the operator has named it. */
const mayBeAnswered = (row: string): string => `(${row}.step IN (${stepsBefore('answered')})
    AND (${row}.step <> 'happened' OR (${row}.payment_id IS NULL AND i.payment_id IS NOT NULL AND i.why IS NULL)))`;

/**
 * Stores the answer, together with the payment that it names. Changes nothing if the payment belongs, or may belong, to another tenant.
 */
export const recordAnswer = statement({
  columns: answerColumns,
  before: {
    table: 'payment',
    sql: (input) =>
      insertPayment(input, {
        environment: 'i.environment',
        where: `${mayBeAnswered('l')} AND NOT ${mayBelongToOther} AND (i.is_restored OR (${mayClaim}))`,
      }),
  },
  sql: (input, changed) => `
    UPDATE ledger SET step = 'answered', status = i.status, headers = i.headers, body = i.body, payment_id = i.payment_id,
      ended_at = now_ms(), outcome = i.outcome, why = coalesce(ledger.other_attempt, i.why), environment = i.environment
    FROM ${input} AS i WHERE ${sameAttempt('ledger', 'i')} AND ${mayBeAnswered('ledger')}
      AND (i.payment_id IS NULL OR EXISTS (
        SELECT 1 FROM ${changed} c WHERE c.payment_id = i.payment_id AND c.environment = i.environment AND c.tenant = i.tenant))
    RETURNING ledger.attempt`,
});

/** Whether the answer to an initiation of another tenant, which may be the one that has created the payment, is still on its way. */
export const waitsForOther = statement({
  isRead: true,
  columns: { ...attemptColumns, environment: 'text' },
  sql: (input) => `
    SELECT i.attempt FROM ${input} AS i JOIN ledger l ON ${sameAttempt('l', 'i')}
    WHERE EXISTS (${earlierOfOthers} AND o.step = 'sending' AND o.listened_until > now_ms())`,
});

/**
 * Deletes the row of a request that was never sent; that of one that was sent is kept for the window. If another attempt has reached the
 * bank, the row stays in doubt: a repeat might pay what that one has paid.
 */
export const release = statement({
  columns: attemptColumns,
  before: {
    table: 'ledger',
    sql: (input) => `
      UPDATE ledger SET why = other_attempt, outcome = NULL,
        step = CASE WHEN other_attempt IS NULL THEN 'released' ELSE 'in-doubt' END,
        ended_at = CASE WHEN other_attempt IS NULL THEN now_ms() END
      WHERE ${isAmong(input)} AND (step IN ('sending', 'in-doubt') OR (step = 'claimed' AND follows_released))`,
  },
  sql: (input) =>
    `DELETE FROM ledger WHERE ${isAmong(input)} AND step = 'claimed' AND NOT follows_released RETURNING attempt`,
});

/** A write in doubt keeps its first reason, unless `replaces` says otherwise. */
export const markInDoubt = statement({
  columns: { ...attemptColumns, environment: 'text', why: 'text', outcome: 'text', replaces: 'boolean' },
  sql: (input) => `
    UPDATE ledger SET step = 'in-doubt', why = coalesce(ledger.other_attempt, i.why), outcome = i.outcome, environment = i.environment,
      marked_at = coalesce(ledger.marked_at, now_ms()), listened_until = coalesce(ledger.listened_until, now_ms()) -- if the mark was lost
    FROM ${input} AS i WHERE ${sameAttempt('ledger', 'i')} AND ledger.step IN (${stepsBefore('in-doubt')})
      AND (ledger.step <> 'in-doubt' OR i.replaces)
    RETURNING ledger.attempt`,
});

/** What a dead instance has left: a claim that was never marked is deleted, and a mark is in doubt. */
export const abandon = statement({
  columns: attemptColumns,
  before: {
    table: 'ledger',
    sql: (input) => `DELETE FROM ledger WHERE ${isAmong(input)} AND step = 'claimed'`,
  },
  sql: (input) => `
    UPDATE ledger SET step = 'in-doubt', why = coalesce(why, 'the gateway instance that sent it has ended')
    WHERE ${isAmong(input)} AND step = 'sending' RETURNING ${readColumns}`,
});

/** As happened, with the id of the payment if the bank has named it: unless the payment belongs to another tenant. */
export const resolveHappened = statement({
  columns: {
    ...attemptColumns,
    payment_id: 'text',
    initiated_as: 'text',
    bank_ids: 'text',
    is_permanent: 'boolean',
  },
  before: {
    table: 'payment',
    sql: (input) =>
      insertPayment(input, {
        environment: 'l.environment',
        where: `l.why IS NOT NULL AND l.step IN (${stepsBefore('happened')})`,
      }),
  },
  sql: (input, changed) => `
    UPDATE ledger SET step = 'happened', why = NULL, other_attempt = NULL, ended_at = now_ms(),
      payment_id = coalesce(i.payment_id, ledger.payment_id)
    FROM ${input} AS i WHERE ${sameAttempt('ledger', 'i')} AND ledger.why IS NOT NULL
      AND ledger.step IN (${stepsBefore('happened')})
      AND (i.payment_id IS NULL OR EXISTS (SELECT 1 FROM ${changed} c
        WHERE c.payment_id = i.payment_id AND c.environment = ledger.environment AND c.tenant = i.tenant))
    RETURNING ledger.attempt`,
});

/** Refused while the answer may still arrive. */
export const resolveNotHappened = statement({
  columns: attemptColumns,
  sql: (input) => `
    DELETE FROM ledger WHERE ${isAmong(input)} AND step IN ('in-doubt', 'answered')
      AND why IS NOT NULL AND listened_until < now_ms()
    RETURNING attempt`,
});

/** As the mark, after a failover: the attempt is being sent. */
export const restoreMark = statement({
  columns: { ...attemptColumns, environment: 'text', listen_ms: 'bigint', age_ms: 'bigint' },
  sql: (input) => `
    UPDATE ledger SET step = 'sending', environment = i.environment, marked_at = now_ms() - i.age_ms,
      listened_until = now_ms() - i.age_ms + i.listen_ms
    FROM ${input} AS i WHERE ${sameAttempt('ledger', 'i')} AND ledger.step IN ('claimed', 'sending')
    RETURNING ledger.attempt`,
});

/**
 * Changes nothing, and waits until the row is on the standbys: a cancelled wait leaves a commit that only this server has, and a commit
 * after it waits for both.
 */
export const confirm = statement({
  columns: attemptColumns,
  sql: (input) => `
    UPDATE ledger SET attempt = i.attempt FROM ${input} AS i WHERE ${sameAttempt('ledger', 'i')} RETURNING ledger.attempt`,
});

/** Inserts the row of an attempt that was sent, if the database has lost it. Its age keeps the order of two tenants with one id. */
export const insertLost = statement({
  columns: sentColumns,
  sql: (input) => `
    INSERT INTO ledger (request_id, tenant, operation, payment, step, attempt, instance, path,
      fingerprint_key, fingerprint_request, fingerprint_content, is_first_factor, follows_released, environment,
      claimed_at, marked_at, listened_until)
    SELECT i.request_id, i.tenant, i.operation, i.payment, 'sending', i.attempt, i.instance, i.path,
      i.fingerprint_key, i.fingerprint_request, i.fingerprint_content, i.is_first_factor, false, i.environment,
      now_ms() - i.age_ms, now_ms() - i.age_ms, now_ms() - i.age_ms + i.listen_ms
    FROM ${input} AS i WHERE true ORDER BY i.request_id, i.tenant, i.operation, i.payment
    ON CONFLICT (request_id, tenant, operation, payment) DO NOTHING RETURNING attempt`,
});

/** Gives the row of an attempt that was sent back to it, if the other attempt that has the row now has sent nothing: its mark then fails. */
export const takeBack = statement({
  columns: { ...sentColumns, other: 'text' },
  sql: (input) => `
    UPDATE ledger SET step = 'sending', attempt = i.attempt, instance = i.instance, environment = i.environment, path = i.path,
      fingerprint_key = i.fingerprint_key, fingerprint_request = i.fingerprint_request, fingerprint_content = i.fingerprint_content,
      is_first_factor = i.is_first_factor, marked_at = now_ms() - i.age_ms,
      listened_until = now_ms() - i.age_ms + i.listen_ms, ended_at = NULL
    FROM ${input} AS i WHERE ${sameKey('ledger', 'i')} AND ledger.attempt = i.other AND ledger.step IN ('claimed', 'released')
    RETURNING ledger.attempt`,
});

/** Two attempts with one key have reached the bank. The row stays that of the other one. */
export const reportOther = statement({
  columns: { ...keyColumns, other: 'text', described: 'text' },
  sql: (input) => `
    UPDATE ledger SET other_attempt = i.described, why = i.described
    FROM ${input} AS i WHERE ${sameKey('ledger', 'i')} AND ledger.attempt = i.other AND ledger.step NOT IN ('claimed', 'released')
    RETURNING ledger.attempt`,
});

interface PaymentSource {
  readonly environment: string;
  readonly where: string;
}

/**
 * The payments that the input names, unless they belong to other tenants. A bank may give the id again to a payment of the same tenant:
 * the row is then that of both. In the conditions, `l` is the row of the attempt.
 */
function insertPayment(input: string, { environment, where }: PaymentSource): string {
  return `
    INSERT INTO payment (payment_id, environment, tenant, initiated_as, bank_ids, is_permanent, created_at, used_at)
    SELECT i.payment_id, ${environment}, i.tenant, i.initiated_as, i.bank_ids, i.is_permanent, now_ms(), now_ms()
    FROM ${input} AS i JOIN ledger l ON ${sameAttempt('l', 'i')}
    WHERE i.payment_id IS NOT NULL AND ${where}
    ORDER BY i.payment_id, ${environment}
    ON CONFLICT (payment_id, environment) DO UPDATE SET used_at = excluded.used_at,
      initiated_as = CASE WHEN payment.initiated_as = excluded.initiated_as THEN payment.initiated_as END,
      bank_ids = coalesce(payment.bank_ids, excluded.bank_ids),
      is_permanent = (payment.is_permanent OR excluded.is_permanent)
      WHERE payment.tenant = excluded.tenant`;
}

/** @param input with the columns of an attempt */
function isAmong(input: string): string {
  const columns = Object.keys(attemptColumns);
  return `(${columns.join(', ')}) IN (SELECT ${columns.map((name) => `i.${name}`).join(', ')} FROM ${input} AS i)`;
}
