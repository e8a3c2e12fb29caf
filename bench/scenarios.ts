/** What is measured: which request, under which load, of which contenders, beside whom. */

import type { Contender } from './contenders/contender.ts';
import { contendersFor } from './contenders/table.ts';
import type { Pressure, Request } from './measure/load.ts';
import type { Comparison } from './table.ts';
import { initiation, paymentRead, statusRead } from './traffic.ts';

export interface Scenario {
  readonly name: keyof typeof contendersFor;
  readonly title: string;
  /** @param paymentId of a payment that the contender has just made, if it forwards */
  readonly request: (paymentId: string) => Request;
  /** What the answer's status must be. */
  readonly status: number;
  readonly contenders: readonly Contender[];
  /** Contenders that the others are shown as multiples of. */
  readonly beside: readonly string[];
  readonly comparison?: Comparison;
  /** The loads, one after the other; without any, those that were asked for. */
  readonly pressures?: readonly Pressure[];
}

const read = { title: 'GET of a payment, never cached, 600 B', request: paymentRead, status: 200 };
const cached = { title: 'GET of a status, from memory, 600 B', request: statusRead, status: 200 };
const besideProxies = ['hand-written proxy', '@fastify/http-proxy', 'Express + http-proxy-middleware'];
const alone: Pressure = { kind: 'closed', connections: 1 };
const fromAlone = { pressures: [alone], comparison: 'added' } as const;

export const scenarios: readonly Scenario[] = [
  { ...read, name: 'get', contenders: contendersFor.get, beside: besideProxies },
  {
    name: 'post',
    title: 'POST of a payment, 1 KB',
    request: () => initiation,
    status: 201,
    contenders: contendersFor.post,
    beside: besideProxies,
  },
  { ...cached, name: 'cached', contenders: contendersFor.cached, beside: ['bare node:http', 'Varnish'] },
  {
    ...cached,
    name: 'cached-redis',
    title: 'GET of a status, from Redis, 600 B',
    contenders: contendersFor['cached-redis'],
    beside: ['Express + ioredis'],
  },
  { ...read, name: 'latency', contenders: contendersFor.latency, beside: ['no gateway'], ...fromAlone },
  {
    ...cached,
    name: 'latency-cached',
    contenders: contendersFor['latency-cached'],
    beside: ['no gateway'],
    ...fromAlone,
  },
  {
    ...read,
    name: 'steady',
    contenders: contendersFor.steady,
    beside: ['hand-written proxy'],
    pressures: [{ kind: 'open', perSecond: 1_000 }],
    comparison: 'added',
  },
];
