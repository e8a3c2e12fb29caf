/**
 * Subscriptions to the status of payments as a table, which is also the queue of the work that is due on them: reads of the status, and
 * deliveries of messages. The instances take what is due, each under a lease, after which it is due again.
 */

import { randomUUID } from 'node:crypto';
import { collect } from './collect.ts';
import {
  type Columns,
  type Database,
  DatabaseError,
  type InputOf,
  type Row,
  rowsOfAll,
  type Statement,
  statement,
  textOf,
} from './database.ts';
import { type MessageNote, messageColumns, messageInput, putMessages } from './webhook-messages.ts';

export type Work = 'read' | 'delivery';

/** Tenants take turns: each has a queue for deliveries, and one in each environment for reads. Ids. */
export interface WorkQueue {
  readonly tenant: string;
  /** Only for reads. */
  readonly environment?: string;
}

export interface StoredSubscription {
  readonly id: string;
  readonly tenant: string;
  readonly environment: string;
  /** Another one after each change. */
  readonly revision: string;
  /** Milliseconds since 1970. */
  readonly changedAtMs: number;
  readonly text: string;
}

export interface TakenSubscription extends StoredSubscription {
  readonly lease: string;
}

/** When work is due. */
export interface DueChange {
  /** Milliseconds from now, >= 0; `undefined`: it is not due any more. */
  readonly inMs: number | undefined;
  /**
   * Ends this lease; nothing changes if it is lost. Without a lease, the due time of leased work stays; a change with `inMs` 0 is noted, and
   * the work is due when the lease ends.
   */
  readonly lease?: string | undefined;
}

export interface SubscriptionWrite {
  readonly id: string;
  readonly tenant: string;
  readonly environment: string;
  readonly paymentId: string;
  readonly text: string;
  /** Whether its reads fail. */
  readonly isFailing: boolean;
  /** Since when its message is dead: milliseconds since 1970. */
  readonly deadSinceMs: number | undefined;
  /** The endpoint of a message that was not accepted at its last attempt, there or at a former URL: a hash. */
  readonly failedEndpoint: string | undefined;
  /** `undefined` leaves it as it is. */
  readonly read?: DueChange | undefined;
  readonly delivery?: DueChange | undefined;
  /** What the change says of a message. */
  readonly message?: MessageNote | undefined;
}

/** `failing`: its reads fail; `undelivered`: it has a message; `dead`: its message was given up; `active`: none of these. */
export type SubscriptionState = 'active' | 'failing' | 'undelivered' | 'dead';

export interface ListConditions {
  /** Ids. */
  readonly tenants: readonly string[];
  readonly paymentId?: string | undefined;
  readonly state?: SubscriptionState | undefined;
}

/** Of one tenant. */
export interface SubscriptionCounts {
  /** Those that are read. */
  readonly active: number;
  /** Of these, those whose read is due. */
  readonly overdue: number;
  /** Of these, those whose reads fail. */
  readonly failing: number;
  readonly undelivered: number;
  readonly dead: number;
}

export type SubscriptionTable = ReturnType<typeof createSubscriptionTable>;

const shown = 'id, tenant, environment, revision, changed_at, record';

const select = statement({
  isRead: true,
  columns: { id: 'text' },
  sql: (input) => `SELECT ${shown} FROM subscription WHERE id IN (SELECT i.id FROM ${input} AS i)`,
});

const writtenColumns = {
  id: 'text',
  tenant: 'text',
  environment: 'text',
  payment_id: 'text',
  revision: 'text',
  record: 'text',
  is_failing: 'boolean',
  dead_since: 'bigint',
  failed_endpoint: 'text',
  changes_read: 'boolean',
  read_in_ms: 'bigint',
  read_lease: 'text',
  changes_delivery: 'boolean',
  delivery_in_ms: 'bigint',
  delivery_lease: 'text',
} as const;

const insert = statement({
  columns: writtenColumns,
  sql: (input) => `
    INSERT INTO subscription (${shown}, payment_id, is_failing, dead_since, failed_endpoint, failed_since, read_at,
      delivery_at, read_again, delivery_again)
    SELECT i.id, i.tenant, i.environment, i.revision, now_ms(), i.record, i.payment_id, i.is_failing, i.dead_since, i.failed_endpoint,
      CASE WHEN i.failed_endpoint IS NOT NULL THEN now_ms() END, now_ms() + i.read_in_ms, now_ms() + i.delivery_in_ms, false, false
    FROM ${input} AS i WHERE true ON CONFLICT (id) DO NOTHING RETURNING id`,
});

/**
 * How a change of the due time takes effect: see `DueChange`.
 *
 * @param when       the condition on which there is such a change
 * @param inMs       the column of the input with the milliseconds from now on
 * @param endedLease the column of the input with the lease that the change ends
 */
function dueTime(work: Work, when: string, inMs: string, endedLease: string): string {
  const [at, lease, again] = [
    `subscription.${work}_at`,
    `subscription.${work}_lease`,
    `subscription.${work}_again`,
  ];
  const isFree = `(i.${endedLease} IS NULL AND (${lease} IS NULL OR ${at} <= now_ms()))`;
  const isEnd = `${lease} = i.${endedLease}`;
  return `
    ${work}_at = CASE WHEN NOT (${when}) THEN ${at} WHEN ${isFree} THEN now_ms() + i.${inMs}
      WHEN ${isEnd} THEN CASE WHEN ${again} THEN now_ms() ELSE now_ms() + i.${inMs} END ELSE ${at} END,
    ${work}_lease = CASE WHEN (${when}) AND (${isFree} OR ${isEnd}) THEN NULL ELSE ${lease} END,
    ${work}_again = CASE WHEN NOT (${when}) THEN ${again} WHEN ${isFree} OR ${isEnd} THEN false
      ELSE ${again} OR (i.${endedLease} IS NULL AND coalesce(i.${inMs} = 0, false)) END`;
}

const dueTimes = (work: Work) => dueTime(work, `i.changes_${work}`, `${work}_in_ms`, `${work}_lease`);

const updateKnown = (input: string) => `
  UPDATE subscription SET revision = i.revision, changed_at = now_ms(), record = i.record, is_failing = i.is_failing,
    dead_since = i.dead_since, failed_endpoint = i.failed_endpoint,
    failed_since = CASE WHEN i.failed_endpoint IS NOT NULL THEN coalesce(subscription.failed_since, now_ms()) END,
    ${dueTimes('read')}, ${dueTimes('delivery')}
  FROM ${input} AS i WHERE subscription.id = i.id AND subscription.revision = i.known`;

const deleteKnown = (input: string) =>
  `DELETE FROM subscription WHERE (id, revision) IN (SELECT i.id, i.known FROM ${input} AS i)`;

const update = statement({
  columns: { ...writtenColumns, known: 'text' },
  sql: (input) => `${updateKnown(input)} RETURNING subscription.id`,
});

const updateWithMessage = statement({
  columns: { ...update.columns, ...messageColumns },
  before: { table: 'subscription', sql: updateKnown },
  sql: (input, changed) => `
    ${putMessages(input, `EXISTS (SELECT 1 FROM ${changed} c WHERE c.id = i.id AND c.revision = i.revision)`)}
    RETURNING subscription AS id`,
});

const removedColumns = { id: 'text', known: 'text' } as const;

const remove = statement({
  columns: removedColumns,
  sql: (input) => `${deleteKnown(input)} RETURNING id`,
});

/** The message is first, because the other statement leaves nothing to compare with: PostgreSQL notes it also if another instance is faster. */
const removeWithMessage = statement({
  columns: { ...removedColumns, tenant: 'text', environment: 'text', payment_id: 'text', ...messageColumns },
  before: {
    table: 'webhook_message',
    sql: (input) =>
      putMessages(input, 'EXISTS (SELECT 1 FROM subscription s WHERE s.id = i.id AND s.revision = i.known)'),
  },
  sql: (input) => `${deleteKnown(input)} RETURNING id`,
});

const rescheduledColumns = { id: 'text', in_ms: 'bigint', lease: 'text' } as const;

const rescheduleOf = (work: Work) =>
  statement({
    columns: rescheduledColumns,
    sql: (input) => `
      UPDATE subscription SET ${dueTime(work, 'true', 'in_ms', 'lease')}
      FROM ${input} AS i WHERE subscription.id = i.id RETURNING subscription.id`,
  });

const extendOf = (work: Work) =>
  statement({
    columns: { id: 'text', lease: 'text', lease_ms: 'bigint' },
    sql: (input) => `
      UPDATE subscription SET ${work}_at = now_ms() + i.lease_ms
      FROM ${input} AS i WHERE subscription.id = i.id AND subscription.${work}_lease = i.lease RETURNING subscription.id`,
  });

const reschedule = { read: rescheduleOf('read'), delivery: rescheduleOf('delivery') };
const extend = { read: extendOf('read'), delivery: extendOf('delivery') };

const conditionOf: Readonly<Record<SubscriptionState, string>> = {
  active: 'NOT is_failing AND delivery_at IS NULL AND dead_since IS NULL',
  failing: 'is_failing AND delivery_at IS NULL AND dead_since IS NULL',
  undelivered: 'delivery_at IS NOT NULL',
  dead: 'dead_since IS NOT NULL',
};

const orderOf: Readonly<Record<SubscriptionState, string>> = {
  active: '',
  failing: '',
  undelivered: 'ORDER BY delivery_at',
  dead: 'ORDER BY dead_since',
};

/** Every function @throws DatabaseError. What is asked for in one turn of the event loop is sent together. */
export function createSubscriptionTable(database: Database) {
  const readBatch = collect(async (ids: readonly string[]) => {
    const rows = await rowsOfAll(
      database.batch(
        select,
        [...new Set(ids)].map((id) => ({ id })),
      ),
    );
    const found = new Map(rows.map((row) => [String(row.id), storedOf(row)]));
    return ids.map((id) => found.get(id));
  });

  /** @returns a function that writes, and says whether the row had the expected revision */
  function writeBatch<Input extends Columns>(written: Statement<Input>) {
    type Write = InputOf<Input> & { readonly id: string };
    const execute = collect(async (writes: readonly Write[]) => {
      const outcomes = new Map<Write, boolean | DatabaseError>();
      for (const round of roundsOf(writes)) {
        const { rows, refused } = await database.batch(written, round);
        const ids = new Set(rows.map(({ id }) => id));
        for (const [index, write] of round.entries())
          outcomes.set(write, refused.get(index) ?? ids.has(write.id));
      }
      return writes.map((write) => outcomes.get(write) ?? false);
    });
    return async (write: Write): Promise<boolean> => {
      const outcome = await execute(write);
      if (outcome instanceof DatabaseError) throw outcome;
      return outcome;
    };
  }
  const insertBatch = writeBatch(insert);
  const updateBatch = writeBatch(update);
  const updateWithMessageBatch = writeBatch(updateWithMessage);
  const removeBatch = writeBatch(remove);
  const removeWithMessageBatch = writeBatch(removeWithMessage);

  const reschedules = { read: writeBatch(reschedule.read), delivery: writeBatch(reschedule.delivery) };

  return {
    read: (id: string): Promise<StoredSubscription | undefined> => readBatch(id),

    /**
     * Inserts a subscription, or replaces a revision.
     *
     * @param known the revision that is replaced; `undefined` if there must be none
     * @returns false if another revision is stored, or none is
     */
    write(known: string | undefined, write: SubscriptionWrite): Promise<boolean> {
      const written = writtenOf(write);
      if (known === undefined) return insertBatch(written);
      const { message } = write;
      return message
        ? updateWithMessageBatch({ ...written, known, ...messageInput(message) })
        : updateBatch({ ...written, known });
    },

    /** @param message what its end says of a message @returns false if another revision is stored, or none is */
    remove(
      known: string,
      {
        id,
        tenant,
        environment,
        paymentId,
      }: Pick<SubscriptionWrite, 'id' | 'tenant' | 'environment' | 'paymentId'>,
      message?: MessageNote,
    ): Promise<boolean> {
      if (!message) return removeBatch({ id, known });
      const owner = { id, known, tenant, environment, payment_id: paymentId };
      return removeWithMessageBatch({ ...owner, ...messageInput(message) });
    },

    /**
     * Takes what is due, the longest due first.
     *
     * @param limit    of each queue
     * @param leaseMs > 0
     */
    async take(
      work: Work,
      queues: readonly WorkQueue[],
      limit: number,
      leaseMs: number,
    ): Promise<readonly TakenSubscription[]> {
      const lease = randomUUID();
      const takeDue = database.dialect === 'sqlite' ? takeInTurn : takeTogether;
      const rows = await takeDue(database, work, queues, { limit, leaseMs, lease });
      return rows.map((row) => ({ ...storedOf(row), lease }));
    },

    /** Extends leases, which end `leaseMs` from now on. @returns the ids of those that are not lost */
    async extend(
      work: Work,
      leases: readonly { readonly id: string; readonly lease: string }[],
      leaseMs: number,
    ): Promise<ReadonlySet<string>> {
      const inputs = leases.toSorted(byId).map(({ id, lease }) => ({ id, lease, lease_ms: leaseMs }));
      const rows = await rowsOfAll(database.batch(extend[work], inputs));
      return new Set(rows.map(({ id }) => String(id)));
    },

    /** Changes the due time, not the record. */
    async reschedule(work: Work, id: string, { inMs, lease }: DueChange): Promise<void> {
      await reschedules[work]({ id, in_ms: wholeMs(inMs), lease: lease ?? null });
    },

    /** Makes messages due that an endpoint has not accepted and that wait, those first that would be due next. */
    async promote(endpoint: string, limit: number): Promise<void> {
      await database.query(
        `UPDATE subscription SET failed_endpoint = NULL, failed_since = NULL, delivery_at = now_ms()
         WHERE delivery_lease IS NULL AND id IN (
           SELECT id FROM subscription WHERE failed_endpoint = $1 AND delivery_at > (SELECT now_ms()) AND delivery_lease IS NULL
           ORDER BY delivery_at LIMIT $2)`,
        [endpoint, limit],
      );
    },

    /** Dead and undelivered ones in the order of time, others in no order. */
    async list(
      { tenants, paymentId, state }: ListConditions,
      limit: number,
    ): Promise<readonly StoredSubscription[]> {
      const values: (string | number)[] = [];
      const bound = (value: string | number) => `$${values.push(value)}`;
      const where = [`tenant IN (${['NULL', ...tenants.map(bound)].join(', ')})`];
      if (paymentId !== undefined) where.push(`payment_id = ${bound(paymentId)}`);
      if (state !== undefined) where.push(conditionOf[state]);
      const rows = await database.query(
        `SELECT ${shown} FROM subscription WHERE ${where.join(' AND ')} ${orderOf[state ?? 'active']} LIMIT ${bound(limit)}`,
        values,
      );
      return rows.map(storedOf);
    },

    /** By tenant; those that have none are not contained. */
    async count(): Promise<ReadonlyMap<string, SubscriptionCounts>> {
      const counted: Readonly<Record<keyof SubscriptionCounts, string>> = {
        active: 'read_at IS NOT NULL',
        overdue: 'read_at <= (SELECT now_ms())',
        failing: 'is_failing',
        undelivered: 'delivery_at IS NOT NULL',
        dead: 'dead_since IS NOT NULL',
      };
      const rows = await database.query(
        Object.entries(counted)
          .map(
            ([state, condition]) =>
              `SELECT tenant, '${state}' AS state, count(*) AS subscriptions FROM subscription WHERE ${condition} GROUP BY tenant`,
          )
          .join(' UNION ALL '),
      );
      const counts = new Map<string, SubscriptionCounts>();
      for (const { tenant, state, subscriptions } of rows) {
        const known = counts.get(String(tenant)) ?? noSubscriptions;
        counts.set(String(tenant), { ...known, [String(state)]: Number(subscriptions) });
      }
      return counts;
    },

    /** How many subscriptions a tenant has, in all states. */
    async countOf(tenant: string): Promise<number> {
      const [row] = await database.query(
        'SELECT count(*) AS subscriptions FROM subscription WHERE tenant = $1',
        [tenant],
      );
      return Number(row?.subscriptions);
    },

    /** Deletes subscriptions whose message has been dead for so long. @returns how many */
    async deleteDead(deadForMs: number, limit: number): Promise<number> {
      const deleted = await database.query(
        `DELETE FROM subscription WHERE id IN (
           SELECT id FROM subscription WHERE dead_since < (SELECT now_ms() - $1) LIMIT $2) RETURNING id`,
        [deadForMs, limit],
      );
      return deleted.length;
    },
  };
}

export const noSubscriptions: SubscriptionCounts = {
  active: 0,
  overdue: 0,
  failing: 0,
  undelivered: 0,
  dead: 0,
};

interface Taking {
  readonly limit: number;
  readonly leaseMs: number;
  readonly lease: string;
}

const inQueue = (work: Work, queue: { readonly tenant: string; readonly environment: string }) =>
  `tenant = ${queue.tenant} ${work === 'read' ? `AND environment = ${queue.environment}` : ''} AND ${work}_at <= (SELECT now_ms())`;

/**
 * Of all queues with one statement; what another instance takes at this moment is left to it. As an array: a join would seem so large that
 * PostgreSQL reads the whole table.
 */
function takeTogether(
  database: Database,
  work: Work,
  queues: readonly WorkQueue[],
  { limit, leaseMs, lease }: Taking,
): Promise<readonly Row[]> {
  return database.query(
    `WITH due AS MATERIALIZED (
       SELECT one.id AS due_id FROM json_to_recordset($1) AS q (tenant text, environment text)
       CROSS JOIN LATERAL (
         SELECT id FROM subscription WHERE ${inQueue(work, { tenant: 'q.tenant', environment: 'q.environment' })}
         ORDER BY ${work}_at LIMIT $2 FOR UPDATE SKIP LOCKED) AS one)
     UPDATE subscription SET ${work}_at = now_ms() + $3, ${work}_lease = $4, ${work}_again = false
     WHERE id = ANY (ARRAY (SELECT due_id FROM due)) RETURNING ${shown}`,
    // Nothing else that a queue may have: the log of PostgreSQL may contain parameters.
    [JSON.stringify(queues, ['tenant', 'environment']), limit, leaseMs, lease],
  );
}

/** SQLite has no `LATERAL`, and answers in this process. */
async function takeInTurn(
  database: Database,
  work: Work,
  queues: readonly WorkQueue[],
  { limit, leaseMs, lease }: Taking,
): Promise<readonly Row[]> {
  const taken: Row[] = [];
  for (const { tenant, environment = '' } of queues) {
    const rows = await database.query(
      `UPDATE subscription SET ${work}_at = now_ms() + $1, ${work}_lease = $2, ${work}_again = false WHERE id IN (
         SELECT id FROM subscription WHERE ${inQueue(work, { tenant: '$3', environment: '$4' })} ORDER BY ${work}_at LIMIT $5)
       RETURNING ${shown}`,
      [leaseMs, lease, tenant, environment, limit],
    );
    taken.push(...rows);
  }
  return taken;
}

const wholeMs = (ms: number | undefined): number | null => (ms === undefined ? null : Math.ceil(ms));

const writtenOf = (write: SubscriptionWrite) => ({
  id: write.id,
  tenant: write.tenant,
  environment: write.environment,
  payment_id: write.paymentId,
  revision: randomUUID(),
  record: write.text,
  is_failing: write.isFailing,
  dead_since: wholeMs(write.deadSinceMs),
  failed_endpoint: write.failedEndpoint ?? null,
  changes_read: write.read !== undefined,
  read_in_ms: wholeMs(write.read?.inMs),
  read_lease: write.read?.lease ?? null,
  changes_delivery: write.delivery !== undefined,
  delivery_in_ms: wholeMs(write.delivery?.inMs),
  delivery_lease: write.delivery?.lease ?? null,
});

/** The order in which rows are locked, so that two instances do not lock the same rows in different order. */
const byId = (one: { readonly id: string }, other: { readonly id: string }): number =>
  one.id < other.id ? -1 : 1;

/**
 * In each round, an id occurs once: PostgreSQL updates a row for one of its inputs only. The inputs of an id keep their order. The rounds are
 * in the order of the ids.
 */
function roundsOf<Input extends { readonly id: string }>(inputs: readonly Input[]): readonly Input[][] {
  const rounds: Input[][] = [];
  const counts = new Map<string, number>();
  for (const input of inputs) {
    const count = counts.get(input.id) ?? 0;
    counts.set(input.id, count + 1);
    const round = rounds[count] ?? [];
    rounds[count] = round;
    round.push(input);
  }
  return rounds.map((round) => round.toSorted(byId));
}

const storedOf = (row: Row): StoredSubscription => ({
  id: String(row.id),
  tenant: String(row.tenant),
  environment: String(row.environment),
  revision: String(row.revision),
  changedAtMs: Number(row.changed_at),
  text: textOf(row.record) ?? '',
});
