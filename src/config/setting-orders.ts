/**
 * Pairs of settings of which one must be below the other. If only one of the two is set, the default of the other follows
 * it (derive-defaults.ts). If both are set, the cross-checks compare them.
 */

import { formatDuration } from './units.ts';

export interface SettingOrder {
  readonly lesser: string;
  readonly must: 'be below' | 'not exceed';
  readonly greater: string;
  readonly why: string;
  /** Where the default of the lesser setting does not fit, it becomes this part of the greater one; without it, it stays. */
  readonly part?: keyof typeof partNames;
  /** Where the default of the greater setting does not fit, it becomes this multiple of the lesser one; without it, it stays. */
  readonly times?: 1 | 2;
  /** A value as users write it. */
  readonly asWritten: (value: number) => string | number;
}

/** The largest value of deadlines: after this time, a TPP and any proxy in between have timed out. */
export const longestDeadline = '10min';

const connecting = {
  lesser: 'deadlines.connect',
  must: 'be below',
  why: 'otherwise connecting can use the whole deadline',
  part: 0.5,
  times: 2,
  asWritten: formatDuration,
} as const;

/** A quarter: after the wait and half of the deadline for connecting, a quarter remains for the bank's response. */
const waiting = {
  must: 'be below',
  why: 'otherwise a request has no time left after the queue',
  part: 0.25,
  times: 2,
  asWritten: formatDuration,
} as const;

const capped = { must: 'not exceed', part: 1, times: 1, asWritten: formatDuration } as const;

export const settingOrders: readonly SettingOrder[] = [
  { ...connecting, greater: 'deadlines.status' },
  { ...connecting, greater: 'deadlines.read' },
  { ...connecting, greater: 'deadlines.write' },
  { ...waiting, lesser: 'shaping.maxWait.status', greater: 'deadlines.status' },
  { ...waiting, lesser: 'shaping.maxWait.read', greater: 'deadlines.read' },
  { ...waiting, lesser: 'shaping.maxWait.write', greater: 'deadlines.write' },
  {
    lesser: 'idempotency.wait',
    must: 'be below',
    greater: 'deadlines.write',
    why: 'otherwise a repeat waits longer than the first request can take',
    part: 0.5,
    times: 2,
    asWritten: formatDuration,
  },
  {
    lesser: 'deadlines.write',
    must: 'not exceed',
    greater: 'idempotency.window',
    why: 'otherwise the stored response expires before a repeat can arrive',
    part: 1,
    asWritten: formatDuration,
  },
  {
    // The default of the window stays: a shorter one would let a repeat pay again.
    lesser: 'idempotency.window',
    must: 'not exceed',
    greater: 'payments.rememberFor',
    why: 'otherwise the environment of a payment expires before its repeats',
    times: 1,
    asWritten: formatDuration,
  },
  {
    ...capped,
    lesser: 'statusCache.pendingTtl',
    greater: 'statusCache.pendingTtlMax',
    why: 'because it grows up to that value',
  },
  {
    ...capped,
    lesser: 'upstream.writeSocketIdle',
    greater: 'upstream.idle',
    why: 'because the connection is closed after that time',
  },
  {
    ...capped,
    lesser: 'shaping.maxConcurrent',
    greater: 'upstream.maxSockets',
    why: 'otherwise calls wait for a connection instead of in the queue',
    asWritten: (value) => value,
  },
];

/** The orders between the settings of environments: `environments.NAME.deadlines.connect` and `environments.NAME.deadlines.read`. */
export const ordersOfEnvironments = (names: readonly string[]): readonly SettingOrder[] =>
  names.flatMap((name) => {
    const own = (setting: string) => (isOverridable(setting) ? `environments.${name}.${setting}` : setting);
    return settingOrders
      .filter(({ lesser }) => isOverridable(lesser))
      .map((order) => ({ ...order, lesser: own(order.lesser), greater: own(order.greater) }));
  });

/** Whether an environment can override this global setting. */
const isOverridable = (setting: string) => /^(deadlines|shaping)\./.test(setting);

/** The global setting that a setting of an environment overrides; any other setting itself. */
export const globalSetting = (setting: string): string => setting.replace(/^environments\.[^.]+\./, '');

export const isInOrder = ({ must }: Pick<SettingOrder, 'must'>, lesser: number, greater: number): boolean =>
  lesser < greater || (must === 'not exceed' && lesser === greater);

/** What the default of a setting follows, as a sentence for its description; `undefined` if it follows nothing. */
export function describeDefault(setting: string): string | undefined {
  const above = settingOrders.filter(({ lesser, part }) => lesser === setting && part !== undefined);
  const below = settingOrders.filter(({ greater, times }) => greater === setting && times !== undefined);
  const rules = [
    describeRule(
      below.map(({ lesser }) => lesser),
      below[0]?.times === 2 ? 'twice' : '',
      'the longest',
    ),
    describeRule(
      above.map(({ greater }) => greater),
      partNames[above[0]?.part ?? 1],
      'the shortest',
    ),
  ].filter((rule) => rule !== '');
  return rules.length === 0 ? undefined : `Unless set, it follows ${rules.join('; and ')}.`;
}

const partNames = { 1: '', 0.5: 'half of', 0.25: 'a quarter of' } as const;

function describeRule(followed: readonly string[], amount: string, outermost: string): string {
  const [only = ''] = followed;
  if (followed.length === 0) return '';
  if (followed.length > 1)
    return `${followed.slice(0, -1).join(', ')} and ${followed.at(-1)}: ${amount} ${outermost} if the default contradicts one of them`;
  return `${only}: ${amount === '' ? 'the same value' : `${amount} it`} if the default contradicts it`;
}
