/** The stored affinity of one payment id: the environments that created a payment with this id, and for which tenants. */

import { z } from 'zod';
import { GatewayError } from '../request/errors.ts';

const recordShape = z.object({
  v: z.literal(1),
  /** Pairs of environment and tenant. */
  homes: z.array(z.tuple([z.string(), z.string()])).min(1),
  /**
   * `initiatedAs` of each pair, in the same order. Missing in records of releases that do not store it, which also drop it when they
   * change a record. Not a third member of the pairs: those releases could not read it.
   */
  as: z.array(z.string().nullable()).optional().catch(undefined),
  /** When the record was last used, with a precision of one day: milliseconds since 1970. */
  renewedAt: z.number(),
  endless: z.boolean(),
});

/** The environment that created a payment, and the tenant that owns the payment: their identities, not their names. */
export interface PaymentAffinity {
  readonly environment: string;
  readonly tenant: string;
  /**
   * Service and product of the initiation, such as `payments/sepa-credit-transfers`. `undefined` if they were not recorded, or if
   * payments of several products have this id.
   */
  readonly initiatedAs?: string | undefined;
}

/** Standing orders are stored permanently; other payments expire some time after their last use. */
export type AffinityRetention = 'permanent' | 'expiring';

export interface AffinityRecord {
  readonly affinities: readonly PaymentAffinity[];
  readonly renewedAt: number;
  readonly retention: AffinityRetention;
}

/**
 * Adds an affinity to a record. If the record has the affinity with another `initiatedAs`, that becomes `undefined`.
 *
 * @returns the same object if nothing changes; the same `affinities` if none of them does
 */
export function withAffinity(
  record: AffinityRecord | undefined,
  affinity: PaymentAffinity,
  { retention, renewedAt }: Pick<AffinityRecord, 'retention' | 'renewedAt'>,
): AffinityRecord {
  const affinities = mergeAffinity(record?.affinities ?? [], affinity);
  const isRetained = record?.retention === 'permanent' || record?.retention === retention;
  if (record?.affinities === affinities && isRetained && record.renewedAt === renewedAt) return record;
  return { affinities, renewedAt, retention: record?.retention === 'permanent' ? 'permanent' : retention };
}

function mergeAffinity(
  affinities: readonly PaymentAffinity[],
  added: PaymentAffinity,
): readonly PaymentAffinity[] {
  const at = affinities.findIndex(
    ({ environment, tenant }) => environment === added.environment && tenant === added.tenant,
  );
  const known = affinities[at];
  if (!known) return [...affinities, added];
  if (known.initiatedAs === undefined || known.initiatedAs === added.initiatedAs) return affinities;
  return affinities.with(at, { environment: known.environment, tenant: known.tenant });
}

export function serializeAffinityRecord({ affinities, renewedAt, retention }: AffinityRecord): string {
  const homes = affinities.map(({ environment, tenant }) => [environment, tenant]);
  const as = affinities.some(({ initiatedAs }) => initiatedAs !== undefined)
    ? affinities.map(({ initiatedAs }) => initiatedAs ?? null)
    : undefined;
  return JSON.stringify({ v: 1, homes, as, renewedAt, endless: retention === 'permanent' });
}

/** @throws GatewayError STATE_UNAVAILABLE if the value is not a record: the gateway never guesses an environment */
export function parseAffinityRecord(raw: string): AffinityRecord {
  try {
    const { homes, as, renewedAt, endless } = recordShape.parse(JSON.parse(raw));
    return {
      affinities: homes.map(([environment, tenant], at) => withInitiation(environment, tenant, as?.[at])),
      renewedAt,
      retention: endless ? 'permanent' : 'expiring',
    };
  } catch (cause) {
    throw new GatewayError(
      'STATE_UNAVAILABLE',
      'The stored record of this payment is unreadable; contact the operators of the gateway.',
      { cause },
    );
  }
}

function withInitiation(
  environment: string,
  tenant: string,
  initiatedAs: string | null | undefined,
): PaymentAffinity {
  return typeof initiatedAs === 'string' ? { environment, tenant, initiatedAs } : { environment, tenant };
}
