/** An entry to begin with. */

import type { ClaimedEntry } from '../../../src/idempotency/ledger-entry.ts';

export const claimedFixture = {
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
} as const satisfies ClaimedEntry;

/** What it has besides, once it was sent. */
export const sentFixture = { environment: 'sandbox', listenedUntil: 0 } as const;
