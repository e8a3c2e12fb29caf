/** Settings that are written with a unit, and the numbers they become inside. */

import { z } from 'zod';

/** One kind of quantity: how it is written, and what number it becomes. */
export interface Unit {
  /** What the documentation calls it: `duration`. */
  readonly name: string;
  /** What a text must look like; group 1 is the number, group 2 the unit. */
  readonly shape: RegExp;
  /** How much one of each unit is. */
  readonly factors: Readonly<Record<string, number>>;
  /** What to write instead: `a duration such as 500ms`. */
  readonly expected: string;
}

/** Smallest and largest value of one setting, both allowed, written like the setting itself. */
export interface Bounds {
  readonly min?: string;
  readonly max?: string;
}

/** Time; milliseconds inside. */
export const durations: Unit = {
  name: 'duration',
  shape: /^(\d{1,15}) ?(ms|s|min|h|d)$/,
  factors: { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 },
  expected: 'a duration such as 500ms, 10s, 2min, 24h or 400d',
};

/** Amounts of data; bytes inside. */
export const sizes: Unit = {
  name: 'size',
  shape: /^(\d{1,15}) ?(B|KiB|MiB|GiB)$/,
  factors: { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
  expected: 'a size such as 512B, 64KiB or 1MiB',
};

/** How often something may happen; tokens per second inside. */
export const rates: Unit = {
  name: 'rate',
  shape: /^(\d{1,9}(?:\.\d{1,9})?) ?(\/s|\/min|\/h)$/,
  factors: { '/s': 1, '/min': 1 / 60, '/h': 1 / 3600 },
  expected: 'a rate such as 50/s, 100/min or 10/h',
};

/** Parts of a whole; a fraction inside, 1 being all of it. */
export const percentages: Unit = {
  name: 'percentage',
  shape: /^(\d{1,3}(?:\.\d{1,9})?) ?(%)$/,
  factors: { '%': 1 / 100 },
  expected: 'a percentage such as 50%',
};

/** A duration setting with its default; milliseconds inside; at least 1ms and at most ten years unless said otherwise. */
export const duration = (fallback: string, bounds: Bounds = {}) =>
  quantity(durations, { min: '1ms', max: '3650d', ...bounds }).prefault(fallback);

/** A size setting with its default; bytes inside; at least 1B unless said otherwise. */
export const size = (fallback: string, bounds: Bounds = {}) =>
  quantity(sizes, { min: '1B', ...bounds }).prefault(fallback);

/** A rate setting with its default; tokens per second inside; at least 1/h and at most 100000/s unless said otherwise. */
export const rate = (fallback: string, bounds: Bounds = {}) =>
  quantity(rates, { min: '1/h', max: '100000/s', ...bounds }).prefault(fallback);

/** A percentage setting with its default; a fraction inside; 0% to 100% unless said otherwise. */
export const percent = (fallback: string, bounds: Bounds = {}) =>
  quantity(percentages, { min: '0%', max: '100%', ...bounds }).prefault(fallback);

/** The number that a text of this unit stands for, or `undefined` if it is none. */
export function parseQuantity(unit: Unit, text: string): number | undefined {
  const [, number, name] = unit.shape.exec(text) ?? [];
  const factor = name === undefined ? undefined : unit.factors[name];
  return factor === undefined ? undefined : Number(number) * factor;
}

/** Milliseconds as one would write them in the configuration, in the largest unit that fits evenly. */
export function formatDuration(ms: number): string {
  const [name = 'ms', factor = 1] =
    Object.entries(durations.factors).findLast(([, candidate]) => ms >= candidate && ms % candidate === 0) ??
    [];
  return `${ms / factor}${name}`;
}

function quantity(unit: Unit, bounds: Bounds) {
  return z
    .string({ error: `expected ${unit.expected}` })
    .meta({ unit: unit.name, pattern: unit.shape.source })
    .transform((text, context) => {
      const amount = parseQuantity(unit, text);
      if (amount === undefined) return refuse(context, `expected ${unit.expected}`);
      if (amount < limit(unit, bounds.min, 0)) return refuse(context, `expected at least ${bounds.min}`);
      if (amount > limit(unit, bounds.max, Infinity))
        return refuse(context, `expected at most ${bounds.max}`);
      return amount;
    });
}

const limit = (unit: Unit, text: string | undefined, otherwise: number) =>
  (text === undefined ? undefined : parseQuantity(unit, text)) ?? otherwise;

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
