/** A subscription to the status of a payment, whose first status is not known yet. */

import type { Subscription } from '../../src/notifications/subscription.ts';

const hour = 3_600_000;

/** @param since when the TPP has subscribed, for an hour: milliseconds since 1970 */
export const subscriptionSince = (since: number, changes: Partial<Subscription> = {}): Subscription => ({
  v: 1,
  id: 'subscription',
  tenant: 'tenant',
  environment: 'environment',
  client: 'client',
  paymentService: 'payments',
  paymentProduct: 'sepa-credit-transfers',
  paymentId: 'payment',
  url: 'https://tpp.example/hooks',
  content: 'PROCESS',
  since,
  until: since + hour,
  headers: [],
  sequence: 0,
  ...changes,
});
