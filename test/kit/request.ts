/** Requests that most tests start from. */

import { randomUUID } from 'node:crypto';
import type { Call, Method } from './call.ts';
import { exampleOf } from './examples.ts';

/** The path at which payments are initiated and read. */
export const transfersPath = '/berlingroup/v1/payments/sepa-credit-transfers';

/** A complete initiation in JSON, after the published example; with a new X-Request-ID at every call. */
export const initiation = {
  method: 'POST',
  path: transfersPath,
  headers: exampleOf('initiate-payment-json').headers.filter(([name]) => name !== 'X-Request-ID'),
  body: exampleOf('initiate-payment-json').body ?? '',
} as const satisfies Call;

/** A status read of some payment. */
export const statusRead = { method: 'GET', path: `${transfersPath}/1234-wertiq-983/status` } as const;

/** A request whose X-Request-ID the test knows. */
export interface NewCall extends Call {
  readonly requestId: string;
}

/** A request with a new X-Request-ID; a POST is an initiation. */
export function newCall(method: Method, path: string): NewCall {
  const requestId = randomUUID();
  if (method === 'POST') return { ...initiation, path, requestId };
  return { method, path, requestId, headers: [['PSU-IP-Address', '192.168.8.78']] };
}
