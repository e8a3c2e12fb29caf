/**
 * STAGE 5. Answers status reads from the cache, invalidates the payment around writes that may change its status, and
 * records the status that other reads return.
 *
 * While the bank fails, the last known status is served, marked as stale: a TPP that polls can use an old status better
 * than an error. While Redis cannot be reached, each of several instances caches final statuses, and other reads go to the bank.
 */

import { performance } from 'node:perf_hooks';
import type { Config } from '../config/schema.ts';
import { GatewayError } from '../request/errors.ts';
import { currentTenantId, type Identities, namesAsIdentities } from '../request/identities.ts';
import type { PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { StatusEvents, Statuses } from '../request/statuses.ts';
import { createChangeWaiter } from '../state/change-waiter.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type CacheMode,
  type CacheUse,
  type Clock,
  cacheUseOf,
  createMonotonicClock,
  isCacheAllowed,
  isSelectedFor,
  limitedUse,
  noLimits,
} from './cache-control.ts';
import { type CacheFields, cacheFieldsIn } from './cache-fields.ts';
import { asShared, type CacheResult, withCacheHeaders } from './cache-headers.ts';
import { type CacheKey, type CacheKeys, createCacheKeys, paymentKeyIn, paymentKeyOf } from './cache-key.ts';
import {
  type CachePlaces,
  type CacheStore,
  createCacheStore,
  createInvalidateOwn,
  createInvalidatePayment,
  createInvalidation,
  type Invalidation,
  type StoredPayment,
} from './cache-store.ts';
import { type CachedResponse, freshResponse, toPisResponse } from './cached-payment.ts';
import { createFetchStatus, type FetchStatus, type StatusFetch } from './fetch-status.ts';
import { createObservePayment } from './observe-payment.ts';
import { createReportUnreadable, type ReportUnreadable } from './report-unreadable.ts';
import { createSingleFlight, type SingleFlight } from './single-flight.ts';
import { createStatusEvents } from './status-events.ts';
import { createStatuses } from './statuses.ts';

/** The status cache of one configuration. */
export interface StatusCache {
  readonly enabled: boolean;
  /** For those that wait for another status. */
  readonly statuses: Statuses;
  /** Answers a status read. */
  readonly readStatus: Stage<RoutedRequest>;
  /** Starts reading the payment of a status read, before its environment is known: `prefetchStatus` of stage 4. */
  readonly prefetch: (request: PisRequest, environmentId: string) => object | undefined;
  readonly invalidation: Invalidation;
  readonly events: StatusEvents;
  /** Records the status that another read shows. */
  readonly observePayment: Stage<RoutedRequest>;
}

export function cacheStatus(cache: StatusCache): Stage<RoutedRequest> {
  if (!cache.enabled) return (request, next) => next(request);
  return (request, next) => {
    const { changesStatus, showsStatus, readsStatus } = request.operation;
    if (readsStatus) return cache.readStatus(request, next);
    if (changesStatus) return invalidateAround(cache, request, next);
    return showsStatus === 'none' ? next(request) : cache.observePayment(request, next);
  };
}

/** The part of the cache that outlives a reload of the configuration. */
export interface StatusCacheServices {
  readonly places: CachePlaces;
  readonly cacheKeys: CacheKeys;
  readonly singleFlight: SingleFlight;
  readonly invalidation: Invalidation;
  readonly events: StatusEvents;
  readonly reportUnreadable: ReportUnreadable;
  readonly now: Clock;
}

export function createStatusCacheServices(
  { pubsub, ...places }: CachePlaces & Pick<State, 'pubsub'>,
  now: Clock = createMonotonicClock(),
  log: Log = () => {},
): StatusCacheServices {
  const { keyValues } = places;
  const cacheKeys = createCacheKeys({ keyValues, pubsub });
  const changes = createChangeWaiter(pubsub, 'status');
  const invalidation = createInvalidation({
    invalidatePayment: createInvalidatePayment(keyValues, changes),
    invalidateOwn: createInvalidateOwn(places.own),
    invalidateAll: cacheKeys.rotateSecret,
  });
  const singleFlight = createSingleFlight(keyValues, changes);
  return {
    places,
    cacheKeys,
    singleFlight,
    invalidation,
    events: createStatusEvents(pubsub),
    reportUnreadable: createReportUnreadable(log),
    now,
  };
}

/**
 * Invalidates one payment, or all payments if none is named: in one environment, or in every environment if none is named.
 *
 * @throws GatewayError STATE_UNAVAILABLE
 */
export type Purge = (selection: {
  readonly environment?: string | undefined;
  readonly payment?: string | undefined;
}) => Promise<void>;

export function createStatusCache(
  { statusCache: settings, environments }: Config,
  { places, cacheKeys, singleFlight, invalidation, events, reportUnreadable, now }: StatusCacheServices,
  identities: { current(): Identities | undefined } = { current: () => namesAsIdentities },
  prefetchPermit: PrefetchStatusPermit = () => {},
): StatusCache & { readonly purge: Purge } {
  const { finalTtl, settledTtl, pendingTtlMax, staleTtl } = settings;
  const storedForMs = Math.max(finalTtl, settledTtl, pendingTtlMax, staleTtl);
  const store = createCacheStore(places, storedForMs, invalidation);
  const { tagOf } = cacheKeys;
  const observing = { store, invalidation, events, reportUnreadable, now };
  const fetchStatus = createFetchStatus({ ...observing, tagOf, settings });

  return {
    enabled: settings.enabled,
    statuses: createStatuses(settings.enabled, store, invalidation),
    readStatus: createStatusReader({
      cacheKeys,
      store,
      singleFlight,
      fetchStatus,
      invalidation,
      prefetchPermit,
      now,
    }),
    prefetch({ operation: { readsStatus, paymentId } }, environmentId) {
      if (!settings.enabled || !readsStatus || paymentId === undefined) return undefined;
      return new PrefetchedPayment(store, paymentKeyOf(environmentId, paymentId));
    },
    invalidation,
    events,
    observePayment: createObservePayment(observing),
    async purge({ environment, payment }) {
      const { environmentIdOf } = identities.current() ?? namesAsIdentities;
      if (payment === undefined)
        return environment === undefined
          ? cacheKeys.rotateSecret()
          : cacheKeys.rotateSecretOf(environmentIdOf(environment));
      const names = environment === undefined ? environments.all.map(({ name }) => name) : [environment];
      const keys = names.map((name) => paymentKeyOf(environmentIdOf(name), payment));
      await Promise.all(keys.map((key) => invalidation.invalidate(key)));
    },
  };
}

/**
 * Invalidates before the bank may act and after it has: no older status can be stored in between. No write waits for Redis: what it does
 * not accept is invalidated later.
 */
async function invalidateAround(
  { invalidation, events }: StatusCache,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const paymentKey = paymentKeyIn(request);
  await invalidation.invalidateOrDefer(paymentKey);
  try {
    return await next(request);
  } finally {
    await invalidation.invalidateOrDefer(paymentKey);
    events.publish({ what: 'written', paymentKey, tenantId: currentTenantId(request) });
  }
}

function notCached(): GatewayError {
  return new GatewayError(
    'NOT_CACHED',
    'No fresh status of this payment is cached; repeat the request without only-if-cached.',
  );
}

/** A cached payment whose read was started by stage 4. */
class PrefetchedPayment {
  readonly paymentKey: string;
  readonly startedAt = performance.eventLoopUtilization();
  /** `undefined` if the shared state is unavailable. */
  readonly payment: Promise<StoredPayment | undefined>;

  constructor(store: Pick<CacheStore, 'tryRead'>, paymentKey: string) {
    this.paymentKey = paymentKey;
    this.payment = store.tryRead(paymentKey);
  }
}

interface StatusReaderDependencies {
  readonly cacheKeys: CacheKeys;
  readonly store: Pick<CacheStore, 'tryRead'>;
  readonly singleFlight: SingleFlight;
  readonly fetchStatus: FetchStatus;
  readonly invalidation: Pick<Invalidation, 'defer' | 'isPending'>;
  readonly prefetchPermit: PrefetchStatusPermit;
  readonly now: Clock;
}

/** Requests a permit as `request.permit`, for a request that is about to call this environment. */
type PrefetchStatusPermit = (request: RoutedRequest, environment: string) => void;

/** The time that the wait for another instance leaves for a call of our own before the deadline. Milliseconds. */
const minCallMs = 1_000;
/** After a slower read of the shared state, no lease is requested: the TPP has waited enough. Milliseconds. */
const maxReadMs = 15;

/** The stage rejects with the error of `next`, unless a stale status can be served. */
function createStatusReader(dependencies: StatusReaderDependencies): Stage<RoutedRequest> {
  const { cacheKeys, store, singleFlight, fetchStatus, invalidation, prefetchPermit, now } = dependencies;

  function readStatus(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse> {
    const fields = cacheFieldsIn(request.headers, request.environment.callerHeaders);
    const { maxCachedAgeMs } = request;
    const use = maxCachedAgeMs === undefined ? cacheUseOf(request, fields) : limitedUse(maxCachedAgeMs);
    if (use.mode === 'unsatisfiable') return Promise.reject(notCached());
    const key = cacheKeys.of(request, fields);
    return key ? serve(use, key, request, next) : serveWithSecret(use, fields, request, next);
  }

  /** For the first request: reads the secret of the installation. */
  async function serveWithSecret(
    use: CacheUse,
    fields: CacheFields,
    request: RoutedRequest,
    next: Handler<RoutedRequest>,
  ): Promise<PisResponse> {
    await cacheKeys.refreshSecret().catch(() => {});
    const key = cacheKeys.of(request, fields);
    if (key) return serve(use, key, request, next);
    if (use.mode === 'only-if-cached') throw notCached();
    return fetchUncached(request, next);
  }

  function serve(
    use: CacheUse,
    key: CacheKey,
    request: RoutedRequest,
    next: Handler<RoutedRequest>,
  ): Promise<PisResponse> {
    const { prefetched } = request;
    const isPrefetched =
      prefetched instanceof PrefetchedPayment &&
      prefetched.paymentKey === key.paymentKey &&
      !invalidation.isPending(key.paymentKey);
    const startedAt = isPrefetched ? prefetched.startedAt : performance.eventLoopUtilization();
    const read = isPrefetched ? prefetched.payment : store.tryRead(key.paymentKey);
    return read.then((payment) => {
      const cached = payment && freshResponse(payment, key.variant, request, now(), use.limits);
      if (cached && isCacheAllowed[use.mode]) return respondFromCache(request, cached);
      const readMs = performance.eventLoopUtilization(startedAt).idle; // without the time that this process was busy
      return fetchFor(use.mode, { request, next, key }, payment, readMs);
    });
  }

  function fetchFor(
    mode: CacheMode,
    read: Pick<StatusFetch, 'request' | 'next' | 'key'>,
    payment: StoredPayment | undefined,
    readMs: number,
  ): Promise<PisResponse> {
    switch (mode) {
      case 'default':
        return shareFlight(read, 'miss', payment, readMs);
      case 'limited':
      case 'refresh':
        return shareFlight(read, 'request', payment, readMs);
      case 'bypass':
        return bypass(read, payment);
      case 'only-if-cached':
      case 'unsatisfiable':
        return Promise.reject(notCached());
    }
  }

  /**
   * Shares one call to the bank among equal reads at the same time.
   *
   * @param payment what was read of it after the request had arrived; `undefined` if the shared state is unavailable
   * @param readMs how long that read took
   */
  async function shareFlight(
    { request, next, key }: Pick<StatusFetch, 'request' | 'next' | 'key'>,
    reason: 'miss' | 'request',
    payment: StoredPayment | undefined,
    readMs: number,
  ): Promise<PisResponse> {
    request.signal = undefined; // the call continues if the TPP disconnects: other reads may wait for its response
    const fetch = { request, next, key, reason };
    for (let before = payment; ; before = await store.tryRead(key.paymentKey)) {
      const cached =
        reason === 'miss' && before && freshResponse(before, key.variant, request, now(), noLimits);
      if (cached) return respondFromCache(request, cached);
      const lead = () =>
        reason === 'miss' && before && !before.isOwn && readMs <= maxReadMs
          ? fetchAcrossInstances(fetch, before)
          : fetchWhenPermitted(fetch, before);
      const name = `${key.paymentKey} ${key.variant} ${reason}${flightSuffix(request)}`;
      const { joined, result } = singleFlight.run(name, request.deadlineAtMs, lead);
      const landed = await result;
      if (!joined) return respond(request, landed);
      if (!landed.shareable || !isSelectedFor(request, landed.response))
        return bypass(fetch, await store.tryRead(key.paymentKey));
      if (landed.asOfMs >= request.arrivedAtMs) return respond(request, asShared(landed));
    }
  }

  /** In one instance only; the others wait for its result. */
  function fetchAcrossInstances(fetch: StatusFetch, before: StoredPayment): Promise<CacheResult> {
    const { request, key } = fetch;
    const { paymentKey, variant } = key;
    let payment: StoredPayment | undefined = before;
    if (!request.beforeCall) prefetchPermit(request, request.environment.name); // shares the round trip of the lease
    const name = `${variant}:${before.generation}${flightSuffix(request)}`;
    return singleFlight.runAcrossInstances<CacheResult>(paymentKey, name, {
      async lookup() {
        const asOfMs = performance.now();
        payment = await store.tryRead(paymentKey);
        return payment && storedResult(fetch, payment, asOfMs);
      },
      fetch: () => fetchWhenPermitted(fetch, payment),
      onWait: () => request.permit?.release(),
      waitUntilMs: request.deadlineAtMs - minCallMs,
    });
  }

  /** A response that somebody else has stored since the read began. */
  function storedResult({ request, key }: StatusFetch, payment: StoredPayment, asOfMs: number) {
    const cached = freshResponse(payment, key.variant, request, now(), noLimits);
    if (!cached) return undefined;
    const response = toPisResponse(cached, request.environment.name);
    return { response, cached, verdict: 'shared', shareable: true, asOfMs } as const;
  }

  /** A read of the gateway itself may wait for a permit first. Then the payment may have changed. */
  async function fetchWhenPermitted(
    fetch: StatusFetch,
    before: StoredPayment | undefined,
  ): Promise<CacheResult> {
    const { beforeCall } = fetch.request;
    if (!beforeCall) return fetchStatus(fetch, before);
    await beforeCall();
    const asOfMs = performance.now();
    const payment = await store.tryRead(fetch.key.paymentKey);
    const stored = fetch.reason === 'miss' && payment && storedResult(fetch, payment, asOfMs);
    return stored || fetchStatus(fetch, payment);
  }

  async function bypass(
    read: Pick<StatusFetch, 'request' | 'next' | 'key'>,
    payment: StoredPayment | undefined,
  ): Promise<PisResponse> {
    return respond(read.request, await fetchWhenPermitted({ ...read, reason: 'bypass' }, payment));
  }

  /** Without the secret there is no cache key: the response cannot be compared with the cached ones, which may be older. */
  async function fetchUncached(request: RoutedRequest, next: Handler<RoutedRequest>): Promise<PisResponse> {
    const response = await next(request);
    invalidation.defer(paymentKeyIn(request));
    return respond(request, { response, verdict: 'bypass' });
  }

  const respondFromCache = (request: RoutedRequest, cached: CachedResponse) =>
    respond(request, { response: toPisResponse(cached, request.environment.name), verdict: 'hit', cached });

  function respond(
    { recordEvent }: RoutedRequest,
    result: Pick<CacheResult, 'response' | 'verdict' | 'cached'>,
  ): PisResponse {
    recordEvent?.({ what: 'cache', verdict: result.verdict });
    return withCacheHeaders(result, now());
  }

  return readStatus;
}

/** A read of a TPP never waits for one that waits for its permit. */
const flightSuffix = ({ beforeCall }: RoutedRequest) => (beforeCall ? ' later' : '');
