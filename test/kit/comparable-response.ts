/** Responses without the headers that differ in every response, for comparison. */

import type { Reply } from './call.ts';
import { type Field, withoutNames } from './fields.ts';

export interface ComparableResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  /** One character per byte. */
  readonly body: string;
}

export const comparableResponse = ({ status, fields, body }: Reply): ComparableResponse => ({
  status,
  fields: withoutNames(['x-request-id', 'date'], fields),
  body: body.toString('latin1'),
});
