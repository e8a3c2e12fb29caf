/** Gateway instances reduced to their status cache, in front of a bank that the test implements. */

import assert from 'node:assert/strict';
import type { Config } from '../../../src/config/schema.ts';
import { createMatcher, type Method } from '../../../src/pis/operations.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import type { RecordEvent } from '../../../src/request/request-events.ts';
import type { Handler } from '../../../src/request/stage.ts';
import type { State } from '../../../src/state/ports.ts';
import { createMonotonicClock } from '../../../src/status-cache/cache-control.ts';
import {
  cacheStatus,
  createStatusCache,
  createStatusCacheServices,
} from '../../../src/status-cache/cache-status.ts';
import type { CachePlaces } from '../../../src/status-cache/cache-store.ts';
import { environmentOf } from '../../kit/environment.ts';
import type { Field } from '../../kit/fields.ts';
import { configOf, type Sections } from '../../kit/gateway.ts';

export interface RequestOptions {
  readonly tenant?: string;
  readonly payment?: string;
  readonly service?: string;
  readonly headers?: readonly Field[];
  /** Milliseconds until the deadline. */
  readonly withinMs?: number;
}

export interface CacheInstance {
  /** Sends a request through the stage. */
  send(request: RoutedRequest): Promise<PisResponse>;
  /** Number of status reads by cache verdict. */
  readonly counts: ReadonlyMap<string, number>;
  readonly purge: ReturnType<typeof createStatusCache>['purge'];
  readonly statuses: ReturnType<typeof createStatusCache>['statuses'];
  /** Runs the cache's part of the gateway's periodic maintenance once. */
  runMaintenance(): Promise<void>;
}

const environments = { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } };
const configs = new Map<string, Config>();

/** Loads each configuration only once: random histories create thousands of instances. */
function configWith(sections: Sections): Config {
  const key = JSON.stringify(sections);
  const config = configs.get(key) ?? configOf({ environments, ...sections });
  configs.set(key, config);
  return config;
}

/** One clock for all instances: with clocks a fraction of a millisecond apart, responses come from the future. */
const sharedClock = createMonotonicClock();

/**
 * @param now milliseconds since 1970; by default the machine's time
 * @param readAffinity if present, payments are prefetched as in stage 4, and the stage runs when the affinity is known
 */
export function createCacheInstance(
  state: State & Pick<CachePlaces, 'own' | 'isUnshared'>,
  bank: Handler<RoutedRequest>,
  sections: Sections = {},
  now: () => number = sharedClock,
  readAffinity?: () => Promise<void>,
): CacheInstance {
  const config = configWith(sections);
  const counts = new Map<string, number>();
  const services = createStatusCacheServices(state, now);
  const cache = createStatusCache(config, services);
  const note: RecordEvent = (fact) => {
    if (fact.what === 'cache') counts.set(fact.verdict, (counts.get(fact.verdict) ?? 0) + 1);
  };
  const stage = cacheStatus(cache);
  return {
    async send(received) {
      const request = { ...received, recordEvent: note };
      try {
        if (!readAffinity) return await stage(request, bank);
        const prefetched = cache.prefetch(request, 'sandbox');
        await readAffinity();
        return await stage(Object.assign(request, { prefetched }), bank);
      } finally {
        Object.freeze(request); // the context ends with its response: what writes to it later fails
      }
    },
    counts,
    purge: cache.purge,
    statuses: cache.statuses,
    async runMaintenance() {
      await services.cacheKeys.refreshSecret();
      await services.invalidation.flush();
    },
  };
}

export const statusRead = (options: RequestOptions = {}) => requestOf('GET', '/status', options);
export const cancellation = (options: RequestOptions = {}) => requestOf('DELETE', '', options);
export const paymentRead = (options: RequestOptions = {}) => requestOf('GET', '', options);
export const authorisationRead = (options: RequestOptions = {}) =>
  requestOf('GET', '/authorisations/an-authorisation', options);
export const authorisation = (options: RequestOptions = {}) => requestOf('POST', '/authorisations', options);

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

function requestOf(method: Method, tail: string, options: RequestOptions): RoutedRequest {
  const { tenant = 'shop', payment = 'a-payment', service = 'payments', headers = [] } = options;
  const matched = match(method, `/berlingroup/v1/${service}/sepa-credit-transfers/${payment}${tail}`);
  assert.ok(matched.kind === 'operation');
  const arrivedAtMs = performance.now();
  return {
    operation: matched.operation,
    client: { name: tenant, tenant, environments: ['sandbox'] },
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    headers,
    body: Buffer.alloc(0),
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + (options.withinMs ?? 10_000),
    environment: environmentOf({ origin: 'http://127.0.0.1:9', callerHeaders: ['x-bic'] }),
  };
}

/** A status response of the bank in JSON. @param more further members of the body */
export function bankStatusResponse(
  transactionStatus: string,
  headers: readonly Field[] = [],
  more: object = {},
): PisResponse {
  const body = JSON.stringify({ transactionStatus, ...more });
  return bankResponse(200, [['Content-Type', 'application/json'], ...headers], body);
}

export function bankResponse(status: number, headers: readonly Field[] = [], body = ''): PisResponse {
  return { status, headers, body: Buffer.from(body), servedFrom: 'bank', environment: 'sandbox' };
}

export const statusIn = ({ body }: PisResponse): string =>
  String(JSON.parse(body.toString()).transactionStatus);
