/** An entry to begin with. */

import type { Claimed } from '../../../src/idempotency/entry.ts';

export const claimed = {
  v: 1,
  step: 'claimed',
  fingerprint: 'a-fingerprint',
  attempt: 'an-attempt',
  holder: 'a-holder',
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  operation: 'initiatePayment',
  path: '/berlingroup/v1/payments/sepa-credit-transfers',
  paymentService: 'payments',
  tenant: 'shop',
  since: 0,
} as const satisfies Claimed;

/** What it has besides, once it was sent. */
export const sent = { environment: 'sandbox', listenedUntil: 0 } as const;
