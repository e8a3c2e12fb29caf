/** How orders of operators are read, and what is wrong with one is told. */

import type { Response } from 'express';
import { z } from 'zod';

/** Controls, such as those of terminals; line ends; and what changes the direction of text (Unicode UAX 9). */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu;

const expected = 'expected a reason, for the audit log';
/** Why an operator does something: one line, which nothing in it can break, hide or turn around where it is shown. */
export const reasonText = z
  .string({ error: expected })
  .overwrite((text) => text.replace(unprintable, ' '))
  .trim()
  .min(1, expected)
  .max(500);

/** For a body that is not even JSON. */
export const jsonBodyError = {
  error: (issue: { readonly code?: string }) =>
    issue.code === 'invalid_type' ? 'expected JSON, with Content-Type: application/json' : undefined,
};

/** The name that stands in the audit log. */
export const operatorName = (response: Response) => String(response.locals.operator);

/** All faults of an order, in one sentence. */
export const describeErrors = (error: z.ZodError) =>
  error.issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'body'}: ${message}`)
    .join('; ');
