/** What is remembered of one payment id, and how it is written down. */

import { z } from 'zod';
import { GatewayError } from '../flow/errors.ts';

const recordShape = z.object({
  v: z.literal(1),
  /** One pair of environment and tenant each. */
  homes: z.array(z.tuple([z.string(), z.string()])).min(1),
  /** When it was last used, at a day's precision: milliseconds since 1970. */
  renewedAt: z.number(),
  endless: z.boolean(),
});

/** Where a payment lives, and whose it is. */
export interface Home {
  readonly environment: string;
  readonly tenant: string;
}

/** A standing order may be asked for as long as it runs; any other payment is remembered for a while. */
export type Lasting = 'endless' | 'remembered';

export interface PaymentRecord {
  readonly homes: readonly Home[];
  readonly renewedAt: number;
  readonly lasts: Lasting;
}

/** The record with one more home; what it knew it keeps. The very same record if it knew all of it. */
export function withHome(
  record: PaymentRecord | undefined,
  { home, lasts }: { readonly home: Home; readonly lasts: Lasting },
  renewedAt: number,
): PaymentRecord {
  const homes = record?.homes ?? [];
  const isKnown = homes.some(
    ({ environment, tenant }) => environment === home.environment && tenant === home.tenant,
  );
  const lastsAsLong = record?.lasts === 'endless' || record?.lasts === lasts;
  if (record && isKnown && lastsAsLong && record.renewedAt === renewedAt) return record;
  return {
    homes: isKnown ? homes : [...homes, home],
    renewedAt,
    lasts: record?.lasts === 'endless' ? 'endless' : lasts,
  };
}

export function writtenRecord({ homes, renewedAt, lasts }: PaymentRecord): string {
  const pairs = homes.map(({ environment, tenant }) => [environment, tenant]);
  return JSON.stringify({ v: 1, homes: pairs, renewedAt, endless: lasts === 'endless' });
}

/** @throws GatewayError STATE_UNAVAILABLE if it is no record: better no answer than a guessed one */
export function parseRecord(raw: string): PaymentRecord {
  try {
    const { homes, renewedAt, endless: withoutEnd } = recordShape.parse(JSON.parse(raw));
    return {
      homes: homes.map(([environment, tenant]) => ({ environment, tenant })),
      renewedAt,
      lasts: withoutEnd ? 'endless' : 'remembered',
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
