/** How often a client may call: counted at the door, where hits and replays count as well. */

import type { HeaderField } from '../pis/headers.ts';
import { retryLater } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';
import type { BucketRate, TakeResult, TokenBuckets } from '../state/ports.ts';

/** A client as configured. */
interface LimitedClient {
  readonly name: string;
  readonly quota?: { readonly rate: number; readonly burst: number } | undefined;
}

/**
 * Counts a request.
 *
 * @param say puts a field into the answer to come, whatever that is: what is left of the quota
 * @throws GatewayError QUOTA_EXCEEDED with the seconds to wait
 */
export type CheckQuota = (client: Client, say: (field: HeaderField) => void) => Promise<void>;

/** @param reservations goes on by itself while the state is out of reach */
export function createQuotaCheck(
  clients: readonly LimitedClient[],
  reservations: Pick<TokenBuckets, 'take'>,
): CheckQuota {
  const limits = new Map(
    clients.flatMap(({ name, quota }) => (quota ? [[name, limitFor(name, quota)] as const] : [])),
  );
  return async ({ name }, say) => {
    const limit = limits.get(name);
    if (!limit) return;
    const taking = await reservations.take(limit.bucket, limit.rate);
    say(limit.policy);
    say(['RateLimit', limitOf(taking)]);
    if (!taking.taken)
      throw retryLater(taking.nextPermitMs, 'QUOTA_EXCEEDED', 'The quota of this client is used up');
  };
}

/** What is the same for every request of a client. */
function limitFor(name: string, { rate: perSecond, burst }: NonNullable<LimitedClient['quota']>) {
  const rate = { perSecond, burst };
  const policy: HeaderField = ['RateLimit-Policy', policyOf(rate)];
  return { bucket: `bucket:client:${name}`, rate, policy };
}

/**
 * As structured fields (draft-ietf-httpapi-ratelimit-headers-10): `q` calls in `w` seconds; `r` are left, and after `t`
 * seconds it is all of them. A bucket that holds `q` is full again after q / rate seconds.
 */
const policyOf = ({ perSecond, burst }: BucketRate) =>
  `"default";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond - 1e-6))}`;

const limitOf = ({ remaining, fullInMs }: TakeResult) =>
  `"default";r=${remaining};t=${Math.ceil(fullInMs / 1000)}`;
