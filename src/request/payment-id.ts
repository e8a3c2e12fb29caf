/** The payment id in the response to an initiation. Read from the body only: links of real banks are often wrong. */

import { headerValue } from '../pis/headers.ts';
import { decodeIfKnown } from './content-coding.ts';
import type { PisResponse } from './messages.ts';

/** @returns `undefined` if the response contains no `paymentId` or cannot be read; a promise if its body is encoded */
export function paymentIdOf(response: PisResponse): string | undefined | Promise<string | undefined> {
  if (headerValue(response.headers, 'content-encoding') === undefined) return paymentIdIn(response.body);
  return decodeIfKnown(response).then(paymentIdIn, () => undefined);
}

function paymentIdIn(body: Buffer): string | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    if (typeof parsed !== 'object' || parsed === null || !('paymentId' in parsed)) return undefined;
    const { paymentId } = parsed;
    return typeof paymentId === 'string' && paymentId !== '' ? paymentId : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a response that is no success names a payment: then the bank may have made it. */
export const namesPayment = async (response: PisResponse): Promise<boolean> =>
  headerValue(response.headers, 'location') !== undefined || (await paymentIdOf(response)) !== undefined;
