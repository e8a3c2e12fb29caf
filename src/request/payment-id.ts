/** The payment id in the response to an initiation. Read from the body only: links of real banks are often wrong. */

import { headerValue } from '../pis/headers.ts';
import { decodeIfKnown } from './content-coding.ts';
import type { PisResponse } from './messages.ts';

/** @returns `undefined` if the response contains no `paymentId` or cannot be read; a promise if its body is encoded */
export function paymentIdOf(response: PisResponse): string | undefined | Promise<string | undefined> {
  if (response.json !== undefined) return paymentIdIn(response.json);
  if (headerValue(response.headers, 'content-encoding') === undefined) return paymentIdInText(response.body);
  return decodeIfKnown(response).then(paymentIdInText, () => undefined);
}

function paymentIdInText(body: Buffer): string | undefined {
  try {
    return paymentIdIn(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
}

function paymentIdIn(json: unknown): string | undefined {
  if (typeof json !== 'object' || json === null || !('paymentId' in json)) return undefined;
  const { paymentId } = json;
  return typeof paymentId === 'string' && paymentId !== '' ? paymentId : undefined;
}

/** Whether a response that is no success names a payment: then the bank may have made it. */
export const namesPayment = async (response: PisResponse): Promise<boolean> =>
  headerValue(response.headers, 'location') !== undefined || (await paymentIdOf(response)) !== undefined;
