/** What a look at Redis tells: is it within reach, and will it remember what it is told? */

import { inTime, reasonOf } from './redis-answer.ts';

/** How long a look waits. Longer than a command: one slow answer is no outage. */
const lookMs = 250;

/** The slots of a cluster: all keys are spread over them. */
const allSlots = 16384;

/** How Redis is, with a sentence that says what is wrong. */
export type Health =
  | { readonly kind: 'well' }
  | { readonly kind: 'out of reach' | 'unfit'; readonly trouble: string };

/** What is looked at. */
export interface Looks {
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
export async function healthOf(
  { reports, takesCommands }: Looks,
  complaint: () => string | undefined,
): Promise<Health> {
  try {
    const answers = await inTime(lookMs, Promise.all(reports()));
    const unwell = answers.map(healthIn).find(({ kind }) => kind !== 'well');
    if (unwell) return unwell;
    if (answers.length === 0 || !takesCommands()) throw new Error('not connected');
    return { kind: 'well' };
  } catch (error) {
    const reason = reasonOf(error);
    if (/^NOPERM /.test(reason)) return blind;
    return { kind: 'out of reach', trouble: `Redis cannot be reached (${complaint() ?? reason}).` };
  }
}

/** In lines of `name:value`. */
function healthIn(report: string): Health {
  const value = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(report)?.[1];
  const policy = value('maxmemory_policy') ?? 'noeviction';
  if (Number(value('maxmemory') ?? 0) > 0 && policy !== 'noeviction') return evicting(policy);

  const missing =
    allSlots - Number(value('cluster_slots_assigned') ?? allSlots) + Number(value('cluster_slots_fail') ?? 0);
  return missing === 0 && (value('cluster_state') ?? 'ok') === 'ok' ? { kind: 'well' } : incomplete(missing);
}

const evicting = (policy: string): Health => ({
  kind: 'unfit',
  trouble:
    `Redis may evict what the gateway must remember (maxmemory-policy is ${policy}): ` +
    'set maxmemory-policy to noeviction, or maxmemory to 0.',
});

const incomplete = (missing: number): Health => ({
  kind: 'out of reach',
  trouble: `The cluster of Redis does not serve all keys: ${missing} of its ${allSlots} slots have no node that works.`,
});

const blind: Health = {
  kind: 'unfit',
  trouble: 'The user of Redis may not run INFO, so nobody knows whether Redis evicts: allow it (+info).',
};
