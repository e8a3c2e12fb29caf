/** The body of a response as JSON, also if no link in it was rewritten. */

import { decodeIfKnown } from '../request/content-coding.ts';
import type { PisResponse } from '../request/messages.ts';

/** @returns `undefined` if the body is no JSON or cannot be decoded */
export async function jsonOf(response: PisResponse): Promise<unknown> {
  if (response.json !== undefined) return response.json;
  try {
    return JSON.parse((await decodeIfKnown(response)).toString());
  } catch {
    return undefined;
  }
}
