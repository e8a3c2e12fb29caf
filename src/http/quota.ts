/** Limits how often a client may call. Every request counts, including those that the cache or the ledger answers. */

import type { HeaderField } from '../pis/headers.ts';
import { retryLater } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';
import type { BucketRate, TakeResult, TokenBuckets } from '../state/ports.ts';

interface QuotaClient {
  readonly name: string;
  /** `rate` in requests per second. */
  readonly quota?: { readonly rate: number; readonly burst: number } | undefined;
}

/**
 * Counts a request.
 *
 * @param addField adds `RateLimit` fields to the response, whatever that will be
 * @throws GatewayError QUOTA_EXCEEDED with the seconds to wait
 */
export type CheckQuota = (client: Client, addField: (field: HeaderField) => void) => Promise<void>;

/** @param buckets continue locally while the shared state is unavailable */
export function createQuotaCheck(
  clients: readonly QuotaClient[],
  buckets: Pick<TokenBuckets, 'take'>,
): CheckQuota {
  const limits = new Map(
    clients.flatMap(({ name, quota }) => (quota ? [[name, limitFor(name, quota)] as const] : [])),
  );
  return async ({ name }, addField) => {
    const limit = limits.get(name);
    if (!limit) return;
    const result = await buckets.take(limit.bucket, limit.rate);
    addField(limit.policy);
    addField(['RateLimit', formatLimit(result)]);
    if (!result.taken)
      throw retryLater(result.nextPermitMs, 'QUOTA_EXCEEDED', 'The quota of this client is used up');
  };
}

/** What is the same for every request of a client. */
function limitFor(name: string, { rate: perSecond, burst }: NonNullable<QuotaClient['quota']>) {
  const rate = { perSecond, burst };
  const policy: HeaderField = ['RateLimit-Policy', formatPolicy(rate)];
  return { bucket: `bucket:client:${name}`, rate, policy };
}

/**
 * As structured fields (draft-ietf-httpapi-ratelimit-headers-10): `q` calls in `w` seconds; `r` are left, and all of them
 * after `t` seconds. A bucket that holds `q` is full again after q / rate seconds.
 */
const formatPolicy = ({ perSecond, burst }: BucketRate) =>
  `"default";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond - 1e-6))}`;

const formatLimit = ({ remaining, fullInMs }: TakeResult) =>
  `"default";r=${remaining};t=${Math.ceil(fullInMs / 1000)}`;
