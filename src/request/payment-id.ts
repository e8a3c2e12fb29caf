/** The payment id in the response to an initiation. Read from the body only: links of real banks are often wrong. */

import { z } from 'zod';
import { headerValue } from '../pis/headers.ts';
import { decodeIfKnown } from './content-coding.ts';
import type { PisResponse } from './messages.ts';

const initiationResponse = z.object({ paymentId: z.string().min(1) });

/** @returns `undefined` if the response contains no `paymentId` or cannot be read */
export async function paymentIdOf(response: PisResponse): Promise<string | undefined> {
  try {
    const body = await decodeIfKnown(response);
    return initiationResponse.parse(JSON.parse(body.toString('utf8'))).paymentId;
  } catch {
    return undefined;
  }
}

/** Whether a response that is no success names a payment: then the bank may have made it. */
export const namesPayment = async (response: PisResponse): Promise<boolean> =>
  headerValue(response.headers, 'location') !== undefined || (await paymentIdOf(response)) !== undefined;
