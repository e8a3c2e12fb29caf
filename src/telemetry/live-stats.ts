/** Statistics of each second of the last five minutes, of this instance, and their sum over several instances. */

import { type ErrorCode, errorTable } from '../request/errors.ts';
import type { CacheVerdict } from '../request/request-events.ts';
import { type InitiationCount, initiationOf, sumInitiations } from './initiations.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** One second, as the event stream of the admin API sends it. */
export interface SecondStats {
  /** Seconds since 1970. */
  readonly at: number;
  readonly requests: number;
  /**
   * Errors of the gateway without a call to the bank, except 404: a TPP that asks for what does not exist is not a problem of the
   * gateway or the bank.
   */
  readonly refused: number;
  /** Responses of 5xx by the bank, and calls without a usable response. */
  readonly failed: number;
  /** Quantiles of the duration, within 5 %, in milliseconds; `null` without requests. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  /** Status reads, by how they were answered. */
  readonly cache: Readonly<Record<StatusReadSource, number>>;
}

/** How a status read was answered. */
export type StatusReadSource = 'hit' | 'stale' | 'shared' | 'miss' | 'bypass';

/** The counts of one second, from which the statistics of several instances can be computed exactly. */
export interface SecondCounts {
  /** Seconds since 1970. */
  readonly at: number;
  readonly requests: number;
  readonly refused: number;
  readonly failed: number;
  readonly cache: Readonly<Record<StatusReadSource, number>>;
  /** The durations: the number of requests in each bucket that has some, by ascending bucket. */
  readonly durations: readonly (readonly [bucket: number, count: number])[];
  readonly initiations: readonly InitiationCount[];
}

export interface LiveStats extends RequestObserver {
  /** At most the last 300 finished seconds, oldest first, without gaps. */
  recent(): readonly SecondCounts[];
}

/** How many finished seconds are kept. */
export const maxSeconds = 300;

/** @param now milliseconds since 1970 */
export function createLiveStats(now: () => number = Date.now): LiveStats {
  const finished: SecondCounts[] = [];
  let current = createSecond(secondOf(now()));

  /** If the clock was set back, the current second only lasts longer. */
  function finishSeconds(): void {
    const at = secondOf(now());
    if (at <= current.at) return;
    finished.push(current.counts());
    const firstEmpty = Math.max(current.at + 1, at - maxSeconds);
    for (let empty = firstEmpty; empty < at; empty += 1) finished.push(emptySecond(empty));
    finished.splice(0, finished.length - maxSeconds);
    current = createSecond(at);
  }

  return {
    onRequestEnd(record) {
      finishSeconds();
      current.add(record);
    },
    recent() {
      finishSeconds();
      return [...finished];
    },
  };
}

/** A second without requests. */
export const emptySecond = (at: number): SecondCounts => ({
  at,
  requests: 0,
  refused: 0,
  failed: 0,
  cache: { hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 },
  durations: [],
  initiations: [],
});

/** The sum of counts, of several instances or of several seconds. */
export function sumOfCounts(at: number, all: readonly SecondCounts[]): SecondCounts {
  const sum = (count: (one: SecondCounts) => number) => all.reduce((total, one) => total + count(one), 0);
  const durations = new Map<number, number>();
  for (const one of all)
    for (const [bucket, count] of one.durations) durations.set(bucket, (durations.get(bucket) ?? 0) + count);
  return {
    at,
    requests: sum(({ requests }) => requests),
    refused: sum(({ refused }) => refused),
    failed: sum(({ failed }) => failed),
    cache: {
      hit: sum(({ cache }) => cache.hit),
      stale: sum(({ cache }) => cache.stale),
      shared: sum(({ cache }) => cache.shared),
      miss: sum(({ cache }) => cache.miss),
      bypass: sum(({ cache }) => cache.bypass),
    },
    durations: [...durations].toSorted(([one], [other]) => one - other),
    initiations: sumInitiations(all.flatMap(({ initiations }) => initiations)),
  };
}

export function statsOfCounts({ durations, initiations: _, ...counts }: SecondCounts): SecondStats {
  const { at, requests, refused, failed, cache } = counts;
  const quantiles = { p50Ms: quantileMs(durations, 0.5), p99Ms: quantileMs(durations, 0.99) };
  return { at, requests, refused, failed, ...quantiles, cache };
}

/** The duration that this fraction of all requests does not exceed; `null` without requests. */
function quantileMs(durations: SecondCounts['durations'], fraction: number): number | null {
  const total = durations.reduce((sum, [, count]) => sum + count, 0);
  let remaining = Math.ceil(fraction * total);
  for (const [bucket, count] of durations) {
    remaining -= count;
    if (remaining <= 0) return bucketMiddleMs(bucket);
  }
  return null;
}

const secondOf = (ms: number) => Math.floor(ms / 1_000);

const sourceOf: Readonly<Record<CacheVerdict, StatusReadSource>> = {
  hit: 'hit',
  stale: 'stale',
  shared: 'shared',
  miss: 'miss',
  request: 'bypass',
  bypass: 'bypass',
};

/** A call to the bank has failed; an open circuit is caused by the bank as well, but nothing is called. */
export const isFailedCall = (code: ErrorCode) =>
  errorTable[code].origin === 'aspsp' && code !== 'CIRCUIT_OPEN';

function createSecond(at: number) {
  const counts = { requests: 0, refused: 0, failed: 0 };
  const cache = { hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 };
  const durationBuckets = new Uint32Array(bucketCount);
  const initiations: InitiationCount[] = [];

  return {
    at,
    add(record: RequestRecord): void {
      const { error, status, servedFrom, durationMs, events } = record;
      counts.requests += 1;
      if (error ? isFailedCall(error.code) : status >= 500 && servedFrom === 'bank') counts.failed += 1;
      else if (error && status !== 404) counts.refused += 1;
      if (durationMs !== undefined) {
        const bucket = bucketOf(durationMs);
        durationBuckets[bucket] = (durationBuckets[bucket] ?? 0) + 1;
      }
      for (const { event } of events) if (event.what === 'cache') cache[sourceOf[event.verdict]] += 1;
      const initiation = initiationOf(record);
      if (initiation) initiations.push(initiation);
    },
    counts: (): SecondCounts => ({
      at,
      ...counts,
      cache: { ...cache },
      durations: Array.from(durationBuckets.entries()).filter(([, count]) => count > 0),
      initiations: sumInitiations(initiations),
    }),
  };
}

/**
 * Bucket 0 begins at 0.01 ms, and each bucket is 10 % wider than the previous one, so that its middle is within 5 % of
 * every value in it. The last one begins at an hour.
 */
const bucketOf = (ms: number) =>
  Math.min(bucketCount - 1, Math.max(0, Math.floor(Math.log(ms / 0.01) / Math.log(1.1))));
export const bucketCount = 208;
const bucketMiddleMs = (bucket: number) => Math.round(0.01 * 1.1 ** (bucket + 0.5) * 100) / 100;
