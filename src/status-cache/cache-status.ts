/**
 * STAGE 4. Answers status reads from the cache, and makes writes forget what they may change.
 *
 * When the bank fails, the last status known is served, marked as stale: a TPP that polls is better off with an old
 * truth than with an error. Without the shared state, the bank is asked.
 */

import { performance } from 'node:perf_hooks';
import type { Config } from '../config/schema.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { createChangeWaiter } from '../state/change-waiter.ts';
import type { KeyValues, State } from '../state/ports.ts';
import { type Clock, cacheModeOf, createMonotonicClock } from './cache-control.ts';
import { type CacheResult, withCacheHeaders } from './cache-headers.ts';
import { type CacheKey, type CacheKeys, createCacheKeys, paymentKeyOf } from './cache-key.ts';
import {
  type CacheStore,
  createCacheStore,
  createInvalidatePayment,
  createInvalidation,
  type Invalidation,
} from './cache-store.ts';
import { type CachedPayment, isFresh, toPisResponse } from './cached-payment.ts';
import { createFetchStatus, type FetchStatus } from './fetch-status.ts';
import { createSingleFlight, type SingleFlight } from './single-flight.ts';

/** What the stage works with. */
export interface StatusCache {
  readonly enabled: boolean;
  readonly reads: StatusReads;
  readonly invalidation: Invalidation;
  readonly ifStateFails: 'refuse' | 'allow';
}

export function cacheStatus(cache: StatusCache): Stage<RoutedRequest> {
  return async (request, next) => {
    if (!cache.enabled) return next(request);
    if (request.operation.changesStatus) return invalidateAround(cache, request, next);
    if (!request.operation.readsStatus) return next(request);

    switch (cacheModeOf(request)) {
      case 'leave-the-cache-alone':
        return cache.reads.bypass(request, next);
      case 'only-if-cached':
        return (await cache.reads.onlyIfCached(request)) ?? notCached();
      case 'impossible':
        return notCached();
      case 'ask-the-bank':
        return cache.reads.refetch(request, next);
      case 'any':
        return cache.reads.cacheOrFetch(request, next);
    }
  };
}

/** Forgets the payment before the bank may act and after it has: no older answer can come back in between. */
async function invalidateAround(
  { invalidation, ifStateFails }: StatusCache,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const key = paymentKeyOf(request.environment.name, request.operation.paymentId ?? '');
  await invalidation.invalidate(key).catch((thrown: unknown) => {
    if (ifStateFails === 'refuse') throw asGatewayError(thrown);
    invalidation.later(key);
  });
  try {
    return await next(request);
  } finally {
    await invalidation.invalidateOrDefer(key);
  }
}

function notCached(): never {
  throw new GatewayError(
    'NOT_CACHED',
    'No status of this payment is known here; ask without only-if-cached.',
  );
}

// MERGED HEADER (rewrite or remove):
/* How one status read is answered: from what is kept, by sharing a question that is under way, or by asking the bank. */

type Next = Handler<RoutedRequest>;

/** Each throws what `next` throws, if nothing better is known. */
export interface StatusReads {
  /** From the cache if it is fresh there, else from the bank. */
  cacheOrFetch(request: RoutedRequest, next: Next): Promise<PisResponse>;
  /** From the bank, whatever is kept; equal questions at the same time are one. */
  refetch(request: RoutedRequest, next: Next): Promise<PisResponse>;
  /** From the cache alone; `undefined` if it is not fresh there. */
  onlyIfCached(request: RoutedRequest): Promise<PisResponse | undefined>;
  /** From the bank; nothing is kept or shared. */
  bypass(request: RoutedRequest, next: Next): Promise<PisResponse>;
}

interface StatusReadsDependencies {
  readonly cacheKeys: CacheKeys;
  readonly store: Pick<CacheStore, 'read'>;
  readonly singleFlight: SingleFlight;
  readonly fetchStatus: FetchStatus;
  readonly invalidation: Pick<Invalidation, 'later'>;
  readonly now: Clock;
}

/** What a call to the bank needs at least, of a deadline that is spent waiting for another instance. Milliseconds. */
const minCallMs = 1_000;
/** A shared state that takes longer to answer is not asked for a lease as well: the read has waited enough. Milliseconds. */
const promptReadMs = 15;

function createStatusReads(parts: StatusReadsDependencies): StatusReads {
  const { cacheKeys, store, singleFlight, fetchStatus, invalidation, now } = parts;
  const readIfPossible = (key: string) => store.read(key).catch(() => undefined);
  const placeOf = (request: RoutedRequest) => cacheKeys.of(request).catch(() => undefined);

  async function through(asked: RoutedRequest, next: Next, wish: 'any' | 'fresh'): Promise<PisResponse> {
    const request = { ...asked, signal: undefined }; // others may wait for the answer: it is fetched although the TPP leaves
    const place = await placeOf(request);
    if (!place) return blindly(request, next);
    for (;;) {
      const { joined, landing } = singleFlight.run(`${place.key} ${place.variant} ${wish}`, () =>
        wish === 'any' ? lookOrAsk(request, next, place) : askAnyway(request, next, place),
      );
      const landed = await landing;
      if (!joined) return told(request, landed);
      if (!landed.shareable) return bypass(request, next);
      if (landed.asOfMs >= request.arrivedAtMs) return told(request, asShared(landed));
    }
  }

  async function lookOrAsk(request: RoutedRequest, next: Next, place: CacheKey): Promise<CacheResult> {
    const question = { request, next, place, why: 'miss' } as const;
    const asOfMs = performance.now();
    const before = performance.eventLoopUtilization();
    let document = await readIfPossible(place.key);
    const hit = document && freshIn(document, place, request);
    if (hit) return { ...hit, verdict: 'hit', asOfMs };
    const idleMs = performance.eventLoopUtilization(before).idle; // not counting the time that this process was busy
    if (!document || idleMs > promptReadMs) return fetchStatus(question, document);
    return singleFlight.runAcrossInstances(place.key, `${place.variant}:${document.generation}`, {
      async lookup() {
        const lookedAtMs = performance.now();
        document = await readIfPossible(place.key);
        const fresh = document && freshIn(document, place, request);
        return fresh && { ...fresh, verdict: 'shared', asOfMs: lookedAtMs };
      },
      fetch: () => fetchStatus(question, document),
      waitUntilMs: request.deadlineAtMs - minCallMs,
    });
  }

  const askAnyway = async (request: RoutedRequest, next: Next, place: CacheKey) =>
    fetchStatus({ request, next, place, why: 'request' }, await readIfPossible(place.key));

  async function bypass(request: RoutedRequest, next: Next): Promise<PisResponse> {
    const place = await placeOf(request);
    if (!place) return blindly(request, next);
    const question = { request, next, place, why: 'bypass' } as const;
    return told(request, await fetchStatus(question, await readIfPossible(place.key)));
  }

  /** While not even the secret is known: what is kept may be older than this answer, and cannot be compared with it. */
  async function blindly(request: RoutedRequest, next: Next): Promise<PisResponse> {
    const response = await next(request);
    invalidation.later(paymentKeyOf(request.environment.name, request.operation.paymentId ?? ''));
    return told(request, { response, verdict: 'bypass', shareable: false, asOfMs: 0 });
  }

  function freshIn(document: CachedPayment, { variant }: CacheKey, { environment }: RoutedRequest) {
    const entry = document.entries[variant];
    if (!entry || !isFresh(entry, now())) return undefined;
    return { response: toPisResponse(entry, environment.name), entry, shareable: true };
  }

  function told({ recordEvent }: RoutedRequest, answer: CacheResult): PisResponse {
    recordEvent?.({ what: 'cache', verdict: answer.verdict });
    return withCacheHeaders(answer, now());
  }

  return {
    cacheOrFetch: (request, next) => through(request, next, 'any'),
    refetch: (request, next) => through(request, next, 'fresh'),
    bypass,
    async onlyIfCached(request) {
      const place = await placeOf(request);
      const document = place && (await readIfPossible(place.key));
      const found = document && freshIn(document, place, request);
      return found && told(request, { ...found, verdict: 'hit', asOfMs: request.arrivedAtMs });
    },
  };
}

/** As whoever had to wait for it is told; what was kept already is a hit for everybody. */
function asShared(landed: CacheResult): CacheResult {
  const isNews = landed.verdict === 'miss' || landed.verdict === 'request';
  return isNews ? { ...landed, verdict: 'shared' } : landed;
}

// MERGED HEADER (rewrite or remove):
/* Puts the status cache together: what lasts as long as the gateway, and what one configuration makes of it. */

/** What outlives a reload of the configuration. */
export interface StatusCacheServices {
  readonly keyValues: KeyValues;
  readonly cacheKeys: CacheKeys;
  readonly singleFlight: SingleFlight;
  readonly invalidation: Invalidation;
  readonly now: Clock;
}

/** Which payment is to be forgotten; all of them if none is named. Without an environment, in every one. */
export type Purge = (which: {
  readonly environment?: string | undefined;
  readonly payment?: string | undefined;
}) => Promise<void>;

export function createStatusCacheServices(
  state: Pick<State, 'keyValues' | 'pubsub'>,
  now: Clock = createMonotonicClock(),
): StatusCacheServices {
  const places = createCacheKeys(state);
  const { keyValues, pubsub } = state;
  const changes = createChangeWaiter(pubsub, 'status');
  return {
    keyValues,
    cacheKeys: places,
    singleFlight: createSingleFlight(keyValues, changes),
    invalidation: createInvalidation({
      invalidatePayment: createInvalidatePayment(keyValues, changes),
      invalidateAll: places.rotateSecret,
    }),
    now,
  };
}

export function createStatusCache(
  { statusCache: settings, environments, idempotency }: Config,
  { keyValues, cacheKeys, singleFlight, invalidation, now }: StatusCacheServices,
): StatusCache & { readonly purge: Purge } {
  const { finalTtl, settledTtl, pendingTtlMax, staleTtl } = settings;
  const keptForMs = Math.max(finalTtl, settledTtl, pendingTtlMax, staleTtl);
  const entries = createCacheStore(keyValues, keptForMs, invalidation.flushPayment);
  const askBank = createFetchStatus({ store: entries, invalidation, settings, now });

  return {
    enabled: settings.enabled,
    reads: createStatusReads({
      cacheKeys,
      store: entries,
      singleFlight,
      fetchStatus: askBank,
      invalidation,
      now,
    }),
    invalidation,
    ifStateFails: idempotency.ifStateFails,
    async purge({ environment, payment }) {
      if (payment === undefined) return cacheKeys.rotateSecret();
      const names = environment === undefined ? environments.all.map(({ name }) => name) : [environment];
      await Promise.all(names.map((name) => invalidation.invalidate(paymentKeyOf(name, payment))));
    },
  };
}
