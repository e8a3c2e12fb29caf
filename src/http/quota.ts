/** Limits how often a client may call. Every request counts, including those that the cache or the ledger answers. */

import type { HeaderField } from '../pis/headers.ts';
import { asGatewayError, retryLater } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';
import { createMemoryTokenBuckets } from '../state/memory.ts';
import type { BucketRate, LocalTokenBuckets, TakeResult, TokenBuckets } from '../state/ports.ts';
import { shareOf } from '../state/token-bucket.ts';

interface QuotaClient {
  readonly name: string;
  /** `rate` in requests per second. */
  readonly quota?: { readonly rate: number; readonly burst: number } | undefined;
}

/**
 * Counts a request.
 *
 * @param addField adds `RateLimit` fields to the response, whatever that will be
 * @returns `undefined` if the request is admitted; a check that is under way if the shared state must be asked
 * @throws GatewayError QUOTA_EXCEEDED with the seconds to wait
 */
export type CheckQuota = (client: Client, addField: (field: HeaderField) => void) => PendingQuota | undefined;

/** A check whose result the shared state has not returned yet. */
export interface PendingQuota {
  /** Rejects with QUOTA_EXCEEDED. */
  readonly result: Promise<void>;
  /**
   * Whether the last answer left more permits than this instance has requested since. Then the request may use the shared state
   * before the result is known; otherwise every refused request would cost a claim and its release.
   */
  readonly isLikely: boolean;
}

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
    if (result instanceof Promise) return pendingQuota(limit, result, apply);
    apply(result);
    return undefined;
  };
}

function pendingQuota(
  limit: Limit,
  answer: Promise<TakeResult>,
  apply: (result: TakeResult) => void,
): PendingQuota {
  const isLikely = limit.remaining > limit.pending;
  limit.pending += 1;
  const onAnswer = (result: TakeResult) => {
    limit.pending -= 1;
    limit.remaining = result.remaining;
    apply(result);
  };
  const onError = (thrown: unknown) => {
    limit.pending -= 1;
    throw thrown;
  };
  return { isLikely, result: answer.then(onAnswer, onError) };
}

/** How long the shared buckets are not used after they failed. Milliseconds. */
const retryAfterMs = 1_000;

/**
 * While the shared buckets cannot be reached, and without any, this instance counts its share of the quota in buckets of its own.
 *
 * @param share 0 to 1
 */
export function createTakeQuota(
  buckets: TokenBuckets,
  share: () => number,
  now: () => number = () => performance.now(),
): TakeQuota {
  if (!buckets.isShared) return (bucket, rate) => buckets.take(bucket, shareOf(rate, share()));
  let local: LocalTokenBuckets | undefined;
  let retryAtMs = Number.NEGATIVE_INFINITY;
  return (bucket, rate) => {
    if (local && now() < retryAtMs) return local.take(bucket, shareOf(rate, share()));
    return buckets.take(bucket, rate).then(
      (result) => {
        local = undefined;
        return result;
      },
      (thrown) => {
        if (asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') throw thrown;
        retryAtMs = now() + retryAfterMs;
        local ??= createMemoryTokenBuckets(now);
        return local.take(bucket, shareOf(rate, share()));
      },
    );
  };
}

/** The quota of one client, as this instance knows it. */
interface Limit {
  readonly bucket: string;
  readonly rate: BucketRate;
  readonly policy: HeaderField;
  /** By the last answer of the shared state. */
  remaining: number;
  /** Requests that the shared state has not answered. */
  pending: number;
}

function limitFor(name: string, { rate: perSecond, burst }: NonNullable<QuotaClient['quota']>): Limit {
  const rate = { perSecond, burst };
  const policy: HeaderField = ['RateLimit-Policy', formatPolicy(rate)];
  return { bucket: `bucket:client:${name}`, rate, policy, remaining: 0, pending: 0 };
}

/**
 * As structured fields (draft-ietf-httpapi-ratelimit-headers-10): `q` calls in `w` seconds; `r` are left, and all of them
 * after `t` seconds. A bucket that holds `q` is full again after q / rate seconds.
 */
const formatPolicy = ({ perSecond, burst }: BucketRate) =>
  `"default";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond - 1e-6))}`;

const formatLimit = ({ remaining, fullInMs }: TakeResult) =>
  `"default";r=${remaining};t=${Math.ceil(fullInMs / 1000)}`;
