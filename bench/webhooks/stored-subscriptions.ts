/** Writes many subscriptions into a database, with the code of the gateway, as if they had been made hours ago. */

import { randomUUID } from 'node:crypto';
import type { Subscription } from '../../src/notifications/subscription.ts';
import { type SubscriptionStore, subscriptionIdOf } from '../../src/notifications/subscription-store.ts';
import { noBankIds } from '../../src/request/bank-ids.ts';
import { paymentKeyOf } from '../../src/status-cache/cache-key.ts';
import { observationHash } from '../../src/status-cache/observe-payment.ts';
import type { Database } from '../../src/store/database.ts';
import { createPaymentTable } from '../../src/store/payments.ts';
import type { SubscriptionTable, WorkQueue } from '../../src/store/subscriptions.ts';

/** The names are also the identities. */
const environment = 'sandbox';
export const tenantName = (tenant: number): string => `tenant-${tenant}`;
export const tenantCount = 100;
export const hookUrl = 'https://tpp.example/psd2/payments';
/** Of all payments. */
export const status = 'ACSP';

/** The first tenant has nine tenths of the subscriptions; the others have the same number each. */
export const tenantOf = (number: number): number =>
  number % 10 === 0 ? 1 + (Math.floor(number / 10) % (tenantCount - 1)) : 0;

export const paymentIdOf = (number: number): string => `p-${tenantOf(number)}-${number}`;

export const idOf = (number: number): string =>
  subscriptionIdOf(tenantName(tenantOf(number)), paymentKeyOf(environment, paymentIdOf(number)));

export const readQueueOf = (tenant: number): WorkQueue => ({ tenant: tenantName(tenant), environment });

const hour = 3_600_000;
/** So that the longest interval applies. */
const unchangedForMs = 20 * hour;
/** Nothing is due while the benchmark runs. */
export const firstDueMs = 3 * hour;

/** Records that the payments exist, as each initiation does. */
export async function writePayments(database: Database, count: number): Promise<void> {
  const payments = createPaymentTable(database);
  const bankIds = JSON.stringify(noBankIds);
  const insert = (number: number) => {
    const owner = { environment, tenant: tenantName(tenantOf(number)) };
    return payments.insertFound({ ...owner, paymentId: paymentIdOf(number), bankIds, isPermanent: false });
  };
  await inChunks(count, insert, 50); // each takes a connection
}

/** @param store with encryption */
export const writeSubscriptions = (store: SubscriptionStore, count: number): Promise<void> =>
  inChunks(count, (number) =>
    store.change(idOf(number), () => ({
      subscription: subscriptionOf(number),
      read: { inMs: firstDueMs + Math.random() * hour },
    })),
  );

/** All are due now, in the order of their numbers. */
export const makeDue = (table: SubscriptionTable, count: number): Promise<void> =>
  inChunks(count, (number) => table.reschedule('read', idOf(number), { inMs: 0 }));

function subscriptionOf(number: number): Subscription {
  const since = Date.now() - unchangedForMs;
  const paymentId = paymentIdOf(number);
  const hash = observationHash(paymentKeyOf(environment, paymentId), status);
  return {
    v: 1,
    id: randomUUID(),
    tenant: tenantName(tenantOf(number)),
    environment,
    client: tenantName(tenantOf(number)),
    paymentService: 'payments',
    paymentProduct: 'sepa-credit-transfers',
    paymentId,
    url: `${hookUrl}/${number}`,
    content: 'PROCESS',
    since,
    until: since + 30 * 24 * hour,
    headers: [
      ['Authorization', `Bearer ${randomUUID()}`],
      ['Consent-ID', randomUUID()],
      ['Accept', 'application/json'],
    ],
    sequence: 2,
    status: { hash, code: status, finality: 'pending', since },
  };
}

async function inChunks(
  count: number,
  act: (number: number) => Promise<unknown>,
  chunk = 2_000, // enough for full batches
): Promise<void> {
  for (let first = 0; first < count; first += chunk) {
    const length = Math.min(chunk, count - first);
    await Promise.all(Array.from({ length }, (_, index) => act(first + index)));
  }
}
