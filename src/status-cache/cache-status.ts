/**
 * STAGE 5. Answers status reads from the cache, invalidates the payment around writes that may change its status, and
 * records the status that other reads return.
 *
 * While the bank fails, the last known status is served, marked as stale: a TPP that polls can use an old status better
 * than an error. While the shared state is unavailable, each read goes to the bank.
 */

import { performance } from 'node:perf_hooks';
import type { Config } from '../config/schema.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import { type Identities, identitiesOf, namesAsIdentities } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { createChangeWaiter } from '../state/change-waiter.ts';
import type { KeyValues, State } from '../state/ports.ts';
import { type CacheLimits, type Clock, cacheUseOf, createMonotonicClock, noLimits } from './cache-control.ts';
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
import { createObservePayment, type ObservePayment } from './observe-payment.ts';
import { createSingleFlight, type SingleFlight } from './single-flight.ts';

/** The status cache of one configuration. */
export interface StatusCache {
  readonly enabled: boolean;
  readonly reads: StatusReads;
  readonly invalidation: Invalidation;
  readonly observePayment: ObservePayment;
  readonly ifStateFails: 'refuse' | 'allow';
}

export function cacheStatus(cache: StatusCache): Stage<RoutedRequest> {
  return async (request, next) => {
    if (!cache.enabled) return next(request);
    if (request.operation.changesStatus) return invalidateAround(cache, request, next);
    if (request.operation.showsStatus !== 'none') return observeAfter(cache, request, next);
    if (!request.operation.readsStatus) return next(request);

    const { mode, limits } = cacheUseOf(request);
    switch (mode) {
      case 'default':
        return cache.reads.cacheOrFetch(request, next);
      case 'limited':
        return (await cache.reads.onlyIfCached(request, limits)) ?? cache.reads.refetch(request, next);
      case 'refresh':
        return cache.reads.refetch(request, next);
      case 'bypass':
        return cache.reads.bypass(request, next);
      case 'only-if-cached':
        return (await cache.reads.onlyIfCached(request, limits)) ?? notCached();
      case 'unsatisfiable':
        return notCached();
    }
  };
}

/** The part of the cache that outlives a reload of the configuration. */
export interface StatusCacheServices {
  readonly keyValues: KeyValues;
  readonly cacheKeys: CacheKeys;
  readonly singleFlight: SingleFlight;
  readonly invalidation: Invalidation;
  readonly now: Clock;
}

export function createStatusCacheServices(
  { keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>,
  now: Clock = createMonotonicClock(),
): StatusCacheServices {
  const cacheKeys = createCacheKeys({ keyValues, pubsub });
  const changes = createChangeWaiter(pubsub, 'status');
  const invalidation = createInvalidation({
    invalidatePayment: createInvalidatePayment(keyValues, changes),
    invalidateAll: cacheKeys.rotateSecret,
  });
  return { keyValues, cacheKeys, singleFlight: createSingleFlight(keyValues, changes), invalidation, now };
}

/**
 * Invalidates one payment, or all payments if none is named; without an environment, in every environment.
 *
 * @throws GatewayError STATE_UNAVAILABLE
 */
export type Purge = (selection: {
  readonly environment?: string | undefined;
  readonly payment?: string | undefined;
}) => Promise<void>;

export function createStatusCache(
  { statusCache: settings, environments, idempotency }: Config,
  { keyValues, cacheKeys, singleFlight, invalidation, now }: StatusCacheServices,
  identities: { current(): Identities | undefined } = { current: () => namesAsIdentities },
): StatusCache & { readonly purge: Purge } {
  const { finalTtl, settledTtl, pendingTtlMax, staleTtl } = settings;
  const storedForMs = Math.max(finalTtl, settledTtl, pendingTtlMax, staleTtl);
  const store = createCacheStore(keyValues, storedForMs, invalidation.flushPayment);
  const fetchStatus = createFetchStatus({ store, invalidation, settings, now });

  return {
    enabled: settings.enabled,
    reads: createStatusReads({ cacheKeys, store, singleFlight, fetchStatus, invalidation, now }),
    invalidation,
    observePayment: createObservePayment({ store, invalidation, now }),
    ifStateFails: idempotency.ifStateFails,
    async purge({ environment, payment }) {
      if (payment === undefined) return cacheKeys.rotateSecret();
      const names = environment === undefined ? environments.all.map(({ name }) => name) : [environment];
      const { environmentIdOf } = identities.current() ?? namesAsIdentities;
      const keys = names.map((name) => paymentKeyOf(environmentIdOf(name), payment));
      await Promise.all(keys.map((key) => invalidation.invalidate(key)));
    },
  };
}

/** Invalidates before the bank may act and after it has: no older status can be stored in between. */
async function invalidateAround(
  { invalidation, ifStateFails }: StatusCache,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const paymentKey = paymentKeyIn(request);
  await invalidation.invalidate(paymentKey).catch((thrown: unknown) => {
    if (ifStateFails === 'refuse') throw asGatewayError(thrown);
    invalidation.defer(paymentKey);
  });
  try {
    return await next(request);
  } finally {
    await invalidation.invalidateOrDefer(paymentKey);
  }
}

/** The status is recorded before the TPP receives the response: from then on, no older status is served from the cache. */
async function observeAfter(
  { observePayment }: StatusCache,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const response = await next(request);
  await observePayment(request, response, paymentKeyIn(request));
  return response;
}

const paymentKeyIn = (request: RoutedRequest) =>
  paymentKeyOf(
    identitiesOf(request).environmentIdOf(request.environment.name),
    request.operation.paymentId ?? '',
  );

function notCached(): never {
  throw new GatewayError(
    'NOT_CACHED',
    'No fresh status of this payment is cached; repeat the request without only-if-cached.',
  );
}

/** Each operation that asks the bank throws what `next` throws, unless a stale status can be served. */
interface StatusReads {
  /** From the cache if it is fresh, otherwise from the bank. */
  cacheOrFetch(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse>;
  /** From the bank, whatever is cached; equal reads at the same time are one fetch. */
  refetch(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse>;
  /** From the bank; the response is neither stored nor shared. */
  bypass(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse>;
  /** From the cache; `undefined` if it is not fresh, or not within the limits. */
  onlyIfCached(request: RoutedRequest, limits: CacheLimits): Promise<PisResponse | undefined>;
}

interface StatusReadsDependencies {
  readonly cacheKeys: CacheKeys;
  readonly store: Pick<CacheStore, 'read'>;
  readonly singleFlight: SingleFlight;
  readonly fetchStatus: FetchStatus;
  readonly invalidation: Pick<Invalidation, 'defer'>;
  readonly now: Clock;
}

/** The time that the wait for another instance leaves for a call of our own before the deadline. Milliseconds. */
const minCallMs = 1_000;
/** After a slower read of the shared state, no lease is requested: the TPP has waited enough. Milliseconds. */
const maxReadMs = 15;

function createStatusReads(dependencies: StatusReadsDependencies): StatusReads {
  const { cacheKeys, store, singleFlight, fetchStatus, invalidation, now } = dependencies;
  const readOrUndefined = (paymentKey: string) => store.read(paymentKey).catch(() => undefined);
  const keyOrUndefined = (request: RoutedRequest) => cacheKeys.of(request).catch(() => undefined);

  async function shareFlight(
    received: RoutedRequest,
    next: Handler<RoutedRequest>,
    mode: 'default' | 'refresh',
  ): Promise<PisResponse> {
    const request = { ...received, signal: undefined }; // goes on if the TPP disconnects: others may wait for the response
    const key = await keyOrUndefined(request);
    if (!key) return fetchUncached(request, next);
    for (;;) {
      const { joined, result } = singleFlight.run(`${key.paymentKey} ${key.variant} ${mode}`, () =>
        mode === 'default' ? lookupOrFetch(request, next, key) : fetchAgain(request, next, key),
      );
      const landed = await result;
      if (!joined) return respond(request, landed);
      if (!landed.shareable) return bypass(request, next);
      if (landed.asOfMs >= request.arrivedAtMs) return respond(request, asShared(landed));
    }
  }

  async function lookupOrFetch(
    request: RoutedRequest,
    next: Handler<RoutedRequest>,
    key: CacheKey,
  ): Promise<CacheResult> {
    const fetch = { request, next, key, reason: 'miss' } as const;
    const asOfMs = performance.now();
    const utilization = performance.eventLoopUtilization();
    let payment = await readOrUndefined(key.paymentKey);
    const hit = payment && freshResponse(payment, key, request);
    if (hit) return { ...hit, verdict: 'hit', asOfMs };
    const readMs = performance.eventLoopUtilization(utilization).idle; // without the time that this process was busy
    if (!payment || readMs > maxReadMs) return fetchStatus(fetch, payment);
    return singleFlight.runAcrossInstances(key.paymentKey, `${key.variant}:${payment.generation}`, {
      async lookup() {
        const lookupAtMs = performance.now();
        payment = await readOrUndefined(key.paymentKey);
        const fresh = payment && freshResponse(payment, key, request);
        return fresh && { ...fresh, verdict: 'shared', asOfMs: lookupAtMs };
      },
      fetch: () => fetchStatus(fetch, payment),
      waitUntilMs: request.deadlineAtMs - minCallMs,
    });
  }

  const fetchAgain = async (request: RoutedRequest, next: Handler<RoutedRequest>, key: CacheKey) =>
    fetchStatus({ request, next, key, reason: 'request' }, await readOrUndefined(key.paymentKey));

  async function bypass(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse> {
    const key = await keyOrUndefined(request);
    if (!key) return fetchUncached(request, next);
    const fetch = { request, next, key, reason: 'bypass' } as const;
    return respond(request, await fetchStatus(fetch, await readOrUndefined(key.paymentKey)));
  }

  /** Without the secret there is no cache key: the response cannot be compared with the cached ones, which may be older. */
  async function fetchUncached(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse> {
    const response = await next(request);
    invalidation.defer(paymentKeyIn(request));
    return respond(request, { response, verdict: 'bypass', shareable: false, asOfMs: 0 });
  }

  function freshResponse(
    payment: CachedPayment,
    { variant }: CacheKey,
    { environment }: RoutedRequest,
    limits = noLimits,
  ) {
    const cached = payment.responses[variant];
    if (!cached || !isFresh(cached, now(), limits)) return undefined;
    return { response: toPisResponse(cached, environment.name), cached, shareable: true };
  }

  function respond({ recordEvent }: RoutedRequest, result: CacheResult): PisResponse {
    recordEvent?.({ what: 'cache', verdict: result.verdict });
    return withCacheHeaders(result, now());
  }

  return {
    cacheOrFetch: (request, next) => shareFlight(request, next, 'default'),
    refetch: (request, next) => shareFlight(request, next, 'refresh'),
    bypass,
    async onlyIfCached(request, limits) {
      const key = await keyOrUndefined(request);
      const payment = key && (await readOrUndefined(key.paymentKey));
      const fresh = payment && freshResponse(payment, key, request, limits);
      return fresh && respond(request, { ...fresh, verdict: 'hit', asOfMs: request.arrivedAtMs });
    },
  };
}

/** The result for a read that joined the flight; a cached response is a hit for every read. */
function asShared(result: CacheResult): CacheResult {
  const cameFromBank = result.verdict === 'miss' || result.verdict === 'request';
  return cameFromBank ? { ...result, verdict: 'shared' } : result;
}
