/** The stored affinity of one payment id: the environments that created a payment with this id, and for which tenants. */

import { z } from 'zod';
import { GatewayError } from '../request/errors.ts';

const recordShape = z.object({
  v: z.literal(1),
  /** Pairs of environment and tenant. */
  homes: z.array(z.tuple([z.string(), z.string()])).min(1),
  /** When the record was last used, with a precision of one day: milliseconds since 1970. */
  renewedAt: z.number(),
  endless: z.boolean(),
});

/** The environment that created a payment, and the tenant that owns the payment: their identities, not their names. */
export interface PaymentAffinity {
  readonly environment: string;
  readonly tenant: string;
}

/** Standing orders are stored permanently; other payments expire some time after their last use. */
export type AffinityRetention = 'permanent' | 'expiring';

export interface AffinityRecord {
  readonly affinities: readonly PaymentAffinity[];
  readonly renewedAt: number;
  readonly retention: AffinityRetention;
}

/** Adds an affinity to a record. @returns the same object if nothing changes */
export function withAffinity(
  record: AffinityRecord | undefined,
  affinity: PaymentAffinity,
  { retention, renewedAt }: Pick<AffinityRecord, 'retention' | 'renewedAt'>,
): AffinityRecord {
  const affinities = record?.affinities ?? [];
  const isKnown = affinities.some(
    ({ environment, tenant }) => environment === affinity.environment && tenant === affinity.tenant,
  );
  const isRetained = record?.retention === 'permanent' || record?.retention === retention;
  if (record && isKnown && isRetained && record.renewedAt === renewedAt) return record;
  return {
    affinities: isKnown ? affinities : [...affinities, affinity],
    renewedAt,
    retention: record?.retention === 'permanent' ? 'permanent' : retention,
  };
}

export function serializeAffinityRecord({ affinities, renewedAt, retention }: AffinityRecord): string {
  const homes = affinities.map(({ environment, tenant }) => [environment, tenant]);
  return JSON.stringify({ v: 1, homes, renewedAt, endless: retention === 'permanent' });
}

/** @throws GatewayError STATE_UNAVAILABLE if the value is not a record: the gateway never guesses an environment */
export function parseAffinityRecord(raw: string): AffinityRecord {
  try {
    const { homes, renewedAt, endless } = recordShape.parse(JSON.parse(raw));
    return {
      affinities: homes.map(([environment, tenant]) => ({ environment, tenant })),
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
