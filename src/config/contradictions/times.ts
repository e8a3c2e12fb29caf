/** Contradictions between durations, and between numbers of calls and connections. */

import { lanes } from '../../pis/operations.ts';
import { valueAt } from '../object-path.ts';
import type { Config } from '../schema.ts';
import { formatDuration } from '../units.ts';
import type { CrossCheck, CrossCheckError } from './contradiction.ts';

/** One duration that must be below another one, or at most as long. */
interface Order {
  readonly lesser: string;
  readonly must: 'be below' | 'not exceed';
  readonly greater: string;
  readonly why: string;
}

const connecting = {
  lesser: 'deadlines.connect',
  must: 'be below',
  why: 'or connecting uses up the time of the call',
} as const;
const waiting = { must: 'be below', why: 'or a call that waited has no time left' } as const;

const orders: readonly Order[] = [
  { ...connecting, greater: 'deadlines.status' },
  { ...connecting, greater: 'deadlines.read' },
  { ...connecting, greater: 'deadlines.write' },
  { ...waiting, lesser: 'shaping.maxWait.status', greater: 'deadlines.status' },
  { ...waiting, lesser: 'shaping.maxWait.read', greater: 'deadlines.read' },
  { ...waiting, lesser: 'shaping.maxWait.write', greater: 'deadlines.write' },
  {
    lesser: 'statusCache.pendingTtl',
    must: 'not exceed',
    greater: 'statusCache.pendingTtlMax',
    why: 'because it grows towards that',
  },
  {
    lesser: 'idempotency.wait',
    must: 'be below',
    greater: 'deadlines.write',
    why: 'or a repeat waits longer than the first one may take',
  },
  {
    lesser: 'deadlines.write',
    must: 'not exceed',
    greater: 'idempotency.window',
    why: 'or an answer is forgotten before a repeat can come',
  },
  {
    lesser: 'idempotency.window',
    must: 'not exceed',
    greater: 'payments.rememberFor',
    why: 'or a repeat finds its payment forgotten',
  },
  {
    lesser: 'upstream.writeSocketIdle',
    must: 'not exceed',
    greater: 'upstream.idle',
    why: 'when the connection is closed anyway',
  },
];

export const durationsDisagree: CrossCheck = (config) =>
  orders.flatMap((order) => disagreement(config, order, order.lesser));

export const overridesDisagree: CrossCheck = (config) =>
  config.environments.all.flatMap(({ name, shaping }) =>
    lanes
      .filter((lane) => shaping.maxWait[lane] !== config.shaping.maxWait[lane])
      .flatMap((lane) => {
        const order = { ...waiting, greater: `deadlines.${lane}` };
        const asGlobal = { ...config, shaping };
        const lesser = `environments.${name}.shaping.maxWait.${lane}`;
        return disagreement(asGlobal, { ...order, lesser: `shaping.maxWait.${lane}` }, lesser);
      }),
  );

export const socketsShort: CrossCheck = ({ shaping, environments, upstream }) =>
  [
    { path: ['shaping', 'maxConcurrent'], value: shaping.maxConcurrent },
    ...environments.all
      .filter((environment) => environment.shaping.maxConcurrent !== shaping.maxConcurrent)
      .map((environment) => ({
        path: ['environments', environment.name, 'shaping', 'maxConcurrent'],
        value: environment.shaping.maxConcurrent,
      })),
  ]
    .filter(({ value }) => value > upstream.maxSockets)
    .map(({ path, value }) => ({
      path,
      against: [['upstream', 'maxSockets']],
      message: `${value} must not exceed upstream.maxSockets, which is ${upstream.maxSockets}, or calls wait unseen for a connection`,
    }));

function disagreement(config: Config, order: Order, toldAt: string): readonly CrossCheckError[] {
  const [lesser, greater] = [at(config, order.lesser), at(config, order.greater)];
  if (lesser < greater || (lesser === greater && order.must === 'not exceed')) return [];
  const limit = `${order.greater}, which is ${formatDuration(greater)}`;
  return [
    {
      path: toldAt.split('.'),
      against: [order.greater.split('.')],
      message: `${formatDuration(lesser)} must ${order.must} ${limit}, ${order.why}`,
    },
  ];
}

const at = (config: Config, path: string) => Number(valueAt(config, path.split('.')));
