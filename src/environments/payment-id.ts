/** The id that the bank gave a payment: from the body alone, for links are often wrong in real banks. */

import { z } from 'zod';
import { decodeBody } from '../request/content-coding.ts';
import type { PisResponse } from '../request/messages.ts';

const initiated = z.object({ paymentId: z.string().min(1) });

/** `paymentId` of an initiation's answer; `undefined` if it names none, or cannot be read. */
export async function paymentIdOf(response: PisResponse): Promise<string | undefined> {
  try {
    const body = await decodeBody(response);
    return initiated.parse(JSON.parse((body ?? response.body).toString('utf8'))).paymentId;
  } catch {
    return undefined;
  }
}
