/** Looks at Redis a few times a second. The looks also keep a silent connection honest: a frozen server is noticed. */

import { setTimeout as pass } from 'node:timers/promises';
import { reasonOf, withTimeout } from './redis-batch.ts';

const pauseMs = 250;

/** The watch over one Redis, of whatever kind. */
export interface RedisMonitor {
  /** Begins to look, and comes back when Redis answers or `ms` have passed. */
  start(ms: number): Promise<Health>;
  /** What is wrong, as far as the last look found; nothing before the first. */
  problem(): string | undefined;
  /** Looks again at once: something happened. */
  checkNow(): void;
  /** Takes note of what the connection complains of. */
  onError(error: unknown): void;
  stop(): void;
}

/**
 * A watch that has not begun.
 *
 * @param onChange told whenever trouble begins, ends, or becomes of another kind; all is well at first
 */
export function createRedisMonitor(
  looks: HealthSources,
  onChange: (trouble: string | undefined) => void,
): RedisMonitor {
  const rest = createPause();
  let health: Health = { kind: 'well' };
  let complaint: string | undefined;
  let ended = false;

  const look = async () => {
    const found = await checkHealth(looks, () => complaint);
    if (found.kind === 'well') complaint = undefined;
    return found;
  };
  const note = (found: Health) => {
    const changed = found.kind !== health.kind;
    health = found;
    if (changed && !ended) onChange(problemOf(found));
  };
  const goOn = async () => {
    while (!ended) {
      note(await look());
      await rest.take(pauseMs);
    }
  };

  return {
    async start(ms) {
      const deadline = performance.now() + ms;
      let found = await look();
      while (found.kind === 'out of reach' && performance.now() < deadline) {
        await pass(20);
        found = await look();
      }
      if (found.kind === 'unfit') return found; // refused: nothing begins
      note(found);
      void goOn();
      return found;
    },
    problem: () => problemOf(health),
    checkNow: rest.cut,
    onError(error) {
      complaint = reasonOf(error);
    },
    stop() {
      ended = true;
      rest.cut();
    },
  };
}

const problemOf = (health: Health) => (health.kind === 'well' ? undefined : health.problem);

/** A pause that can be cut short. */
function createPause() {
  let cut = () => {};
  return {
    cut: () => cut(),
    take: (ms: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        cut = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}

// MERGED HEADER (rewrite or remove):
/* What a look at Redis tells: is it within reach, and will it remember what it is told? */

/** How long a look waits. Longer than a command: one slow answer is no outage. */
const checkTimeoutMs = 250;

/** The slots of a cluster: all keys are spread over them. */
const allSlots = 16384;

/** How Redis is, with a sentence that says what is wrong. */
export type Health =
  | { readonly kind: 'well' }
  | { readonly kind: 'out of reach' | 'unfit'; readonly problem: string };

/** What is looked at. */
export interface HealthSources {
  /** `INFO memory` of every node that holds values, in a cluster `CLUSTER INFO` too; none = nobody to ask. */
  reports(): readonly Promise<string>[];
  /** Whether the client takes commands: the nodes of a cluster answer before it does. */
  takesCommands(): boolean;
}

/**
 * Reads how Redis is.
 *
 * @param complaint what the connection complained of since Redis was well: says more than that nothing answers
 */
export async function checkHealth(
  { reports, takesCommands }: HealthSources,
  complaint: () => string | undefined,
): Promise<Health> {
  try {
    const answers = await withTimeout(checkTimeoutMs, Promise.all(reports()));
    const unwell = answers.map(parseReport).find(({ kind }) => kind !== 'well');
    if (unwell) return unwell;
    if (answers.length === 0 || !takesCommands()) throw new Error('not connected');
    return { kind: 'well' };
  } catch (error) {
    const reason = reasonOf(error);
    if (/^NOPERM /.test(reason)) return infoForbidden;
    return { kind: 'out of reach', problem: `Redis cannot be reached (${complaint() ?? reason}).` };
  }
}

/** In lines of `name:value`. */
function parseReport(report: string): Health {
  const value = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(report)?.[1];
  const policy = value('maxmemory_policy') ?? 'noeviction';
  if (Number(value('maxmemory') ?? 0) > 0 && policy !== 'noeviction') return evicting(policy);

  const missing =
    allSlots - Number(value('cluster_slots_assigned') ?? allSlots) + Number(value('cluster_slots_fail') ?? 0);
  return missing === 0 && (value('cluster_state') ?? 'ok') === 'ok' ? { kind: 'well' } : incomplete(missing);
}

const evicting = (policy: string): Health => ({
  kind: 'unfit',
  problem:
    `Redis may evict what the gateway must remember (maxmemory-policy is ${policy}): ` +
    'set maxmemory-policy to noeviction, or maxmemory to 0.',
});

const incomplete = (missing: number): Health => ({
  kind: 'out of reach',
  problem: `The cluster of Redis does not serve all keys: ${missing} of its ${allSlots} slots have no node that works.`,
});

const infoForbidden: Health = {
  kind: 'unfit',
  problem: 'The user of Redis may not run INFO, so nobody knows whether Redis evicts: allow it (+info).',
};
