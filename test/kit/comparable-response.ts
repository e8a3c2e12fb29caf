/** Responses without the headers that differ in every response, for comparison. */

import type { Reply } from './call.ts';
import { but, type Field } from './fields.ts';

export interface ComparableResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  /** One character per byte. */
  readonly body: string;
}

export const comparableResponse = ({ status, fields, body }: Reply): ComparableResponse => ({
  status,
  fields: but(['x-request-id', 'date'], fields),
  body: body.toString('latin1'),
});
