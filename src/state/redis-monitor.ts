/**
 * Checks a few times per second whether Redis is reachable and keeps what is written to it. The checks also reveal a frozen
 * server on a connection that nobody uses.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { reasonOf, withTimeout } from './redis-batch.ts';

const checkEveryMs = 250;
/** Longer than the timeout of a command, because one slow answer is not an outage. Milliseconds. */
const checkTimeoutMs = 250;
/** The number of hash slots of a cluster. */
const slotCount = 16384;

export type RedisHealth =
  | { readonly kind: 'healthy' }
  /** `unsafe`: reachable, but may lose data, or its configuration cannot be read. */
  | { readonly kind: 'unreachable' | 'unsafe'; readonly problem: string };

/** Where the monitor reads the health from. */
export interface HealthSources {
  /** `INFO memory` of every node that stores values, and `CLUSTER INFO` in a cluster; empty if no node is known. */
  reports(): readonly Promise<string>[];
  /** Whether the client accepts commands: the nodes of a cluster answer before it does. */
  acceptsCommands(): boolean;
}

export interface RedisMonitor {
  /** Starts the checks, and returns when Redis answers or `ms` have passed. */
  start(ms: number): Promise<RedisHealth>;
  /** What the last check found wrong; `undefined` before the first check. */
  problem(): string | undefined;
  /** Checks again without waiting for the next interval. */
  checkNow(): void;
  /** Records an error of the connection: it says more than the timeout that follows. */
  onError(error: unknown): void;
  stop(): void;
}

/** @param onChange called when a problem begins, ends or changes its kind */
export function createRedisMonitor(
  sources: HealthSources,
  onChange: (problem: string | undefined) => void,
): RedisMonitor {
  const pause = createPause();
  let health: RedisHealth = { kind: 'healthy' };
  let connectionError: string | undefined;
  let isStopped = false;

  const check = async () => {
    const found = await checkHealth(sources, () => connectionError);
    if (found.kind === 'healthy') connectionError = undefined;
    return found;
  };
  const update = (found: RedisHealth) => {
    const isChanged = found.kind !== health.kind;
    health = found;
    if (isChanged && !isStopped) onChange(problemOf(found));
  };
  const run = async () => {
    while (!isStopped) {
      update(await check());
      await pause.wait(checkEveryMs);
    }
  };

  return {
    async start(ms) {
      const deadlineMs = performance.now() + ms;
      let found = await check();
      while (found.kind === 'unreachable' && performance.now() < deadlineMs) {
        await delay(20);
        found = await check();
      }
      if (found.kind === 'unsafe') return found; // `open` fails: no checks follow
      update(found);
      void run();
      return found;
    },
    problem: () => problemOf(health),
    checkNow: pause.end,
    onError(error) {
      connectionError = reasonOf(error);
    },
    stop() {
      isStopped = true;
      pause.end();
    },
  };
}

const problemOf = (health: RedisHealth) => (health.kind === 'healthy' ? undefined : health.problem);

/** A pause that can be ended early. */
function createPause() {
  let end = () => {};
  return {
    end: () => end(),
    wait: (ms: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        end = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}

/** @param connectionError the last error of the connection since Redis was healthy */
export async function checkHealth(
  { reports, acceptsCommands }: HealthSources,
  connectionError: () => string | undefined,
): Promise<RedisHealth> {
  try {
    const answers = await withTimeout(checkTimeoutMs, Promise.all(reports()));
    const unhealthy = answers.map(parseReport).find(({ kind }) => kind !== 'healthy');
    if (unhealthy) return unhealthy;
    if (answers.length === 0 || !acceptsCommands()) throw new Error('not connected');
    return { kind: 'healthy' };
  } catch (error) {
    const reason = reasonOf(error);
    if (/^NOPERM /.test(reason)) return infoForbidden;
    return { kind: 'unreachable', problem: `Redis cannot be reached (${connectionError() ?? reason}).` };
  }
}

/** Reads lines of `name:value`. */
function parseReport(report: string): RedisHealth {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(report)?.[1];
  const policy = field('maxmemory_policy') ?? 'noeviction';
  if (Number(field('maxmemory') ?? 0) > 0 && policy !== 'noeviction') return evicting(policy);

  const assigned = Number(field('cluster_slots_assigned') ?? slotCount);
  const unserved = slotCount - assigned + Number(field('cluster_slots_fail') ?? 0);
  const isServed = unserved === 0 && (field('cluster_state') ?? 'ok') === 'ok';
  return isServed ? { kind: 'healthy' } : incomplete(unserved);
}

const evicting = (policy: string): RedisHealth => ({
  kind: 'unsafe',
  problem:
    `Redis may evict what the gateway must remember (maxmemory-policy is ${policy}): ` +
    'set maxmemory-policy to noeviction, or maxmemory to 0.',
});

const incomplete = (unserved: number): RedisHealth => ({
  kind: 'unreachable',
  problem: `The cluster of Redis does not serve all keys: ${unserved} of its ${slotCount} slots have no node that works.`,
});

const infoForbidden: RedisHealth = {
  kind: 'unsafe',
  problem: 'The user of Redis may not run INFO, so nobody knows whether Redis evicts: allow it (+info).',
};
