/** Subscriptions in a SQLite database in memory, on a clock that a test can advance. */

import type { Subscription } from '../../src/notifications/subscription.ts';
import { createSubscriptionStore } from '../../src/notifications/subscription-store.ts';
import { migrate } from '../../src/store/migrations.ts';
import { inMemory, openSqlite } from '../../src/store/sqlite.ts';
import { createSubscriptionTable, noSubscriptions, type Work } from '../../src/store/subscriptions.ts';
import type { TestScope } from './test-scope.ts';

interface DueTimes {
  /** By default the payment id. */
  readonly id?: string;
  /** Milliseconds from now; by default, nothing is due. */
  readonly readInMs?: number;
  readonly deliveryInMs?: number;
}

export type StoredSubscriptions = Awaited<ReturnType<typeof newSubscriptions>>;

export async function newSubscriptions(t: TestScope) {
  const clock = { aheadMs: 0 };
  const database = openSqlite(
    inMemory,
    () => Math.floor(performance.timeOrigin + performance.now()) + clock.aheadMs,
  );
  t.after(() => database.close());
  await migrate(database);
  const table = createSubscriptionTable(database);
  const store = createSubscriptionStore(table);

  /** How many subscriptions have this work, how many of them now, and how many an instance works on. */
  async function workOf(work: Work) {
    const [row] = await database.query(
      `SELECT count(*) AS every, count(*) FILTER (WHERE ${work}_at <= now_ms()) AS due, count(${work}_lease) AS leased
       FROM subscription WHERE ${work}_at IS NOT NULL`,
    );
    return { all: Number(row?.every), due: Number(row?.due), leased: Number(row?.leased) };
  }

  return {
    clock,
    database,
    table,
    store,
    /** Stores a subscription, or replaces it. */
    put: (
      subscription: Subscription,
      { id = subscription.paymentId, readInMs, deliveryInMs }: DueTimes = {},
    ) =>
      store.replace(id, () => ({
        subscription,
        read: readInMs === undefined ? undefined : { inMs: readInMs },
        delivery: deliveryInMs === undefined ? undefined : { inMs: deliveryInMs },
      })),
    /** Replaces it as an instance with another encryption key does. */
    makeUnreadable: (id: string) =>
      database.query(`UPDATE subscription SET record = $1, revision = $1 WHERE id = $2`, [unreadable, id]),
    textOf: async (id: string) => (await table.read(id))?.text,
    workOf,
    countsOf: async (tenant: string) => (await table.count()).get(tenant) ?? noSubscriptions,
  };
}

export const unreadable = 'sealed:1:unreadable';
