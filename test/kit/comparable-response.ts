/** What a caller can learn from an answer. */

import type { Reply } from './call.ts';
import { but, type Field } from './fields.ts';

/** An answer without what is new in every one. */
export interface ComparableResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  /** The bytes, one character each. */
  readonly body: string;
}

export const comparableResponse = ({ status, fields, body }: Reply): ComparableResponse => ({
  status,
  fields: but(['x-request-id', 'date'], fields),
  body: body.toString('latin1'),
});
