/** The payment id in the response to an initiation. Read from the body only: links of real banks are often wrong. */

import { z } from 'zod';
import { decodeBody } from '../request/content-coding.ts';
import type { PisResponse } from '../request/messages.ts';

const initiationResponse = z.object({ paymentId: z.string().min(1) });

/** @returns `undefined` if the response contains no `paymentId` or cannot be read */
export async function paymentIdOf(response: PisResponse): Promise<string | undefined> {
  try {
    const body = await decodeBody(response);
    return initiationResponse.parse(JSON.parse((body ?? response.body).toString('utf8'))).paymentId;
  } catch {
    return undefined;
  }
}
