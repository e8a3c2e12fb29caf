/** Translates schemas of zod for the OpenAPI description. */

import { z } from 'zod';

/** OpenAPI 3.1 uses JSON Schema 2020-12. The schemas describe requests as clients send them: a duration is a string. */
export function jsonSchema(schema: z.core.$ZodType): object {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    reused: 'inline',
    override({ jsonSchema: node }) {
      delete node.readOnly; // here it marks a readonly TypeScript array; in OpenAPI, a property that only the server sets
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
    },
  });
  return rest;
}
