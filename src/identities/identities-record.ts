/** The stored record of all tenants and environments that ever used the shared state. */

import { z } from 'zod';
import { GatewayError } from '../request/errors.ts';

/** The tenant of all requests if no clients are configured. */
export const anonymousTenant = 'anonymous';

const tenantShape = z.object({
  /** The first one identifies new records; the others belonged to tenants that were merged into this one. */
  ids: z.array(z.string()).min(1),
  /** The name in use first, then the former ones. */
  names: z.array(z.string()).min(1),
  /** Hashes of all keys and certificates that were ever configured for its clients. */
  credentials: z.array(z.string()),
  retired: z.literal(true).optional(),
});

const environmentShape = z.object({
  ids: z.array(z.string()).min(1),
  name: z.string(),
  /** Origin and base path of the bank, at all addresses that it was configured with. */
  banks: z.array(z.string()).min(1),
});

/** Readers ignore unknown fields. */
const recordShape = z.object({
  v: z.literal(1),
  /** The highest version wins if the state lost the record or was restored from a backup. */
  version: z.int().positive(),
  /** Whether an earlier release used the state: it recorded no identities, so there may have been other tenants and banks. */
  earlierRelease: z.boolean(),
  tenants: z.array(tenantShape),
  environments: z.array(environmentShape),
});

export type IdentitiesRecord = z.output<typeof recordShape>;
export type TenantRecord = z.output<typeof tenantShape>;
export type EnvironmentRecord = z.output<typeof environmentShape>;

export const identitiesKey = 'identities';

/** @throws GatewayError STATE_UNAVAILABLE if the value is not a record, or one of a later version */
export function parseIdentities(raw: string): IdentitiesRecord {
  try {
    return recordShape.parse(JSON.parse(raw));
  } catch (cause) {
    const text = `The key "${identitiesKey}" of the shared state has an unexpected value, or a later release wrote it.`;
    throw new GatewayError('STATE_UNAVAILABLE', text, { cause });
  }
}
