/** The scenarios: request, load, contenders and the baselines of the ratios. */

import type { Contender } from './contenders/contender.ts';
import { contendersFor } from './contenders/table.ts';
import type { Comparison } from './format-table.ts';
import type { BenchRequest, LoadProfile } from './measure/load.ts';
import type { Upstream } from './testbed.ts';
import { initiation, paymentRequest, statusRequest } from './traffic.ts';

export interface Scenario {
  readonly name: keyof typeof contendersFor;
  readonly title: string;
  /** @param paymentId id of a payment that was initiated through the contender, if it forwards */
  readonly request: (paymentId: string) => BenchRequest;
  /** The expected status of the response. */
  readonly status: number;
  readonly contenders: readonly Contender[];
  /** Contenders that the ratios refer to. */
  readonly baselines: readonly string[];
  readonly comparison?: Comparison;
  /** Baselines of which the ratio of p99 is shown. */
  readonly p99Baselines?: readonly string[];
  /** Default: plain. */
  readonly upstream?: Upstream;
  /** The load profiles, one after the other; default: those of the command line. */
  readonly loadProfiles?: readonly LoadProfile[];
}

const read = { title: 'GET of a payment, never cached, 600 B', request: paymentRequest, status: 200 };
const post = { title: 'POST of a payment, 1 KB', request: () => initiation, status: 201 };
const cached = { title: 'GET of a status, from memory, 600 B', request: statusRequest, status: 200 };
const proxyBaselines = ['hand-written proxy', '@fastify/http-proxy', 'Express + http-proxy-middleware'];
const toProxies = {
  baselines: proxyBaselines,
  p99Baselines: ['Express + http-proxy-middleware'],
} as const;
const overTls = <Request extends { readonly title: string }>(request: Request) => ({
  ...request,
  title: `${request.title}, bank over TLS with a client certificate`,
  upstream: 'tls' as const,
});
const singleConnection: LoadProfile = { kind: 'closed', connections: 1 };
const latencyOptions = { loadProfiles: [singleConnection], comparison: 'added' } as const;

export const scenarios: readonly Scenario[] = [
  { ...read, ...toProxies, name: 'get', contenders: contendersFor.get },
  { ...post, ...toProxies, name: 'post', contenders: contendersFor.post },
  {
    ...overTls(read),
    ...toProxies,
    name: 'get-tls',
    contenders: contendersFor['get-tls'],
  },
  {
    ...overTls(post),
    ...toProxies,
    name: 'post-tls',
    contenders: contendersFor['post-tls'],
  },
  {
    ...cached,
    name: 'cached',
    contenders: contendersFor.cached,
    baselines: ['bare node:http', 'bare Express', 'Varnish'],
  },
  {
    ...cached,
    name: 'cached-redis',
    title: 'GET of a status, from Redis, 600 B',
    contenders: contendersFor['cached-redis'],
    baselines: ['Express + ioredis'],
  },
  {
    ...read,
    name: 'latency',
    contenders: contendersFor.latency,
    baselines: ['no gateway'],
    ...latencyOptions,
  },
  {
    ...cached,
    name: 'latency-cached',
    contenders: contendersFor['latency-cached'],
    baselines: ['no gateway'],
    ...latencyOptions,
  },
  {
    ...read,
    name: 'steady',
    contenders: contendersFor.steady,
    baselines: ['hand-written proxy'],
    loadProfiles: [{ kind: 'open', perSecond: 1_000 }],
    comparison: 'added',
  },
];
