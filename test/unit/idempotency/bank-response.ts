/** Responses of the bank, with what they mean. */

import type { HeaderFields } from '../../../src/pis/headers.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { withMeaning } from '../../kit/meaning.ts';
import { cancellation, initiation } from './requests.ts';

/** A response to an initiation if it has a paymentId, or else to a cancellation. @param more headers besides `Content-Type` */
export function bankResponse(status: number, body = '', more: HeaderFields = []): PisResponse {
  const headers: HeaderFields = [['Content-Type', 'application/json'], ...more];
  const response = { status, headers, body: Buffer.from(body), environment: 'sandbox' };
  const { operation } = body.includes('paymentId') || more.length > 0 ? initiation() : cancellation();
  return withMeaning(operation, { ...response, servedFrom: 'bank' });
}
