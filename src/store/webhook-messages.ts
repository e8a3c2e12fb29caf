/** The messages of webhooks as a table, for operators: what was sent to whom, and with which result. The one that is due is in its subscription. */

import { type Database, type Row, textOf } from './database.ts';

/**
 * `ended`: the subscription has ended before it was delivered, because an operator has ended it, or the endpoint has answered 410. One that
 * is undelivered when a later one is created is never sent: the later one has taken its place.
 */
export type MessageState = 'undelivered' | 'delivered' | 'dead' | 'ended';

/** What is known of a message after a change. */
export interface MessageNote {
  /** `webhook-id` */
  readonly id: string;
  readonly client: string;
  /** The origin of its URL. */
  readonly endpoint: string;
  readonly sequence: number;
  readonly transactionStatus: string;
  readonly scaStatus: string | undefined;
  readonly state: MessageState;
  /** Attempts, of which the last one may have succeeded. */
  readonly attempts: number;
  /** Why the last attempt that has failed did so. */
  readonly why: string | undefined;
}

export interface StoredMessage extends Omit<MessageNote, 'sequence' | 'state'> {
  /** `replaced`: a later one has taken its place. */
  readonly state: MessageState | 'replaced';
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly changedAtMs: number;
}

/** Of the messages of the last day, or the newest 20,000 of them. */
export interface EndpointFigures {
  readonly tenant: string;
  /** The origin of the URLs. */
  readonly endpoint: string;
  readonly delivered: number;
  readonly undelivered: number;
  readonly dead: number;
  /** Attempts that have failed. */
  readonly failedAttempts: number;
  /** Milliseconds since 1970. */
  readonly lastDeliveredMs: number | undefined;
}

export const messageColumns = {
  message_id: 'text',
  client: 'text',
  endpoint: 'text',
  sequence: 'bigint',
  transaction_status: 'text',
  sca_status: 'text',
  message_state: 'text',
  attempts: 'integer',
  why: 'text',
} as const;

export const messageInput = (note: MessageNote) => ({
  message_id: note.id,
  client: note.client,
  endpoint: note.endpoint,
  sequence: note.sequence,
  transaction_status: note.transactionStatus,
  sca_status: note.scaStatus ?? null,
  message_state: note.state,
  attempts: note.attempts,
  why: note.why ?? null,
});

/**
 * Inserts the messages of changed subscriptions, or notes what has changed. A delivered message stays delivered; its row is written
 * nevertheless, because a write counts as done by the rows that it returns.
 *
 * @param input with `messageColumns`, and tenant, environment, payment and id of the subscription
 * @param condition on `i`: whether the subscription has changed
 */
export const putMessages = (input: string, condition: string) => `
  INSERT INTO webhook_message (id, subscription, tenant, environment, payment_id, client, endpoint, sequence, transaction_status, sca_status,
    state, attempts, why, created_at, changed_at)
  SELECT i.message_id, i.id, i.tenant, i.environment, i.payment_id, i.client, i.endpoint, i.sequence, i.transaction_status, i.sca_status,
    i.message_state, i.attempts, i.why, now_ms(), now_ms()
  FROM ${input} AS i WHERE ${condition}
  ON CONFLICT (id) DO UPDATE SET
    subscription = excluded.subscription,
    client = excluded.client,
    endpoint = excluded.endpoint,
    state = CASE WHEN webhook_message.state = 'delivered' THEN 'delivered' ELSE excluded.state END,
    attempts = excluded.attempts,
    why = excluded.why,
    changed_at = excluded.changed_at`;

const isReplaced = `m.state = 'undelivered' AND EXISTS (SELECT 1 FROM webhook_message later WHERE later.payment_id = m.payment_id
  AND later.environment = m.environment AND later.subscription = m.subscription AND later.sequence > m.sequence)`;

const dayMs = 24 * 3_600_000;
/** SQLite counts this many in 20 ms. */
const maxCounted = 20_000;
/** At most this many messages of a payment are shown. */
const maxOfPayment = 200;

export type WebhookMessageTable = ReturnType<typeof createWebhookMessageTable>;

/** Every function @throws DatabaseError. */
export function createWebhookMessageTable(database: Database) {
  return {
    /** The newest messages to a tenant about a payment, in the order of their creation. */
    async ofPayment(
      paymentId: string,
      environment: string,
      tenant: string,
    ): Promise<readonly StoredMessage[]> {
      const rows = await database.query(
        `SELECT m.*, (${isReplaced}) AS is_replaced FROM webhook_message m WHERE payment_id = $1 AND environment = $2 AND tenant = $3
         ORDER BY sequence DESC LIMIT ${maxOfPayment}`,
        [paymentId, environment, tenant],
      );
      return rows.map(messageIn).toReversed();
    },

    /** Of each endpoint that a message of the last day was for. */
    async figures(): Promise<readonly EndpointFigures[]> {
      const rows = await database.query(
        `SELECT tenant, endpoint, count(*) FILTER (WHERE state = 'delivered') AS delivered,
           count(*) FILTER (WHERE state = 'undelivered' AND NOT (${isReplaced})) AS undelivered, count(*) FILTER (WHERE state = 'dead') AS dead,
           sum(attempts) AS attempts, max(CASE WHEN state = 'delivered' THEN changed_at END) AS last_delivered
         FROM (SELECT * FROM webhook_message WHERE created_at > (SELECT now_ms() - ${dayMs})
               ORDER BY created_at DESC LIMIT ${maxCounted}) AS m GROUP BY tenant, endpoint ORDER BY tenant, endpoint`,
      );
      return rows.map((row) => ({
        tenant: String(row.tenant),
        endpoint: String(row.endpoint),
        delivered: Number(row.delivered),
        undelivered: Number(row.undelivered),
        dead: Number(row.dead),
        failedAttempts: Number(row.attempts) - Number(row.delivered),
        lastDeliveredMs: row.last_delivered === null ? undefined : Number(row.last_delivered),
      }));
    },

    /** @returns how many were deleted */
    async deleteOld(keptMs: number, limit: number): Promise<number> {
      const deleted = await database.query(
        `DELETE FROM webhook_message WHERE id IN (
           SELECT id FROM webhook_message WHERE created_at < (SELECT now_ms() - $1) ORDER BY created_at LIMIT $2) RETURNING id`,
        [keptMs, limit],
      );
      return deleted.length;
    },
  };
}

const messageIn = (row: Row): StoredMessage => ({
  id: String(row.id),
  client: String(row.client),
  endpoint: String(row.endpoint),
  transactionStatus: String(row.transaction_status),
  scaStatus: textOf(row.sca_status),
  state: row.is_replaced ? 'replaced' : (messageStates.find((state) => state === row.state) ?? 'undelivered'),
  attempts: Number(row.attempts),
  why: textOf(row.why),
  createdAtMs: Number(row.created_at),
  changedAtMs: Number(row.changed_at),
});

const messageStates: readonly MessageState[] = ['undelivered', 'delivered', 'dead', 'ended'];
