/** Requests that most tests start from. */

import type { Call } from './call.ts';
import { exampleOf } from './examples.ts';

/** Where payments are initiated, and what stands there afterwards. */
export const transfers = '/berlingroup/v1/payments/sepa-credit-transfers';

/** A complete initiation in JSON, after the published example; with a new X-Request-ID at every call. */
export const initiation = {
  method: 'POST',
  path: transfers,
  headers: exampleOf('initiate-payment-json').headers.filter(([name]) => name !== 'X-Request-ID'),
  body: exampleOf('initiate-payment-json').body ?? '',
} as const satisfies Call;

/** A status read of some payment. */
export const statusRead = { method: 'GET', path: `${transfers}/1234-wertiq-983/status` } as const;
