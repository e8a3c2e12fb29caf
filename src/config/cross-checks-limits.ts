/** Cross-checks of durations, and of the numbers of calls and connections. */

import { lanes } from '../pis/operations.ts';
import type { ConfigError } from './config-errors.ts';
import type { CrossCheck } from './cross-checks.ts';
import { valueAt } from './object-path.ts';
import type { Config } from './schema.ts';
import { formatDuration } from './units.ts';

export const limitCrossChecks: readonly CrossCheck[] = [
  durationsOutOfOrder,
  overriddenWaitsTooLong,
  tooFewSockets,
];

/** A duration that must be shorter than another one, or at most as long. */
interface DurationOrder {
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

const durationOrders: readonly DurationOrder[] = [
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
    why: 'or a repeat waits longer than the first request may take',
  },
  {
    lesser: 'deadlines.write',
    must: 'not exceed',
    greater: 'idempotency.window',
    why: 'or a response is deleted before a repeat can arrive',
  },
  {
    lesser: 'idempotency.window',
    must: 'not exceed',
    greater: 'payments.rememberFor',
    why: 'or the gateway forgets a payment before its repeats',
  },
  {
    lesser: 'upstream.writeSocketIdle',
    must: 'not exceed',
    greater: 'upstream.idle',
    why: 'when the connection is closed anyway',
  },
];

function durationsOutOfOrder(config: Config): readonly ConfigError[] {
  return durationOrders.flatMap((order) => checkOrder(config, order, order.lesser));
}

function overriddenWaitsTooLong(config: Config): readonly ConfigError[] {
  return config.environments.all.flatMap(({ name, shaping }) =>
    lanes
      .filter((lane) => shaping.maxWait[lane] !== config.shaping.maxWait[lane])
      .flatMap((lane) => {
        const order = { ...waiting, lesser: `shaping.maxWait.${lane}`, greater: `deadlines.${lane}` };
        return checkOrder({ ...config, shaping }, order, `environments.${name}.shaping.maxWait.${lane}`);
      }),
  );
}

function tooFewSockets({ shaping, environments, upstream: { maxSockets } }: Config): readonly ConfigError[] {
  const overrides = environments.all
    .filter((environment) => environment.shaping.maxConcurrent !== shaping.maxConcurrent)
    .map(({ name, shaping: { maxConcurrent } }) => {
      return { path: ['environments', name, 'shaping', 'maxConcurrent'], maxConcurrent };
    });
  return [{ path: ['shaping', 'maxConcurrent'], maxConcurrent: shaping.maxConcurrent }, ...overrides]
    .filter(({ maxConcurrent }) => maxConcurrent > maxSockets)
    .map(({ path, maxConcurrent }) => ({
      path,
      related: [['upstream', 'maxSockets']],
      message: `${maxConcurrent} must not exceed upstream.maxSockets, which is ${maxSockets}, or calls wait for a connection outside the queue`,
    }));
}

/** @param reportAt the setting that the error names */
function checkOrder(config: Config, order: DurationOrder, reportAt: string): readonly ConfigError[] {
  const [lesserMs, greaterMs] = [durationAt(config, order.lesser), durationAt(config, order.greater)];
  if (lesserMs < greaterMs || (lesserMs === greaterMs && order.must === 'not exceed')) return [];
  const limit = `${order.greater}, which is ${formatDuration(greaterMs)}`;
  return [
    {
      path: reportAt.split('.'),
      related: [order.greater.split('.')],
      message: `${formatDuration(lesserMs)} must ${order.must} ${limit}, ${order.why}`,
    },
  ];
}

const durationAt = (config: Config, path: string) => Number(valueAt(config, path.split('.')));
