/** Looks at Redis a few times a second: is it within reach, and will it remember what it is told? */

import { setTimeout as pass } from 'node:timers/promises';
import { inTime, reasonOf } from './redis-answer.ts';

const lookMs = 250;
const pauseMs = 250;

/** What a look found, with a sentence that says what is wrong. */
export type Health =
  | { readonly kind: 'well' }
  | { readonly kind: 'out of reach' | 'unfit'; readonly trouble: string };

/** The watch over one Redis or cluster. */
export interface HealthWatch {
  /** Begins to look, and comes back when Redis answers or `ms` have passed. */
  begin(ms: number): Promise<Health>;
  /** What the last look found; well before the first. */
  health(): Health;
  /** Looks again at once: something happened. */
  lookNow(): void;
  end(): void;
}

/** What the watch needs to know. */
export interface Signs {
  /** Asks for `INFO memory` of every node that holds values, and for `CLUSTER INFO` of a cluster's; empty = nobody to ask. */
  readonly reports: () => readonly Promise<string>[];
  /** What the connection complained of since it was well, if anything. */
  readonly complaint: () => string | undefined;
}

/** A watch that has not begun. @param onChange told whenever the kind of health has changed; all is well at first */
export function watchHealth(signs: Signs, onChange: (health: Health) => void): HealthWatch {
  let health: Health = { kind: 'well' };
  let ended = false;
  let wake = () => {};

  const note = (found: Health) => {
    const changed = found.kind !== health.kind;
    health = found;
    if (changed && !ended) onChange(found);
  };
  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pauseMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const goOn = async () => {
    while (!ended) {
      await pause();
      if (!ended) note(await look(signs));
    }
  };

  return {
    async begin(ms) {
      const deadline = performance.now() + ms;
      let found = await look(signs);
      while (found.kind === 'out of reach' && performance.now() < deadline) {
        await pass(50);
        found = await look(signs);
      }
      note(found);
      void goOn();
      return found;
    },
    health: () => health,
    lookNow: () => wake(),
    end() {
      ended = true;
      wake();
    },
  };
}

async function look({ reports, complaint }: Signs): Promise<Health> {
  try {
    const asked = reports();
    if (asked.length === 0) throw new Error('not connected');
    const answers = await inTime(lookMs, Promise.all(asked));
    return answers.map(healthIn).find(({ kind }) => kind !== 'well') ?? { kind: 'well' };
  } catch (error) {
    const reason = reasonOf(error);
    if (/^NOPERM /.test(reason)) return blind;
    return { kind: 'out of reach', trouble: `Redis cannot be reached (${complaint() ?? reason}).` };
  }
}

const blind: Health = {
  kind: 'unfit',
  trouble: 'The user of Redis may not run INFO, so nobody knows whether it evicts; allow +info.',
};

/** What a report says: lines of `name:value`. */
function healthIn(report: string): Health {
  const values = new Map(
    report.split('\r\n').map((line) => line.split(':', 2) as [string, string | undefined]), // INFO's own format
  );
  const policy = values.get('maxmemory_policy') ?? 'noeviction';
  if (Number(values.get('maxmemory') ?? 0) > 0 && policy !== 'noeviction') return evicting(policy);

  const failing = Number(values.get('cluster_slots_fail') ?? 0);
  const assigned = Number(values.get('cluster_slots_assigned') ?? allSlots);
  const missing = failing + allSlots - assigned;
  if (missing === 0 && (values.get('cluster_state') ?? 'ok') === 'ok') return { kind: 'well' };
  return {
    kind: 'out of reach',
    trouble: `Redis serves only a part of the keys: ${missing} of the cluster's ${allSlots} slots have no node that works.`,
  };
}

const allSlots = 16384;

const evicting = (policy: string): Health => ({
  kind: 'unfit',
  trouble:
    `Redis may evict what the gateway must remember (maxmemory-policy is ${policy}): ` +
    'set maxmemory-policy to noeviction, or maxmemory to 0.',
});
