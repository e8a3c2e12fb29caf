/**
 * Checks a few times per second whether Redis is reachable and can be used. The checks also reveal a frozen server on a connection
 * that nobody uses.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { reasonOf, withTimeout } from './redis-batch.ts';

const checkEveryMs = 250;
/** The shortest time for the answer to a check. Milliseconds. */
const minCheckTimeoutMs = 250;
/** Above this part of `maxmemory`, operators are warned. */
const maxUsedPart = 0.8;
/** The warning while `isNearlyFull`. */
export const nearlyFull = `Redis uses more than ${maxUsedPart * 100} % of maxmemory: a full Redis refuses all writes. Raise maxmemory.`;
/** The number of hash slots of a cluster. */
const slotCount = 16384;

export type RedisHealth =
  /** `isNearlyFull`: see `maxUsedPart`. */
  | { readonly kind: 'healthy'; readonly isNearlyFull: boolean }
  /** `unusable`: reachable, but it may evict keys, or it is too old, or the user may not run INFO. */
  | { readonly kind: 'unreachable' | 'unusable'; readonly problem: string };

/** Where the monitor reads the health from. */
export interface HealthSources {
  /** `INFO` of every node that stores values, and `CLUSTER INFO` in a cluster; empty if no node is known. */
  reports(): readonly Promise<string>[];
  /** Whether the client accepts commands: the nodes of a cluster answer before it does. */
  acceptsCommands(): boolean;
}

export interface RedisMonitor {
  /** Starts the checks, and returns when Redis answers or `ms` have passed. */
  start(ms: number): Promise<RedisHealth>;
  /** What the last check found wrong; `undefined` before the first check. */
  problem(): string | undefined;
  /** Whether a node uses more than 80 % of its `maxmemory`. */
  isNearlyFull(): boolean;
  /** Checks again without waiting for the next interval. */
  checkNow(): void;
  /** Records an error of the connection: it says more than the timeout that follows. */
  onError(error: unknown): void;
  stop(): void;
}

/**
 * @param onChange  called when a problem begins, ends or changes its kind
 * @param timeoutMs of a command; a check waits for longer, because one slow answer is not an outage
 */
export function createRedisMonitor(
  sources: HealthSources,
  onChange: (problem: string | undefined) => void,
  timeoutMs: number,
): RedisMonitor {
  const checkTimeoutMs = Math.max(minCheckTimeoutMs, 2 * timeoutMs);
  const pause = createPause();
  let health: RedisHealth = { kind: 'healthy', isNearlyFull: false };
  let connectionError: string | undefined;
  let isStopped = false;

  const check = async () => {
    const found = await checkHealth(sources, () => connectionError, checkTimeoutMs);
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
      if (found.kind === 'unusable') return found; // `open` fails: no checks follow
      update(found);
      void run();
      return found;
    },
    problem: () => problemOf(health),
    isNearlyFull: () => health.kind === 'healthy' && health.isNearlyFull,
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
  checkTimeoutMs = minCheckTimeoutMs,
): Promise<RedisHealth> {
  try {
    const answers = await withTimeout(checkTimeoutMs, Promise.all(reports()));
    const [unhealthy] = answers.flatMap((answer) => problemIn(answer) ?? []);
    if (unhealthy) return unhealthy;
    if (answers.length === 0 || !acceptsCommands()) throw new Error('not connected');
    return { kind: 'healthy', isNearlyFull: answers.some(isNodeNearlyFull) };
  } catch (error) {
    const reason = reasonOf(error);
    if (/^NOPERM /.test(reason)) return infoForbidden;
    return { kind: 'unreachable', problem: `Redis unavailable (${connectionError() ?? reason}).` };
  }
}

function problemIn(report: string): RedisHealth | undefined {
  const policy = infoField(report, 'maxmemory_policy') ?? 'noeviction';
  if (Number(infoField(report, 'maxmemory') ?? 0) > 0 && policy !== 'noeviction') return evicting(policy);
  const version = infoField(report, 'redis_version') ?? '';
  if (Number.parseInt(version, 10) < oldestVersion.major) return tooOld(version);

  const assigned = Number(infoField(report, 'cluster_slots_assigned') ?? slotCount);
  const unserved = slotCount - assigned + Number(infoField(report, 'cluster_slots_fail') ?? 0);
  const isServed = unserved === 0 && (infoField(report, 'cluster_state') ?? 'ok') === 'ok';
  return isServed ? undefined : incomplete(unserved);
}

function isNodeNearlyFull(info: string): boolean {
  const max = Number(infoField(info, 'maxmemory') ?? 0);
  return max > 0 && Number(infoField(info, 'used_memory') ?? 0) > maxUsedPart * max;
}

/** The value of a field in an answer of INFO or CLUSTER INFO, which are lines of `name:value`; `undefined` if it is missing. */
const infoField = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/**
 * The oldest Redis that executes the script of redis-scripts.ts. It reads the clock (TIME) and then writes; before 5.0,
 * Redis replicated scripts as text and refused such writes. All other commands are older. The client uses RESP2 where HELLO
 * (6.0) is missing.
 */
const oldestVersion = { major: 5, text: '5.0' };

const tooOld = (version: string): RedisHealth => ({
  kind: 'unusable',
  problem: `Redis ${version} is too old for the scripts of the gateway: upgrade to ${oldestVersion.text} or later.`,
});

const evicting = (policy: string): RedisHealth => ({
  kind: 'unusable',
  problem:
    `Redis may evict data that the gateway needs (maxmemory-policy is ${policy}): ` +
    'set maxmemory-policy to noeviction, or maxmemory to 0.',
});

const incomplete = (unserved: number): RedisHealth => ({
  kind: 'unreachable',
  problem: `The Redis Cluster does not serve all keys: ${unserved} of ${slotCount} slots have no working node.`,
});

const infoForbidden: RedisHealth = {
  kind: 'unusable',
  problem:
    'The Redis user lacks the permission for INFO, so the gateway cannot check whether Redis may evict data: grant +info.',
};
