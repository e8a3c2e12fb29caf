/** Limits how often a client may call. Every request counts, including those that the cache or the ledger answers. */

import type { HeaderField } from '../pis/headers.ts';
import { asGatewayError, retryLater } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';
import { createMemoryTokenBuckets } from '../state/memory.ts';
import type { BucketRate, LocalTokenBuckets, TakeResult, TokenBuckets } from '../state/ports.ts';

interface QuotaClient {
  readonly name: string;
  /** `rate` in requests per second. */
  readonly quota?: { readonly rate: number; readonly burst: number } | undefined;
}

/**
 * Counts a request. Returns a promise only if it must ask the shared state.
 *
 * @param addField adds `RateLimit` fields to the response, whatever that will be
 * @throws GatewayError QUOTA_EXCEEDED with the seconds to wait; with a shared state, the promise rejects with it
 */
export type CheckQuota = (
  client: Client,
  addField: (field: HeaderField) => void,
) => Promise<void> | undefined;

/** Takes a permit from the token bucket of a quota. */
export type TakeQuota = (bucket: string, rate: BucketRate) => TakeResult | Promise<TakeResult>;

export function createQuotaCheck(clients: readonly QuotaClient[], take: TakeQuota): CheckQuota {
  const limits = new Map(
    clients.flatMap(({ name, quota }) => (quota ? [[name, limitFor(name, quota)] as const] : [])),
  );
  return ({ name }, addField) => {
    const limit = limits.get(name);
    if (!limit) return undefined;
    const apply = (result: TakeResult) => {
      addField(limit.policy);
      addField(['RateLimit', formatLimit(result)]);
      if (!result.taken)
        throw retryLater(result.nextPermitMs, 'QUOTA_EXCEEDED', 'The quota of this client is exhausted');
    };
    const result = take(limit.bucket, limit.rate);
    if (result instanceof Promise) return result.then(apply);
    apply(result);
    return undefined;
  };
}

/** How long the shared buckets are not used after they failed. Milliseconds. */
const retryAfterMs = 1_000;

/** While shared buckets cannot be reached, this instance counts the whole quota by itself: then it never fails. */
export function createTakeQuota(
  buckets: TokenBuckets,
  now: () => number = () => performance.now(),
): TakeQuota {
  if (!buckets.isShared) return buckets.take;
  let local: LocalTokenBuckets | undefined;
  let retryAtMs = Number.NEGATIVE_INFINITY;
  return (bucket, rate) => {
    if (local && now() < retryAtMs) return local.take(bucket, rate);
    return buckets.take(bucket, rate).then(
      (result) => {
        local = undefined;
        return result;
      },
      (thrown) => {
        if (asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') throw thrown;
        retryAtMs = now() + retryAfterMs;
        local ??= createMemoryTokenBuckets(now);
        return local.take(bucket, rate);
      },
    );
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
