/** The stored affinity of one payment id: the environments that created a payment with this id, and for which tenants. */

import { z } from 'zod';
import { type BankIds, mergeBankIds } from '../request/bank-ids.ts';
import { GatewayError } from '../request/errors.ts';

const recordShape = z.object({
  v: z.literal(1),
  /** In the order in which they were recorded. */
  homes: z
    .array(
      z.object({
        environment: z.string(),
        tenant: z.string(),
        initiatedAs: z.string().optional(),
        bankIds: z
          .object({ payment: z.string().optional(), authorisations: z.array(z.string()).readonly() })
          .readonly()
          .optional(),
      }),
    )
    .min(1),
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
  /** `undefined` if the bank spells all ids as the gateway does, and none of them is unusual. */
  readonly bankIds?: BankIds | undefined;
}

/** Standing orders are stored permanently; other payments expire some time after their last use. */
export type AffinityRetention = 'permanent' | 'expiring';

export interface AffinityRecord {
  readonly affinities: readonly PaymentAffinity[];
  readonly renewedAt: number;
  readonly retention: AffinityRetention;
}

/**
 * Adds an affinity to a record. If the record has the affinity with another `initiatedAs`, that becomes `undefined`; ids are added
 * to those of the record.
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
  const addsIdsOnly = added.initiatedAs === undefined && added.bankIds !== undefined; // found in an answer to a later request
  const isSame = addsIdsOnly || known.initiatedAs === added.initiatedAs;
  const initiatedAs = isSame ? known.initiatedAs : undefined;
  const bankIds = mergeBankIds(known.bankIds, added.bankIds);
  if (initiatedAs === known.initiatedAs && bankIds === known.bankIds) return affinities;
  return affinities.with(at, { environment: known.environment, tenant: known.tenant, initiatedAs, bankIds });
}

export const serializeAffinityRecord = ({ affinities, renewedAt, retention }: AffinityRecord): string =>
  JSON.stringify({ v: 1, homes: affinities, renewedAt, endless: retention === 'permanent' });

/** @throws GatewayError STATE_UNAVAILABLE if the value is not a record: the gateway never guesses an environment */
export function parseAffinityRecord(raw: string): AffinityRecord {
  try {
    const { homes, renewedAt, endless } = recordShape.parse(JSON.parse(raw));
    return { affinities: homes, renewedAt, retention: endless ? 'permanent' : 'expiring' };
  } catch (cause) {
    throw new GatewayError(
      'STATE_UNAVAILABLE',
      'The stored record of this payment is unreadable; contact the operators of the gateway.',
      { cause },
    );
  }
}
