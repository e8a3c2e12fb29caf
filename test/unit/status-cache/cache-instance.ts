/** Instances of a gateway, reduced to their status cache, before a bank that says what the test says. */

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
import type { Field } from '../../kit/fields.ts';
import { configOf, type Sections } from '../../kit/gateway.ts';

/** Who asks for what; one TPP and one payment unless told otherwise. */
export interface ReadOptions {
  readonly tenant?: string;
  readonly payment?: string;
  readonly service?: string;
  readonly headers?: readonly Field[];
  /** How long the call may take from now on, in milliseconds. */
  readonly withinMs?: number;
}

export interface CacheInstance {
  /** Sends a request through the stage, as the line does. */
  send(request: RoutedRequest): Promise<PisResponse>;
  /** How often a read was answered in each way. */
  readonly counts: ReadonlyMap<string, number>;
  readonly purge: ReturnType<typeof createStatusCache>['purge'];
  /** One beat of the gateway's heart. */
  runMaintenance(): Promise<void>;
}

const environments = { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } };
const configs = new Map<string, Config>();

/** Each configuration is read once: random histories make thousands of instances. */
function configWith(sections: Sections): Config {
  const name = JSON.stringify(sections);
  const config = configs.get(name) ?? configOf({ environments, ...sections });
  configs.set(name, config);
  return config;
}

/** The machine's clock, one for all: clocks that are a fraction of a millisecond apart see answers from the future. */
const sharedClock = createMonotonicClock();

/** @param now milliseconds since 1970; by default the machine's */
export function createCacheInstance(
  state: State,
  bank: Handler<RoutedRequest>,
  sections: Sections = {},
  now: () => number = sharedClock,
): CacheInstance {
  const config = configWith(sections);
  const counts = new Map<string, number>();
  const lasting = createStatusCacheServices(state, now);
  const cache = createStatusCache(config, lasting);
  const note: RecordEvent = (fact) => {
    if (fact.what === 'cache') counts.set(fact.verdict, (counts.get(fact.verdict) ?? 0) + 1);
  };
  const stage = cacheStatus(cache);
  return {
    send: (request) => stage({ ...request, recordEvent: note }, bank),
    counts,
    purge: cache.purge,
    async runMaintenance() {
      await lasting.cacheKeys.refreshSecret();
      await lasting.invalidation.flush();
    },
  };
}

export const statusRead = (asking: ReadOptions = {}) => requestOf('GET', '/status', asking);
export const cancellation = (asking: ReadOptions = {}) => requestOf('DELETE', '', asking);
export const authorisation = (asking: ReadOptions = {}) => requestOf('POST', '/authorisations', asking);

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

function requestOf(method: Method, tail: string, asking: ReadOptions): RoutedRequest {
  const { tenant = 'shop', payment = 'a-payment', service = 'payments', headers = [] } = asking;
  const found = match(method, `/berlingroup/v1/${service}/sepa-credit-transfers/${payment}${tail}`);
  assert.ok(found.kind === 'operation');
  const arrivedAtMs = performance.now();
  return {
    operation: found.operation,
    client: { name: tenant, tenant, environments: ['sandbox'] },
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    headers,
    body: Buffer.alloc(0),
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + (asking.withinMs ?? 10_000),
    environment: { name: 'sandbox', origin: 'http://127.0.0.1:9', basePath: '', standardVersion: '1.3.11' },
  };
}

/** An answer of the bank in JSON, with whatever stands beside the status. */
export function statusResponse(
  transactionStatus: string,
  headers: readonly Field[] = [],
  more: object = {},
): PisResponse {
  const body = JSON.stringify({ transactionStatus, ...more });
  return bankResponse(200, [['Content-Type', 'application/json'], ...headers], body);
}

/** Any answer of the bank. */
export function bankResponse(status: number, headers: readonly Field[] = [], body = ''): PisResponse {
  return { status, headers, body: Buffer.from(body), servedFrom: 'bank', environment: 'sandbox' };
}

/** The transaction status in an answer. */
export const statusIn = ({ body }: PisResponse): string =>
  String(JSON.parse(body.toString()).transactionStatus);
