/** tenants: which tenants were renamed, merged or ended. */

import { z } from 'zod';
import { isMapping } from '../object-path.ts';
import { plainName, plainNameExpected, plainNames } from '../values.ts';

const tenant = z.strictObject(
  {
    formerly: z
      .array(plainName())
      .default([])
      .describe(
        'Names that this tenant had before, or tenants that were merged into it: it continues their payments. The name "anonymous" stands for all requests from before clients were configured.',
      ),
  },
  {
    error: (issue) =>
      issue.code === 'invalid_type' ? 'expected a tenant: a mapping with formerly in it' : undefined,
  },
);

export const tenants = z
  .object({
    retired: z
      .array(plainName())
      .default([])
      .describe(
        'Tenants that have ended for ever: nobody can use their payments, and other tenants can use their keys, certificates and names.',
      ),
  })
  .catchall(tenant)
  .superRefine(refuseBadNames, { when: () => true })
  .prefault({})
  .meta({ propertyNames: { pattern: plainNames.source } })
  .describe(
    'Tenants that were renamed, merged or ended. The name of each mapping is the tenant that continues the payments.',
  );

/** Runs even if a tenant is invalid: otherwise that error would hide this one. */
function refuseBadNames(all: unknown, context: z.RefinementCtx): void {
  if (!isMapping(all)) return;
  for (const name of Object.keys(all).filter((key) => !plainNames.test(key)))
    context.addIssue({ code: 'custom', path: [name], message: plainNameExpected });
}
