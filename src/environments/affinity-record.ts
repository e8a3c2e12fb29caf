/** What is remembered of one payment id, and how it is written down. */

import { z } from 'zod';
import { GatewayError } from '../request/errors.ts';

const recordShape = z.object({
  v: z.literal(1),
  /** One pair of environment and tenant each. */
  homes: z.array(z.tuple([z.string(), z.string()])).min(1),
  /** When it was last used, at a day's precision: milliseconds since 1970. */
  renewedAt: z.number(),
  endless: z.boolean(),
});

/** Where a payment lives, and whose it is. */
export interface PaymentAffinity {
  readonly environment: string;
  readonly tenant: string;
}

/** A standing order may be asked for as long as it runs; any other payment is remembered for a while. */
export type AffinityRetention = 'endless' | 'remembered';

export interface AffinityRecord {
  readonly affinities: readonly PaymentAffinity[];
  readonly renewedAt: number;
  readonly retention: AffinityRetention;
}

/** The record with one more home; what it knew it keeps. The very same record if it knew all of it. */
export function withAffinity(
  record: AffinityRecord | undefined,
  { home, lasts }: { readonly home: PaymentAffinity; readonly lasts: AffinityRetention },
  renewedAt: number,
): AffinityRecord {
  const homes = record?.affinities ?? [];
  const isKnown = homes.some(
    ({ environment, tenant }) => environment === home.environment && tenant === home.tenant,
  );
  const lastsAsLong = record?.retention === 'endless' || record?.retention === lasts;
  if (record && isKnown && lastsAsLong && record.renewedAt === renewedAt) return record;
  return {
    affinities: isKnown ? homes : [...homes, home],
    renewedAt,
    retention: record?.retention === 'endless' ? 'endless' : lasts,
  };
}

export function serializeAffinityRecord({ affinities, renewedAt, retention }: AffinityRecord): string {
  const pairs = affinities.map(({ environment, tenant }) => [environment, tenant]);
  return JSON.stringify({ v: 1, homes: pairs, renewedAt, endless: retention === 'endless' });
}

/** @throws GatewayError STATE_UNAVAILABLE if it is no record: better no answer than a guessed one */
export function parseAffinityRecord(raw: string): AffinityRecord {
  try {
    const { homes, renewedAt, endless: withoutEnd } = recordShape.parse(JSON.parse(raw));
    return {
      affinities: homes.map(([environment, tenant]) => ({ environment, tenant })),
      renewedAt,
      retention: withoutEnd ? 'endless' : 'remembered',
    };
  } catch (cause) {
    throw new GatewayError(
      'STATE_UNAVAILABLE',
      'What is remembered of this payment cannot be read; ask the operators.',
      {
        cause,
      },
    );
  }
}
