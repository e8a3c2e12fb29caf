/** tenants: tenants that were renamed, merged or retired. */

import { z } from 'zod';
import { isMapping } from '../object-path.ts';
import { plainName, plainNameExpected, plainNames } from '../values.ts';

const tenant = z.strictObject(
  {
    formerly: z
      .array(plainName())
      .default([])
      .describe(
        'Former names of this tenant, and tenants that were merged into it: it owns their payments. The name "anonymous" means all requests from before clients were configured.',
      ),
  },
  {
    error: (issue) =>
      issue.code === 'invalid_type' ? 'expected a tenant: a mapping with formerly' : undefined,
  },
);

export const tenants = z
  .object({
    retired: z
      .array(plainName())
      .default([])
      .describe(
        'Tenants that were permanently removed: no client can access their payments, and other tenants can use their keys, certificates and names.',
      ),
  })
  .catchall(tenant)
  .superRefine(refuseBadNames, { when: () => true })
  .prefault({})
  .meta({ propertyNames: { pattern: plainNames.source } })
  .describe(
    'Tenants that were renamed, merged or retired. The key of each mapping is the tenant that owns the payments now.',
  );

/** Runs even if a tenant is invalid: otherwise that error would hide this one. */
function refuseBadNames(all: unknown, context: z.RefinementCtx): void {
  if (!isMapping(all)) return;
  for (const name of Object.keys(all).filter((key) => !plainNames.test(key)))
    context.addIssue({ code: 'custom', path: [name], message: plainNameExpected });
}
