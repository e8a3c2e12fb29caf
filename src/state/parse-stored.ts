/** Parses what this release may not have written: texts in the shared state, and messages of other instances. */

import type { z } from 'zod';

/** @returns `undefined` if the text is not JSON of this shape */
export function parseStored<Schema extends z.ZodType>(
  schema: Schema,
  text: string,
): z.output<Schema> | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
