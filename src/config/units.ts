/** Settings with a unit: durations, sizes, rates and percentages. */

import { z } from 'zod';

export interface Unit {
  /** Its name in the documentation: `duration`. */
  readonly name: string;
  /** Group 1 is the number, group 2 the unit. */
  readonly shape: RegExp;
  /** The internal value of one of each unit. */
  readonly factors: Readonly<Record<string, number>>;
  /** For error messages: `a duration such as 500ms`. */
  readonly expected: string;
  /** The units of other programs, in lower case, each with ours. Only for suggestions. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** Smallest and largest value allowed, written like the setting itself. */
export interface Bounds {
  readonly min?: string;
  readonly max?: string;
}

/** In milliseconds. */
export const durations: Unit = {
  name: 'duration',
  shape: /^(\d{1,15}) ?(ms|s|min|h|d)$/,
  factors: { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 },
  expected: 'a duration such as 500ms, 10s, 2min, 24h or 400d',
  aliases: {
    ...aliases('ms', 'msec', 'millis', 'milliseconds'),
    ...aliases('s', 'sec', 'secs', 'second', 'seconds'),
    ...aliases('min', 'm', 'mins', 'minute', 'minutes'),
    ...aliases('h', 'hr', 'hrs', 'hour', 'hours'),
    ...aliases('d', 'day', 'days'),
  },
};

/** In bytes. */
export const sizes: Unit = {
  name: 'size',
  shape: /^(\d{1,15}) ?(B|KiB|MiB|GiB)$/,
  factors: { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
  expected: 'a size such as 512B, 64KiB or 1MiB',
  aliases: { ...aliases('KiB', 'k', 'kb'), ...aliases('MiB', 'm', 'mb'), ...aliases('GiB', 'g', 'gb') },
};

/** In tokens per second. */
export const rates: Unit = {
  name: 'rate',
  shape: /^(\d{1,9}(?:\.\d{1,9})?) ?(\/s|\/min|\/h)$/,
  factors: { '/s': 1, '/min': 1 / 60, '/h': 1 / 3600 },
  expected: 'a rate such as 50/s, 100/min or 10/h',
  aliases: {
    ...aliases('/s', '/sec', '/second', 'r/s', 'rps'),
    ...aliases('/min', '/m', '/minute', 'r/m', 'rpm'),
    ...aliases('/h', '/hour'),
  },
};

/** As a fraction from 0 to 1. */
export const percentages: Unit = {
  name: 'percentage',
  shape: /^(\d{1,3}(?:\.\d{1,9})?) ?(%)$/,
  factors: { '%': 1 / 100 },
  expected: 'a percentage such as 50%',
  aliases: aliases('%', 'percent'),
};

/** Every kind of quantity, by its name in the documentation. */
export const unitsByName: Readonly<Record<string, Unit>> = Object.fromEntries(
  [durations, sizes, rates, percentages].map((unit) => [unit.name, unit]),
);

/** A duration setting with its default, in milliseconds; at least 1ms and at most ten years unless bounded otherwise. */
export const duration = (fallback: string, bounds: Bounds = {}) =>
  quantity(durations, { min: '1ms', max: '3650d', ...bounds }).prefault(fallback);

/** A size setting with its default, in bytes; at least 1B unless bounded otherwise. */
export const size = (fallback: string, bounds: Bounds = {}) =>
  quantity(sizes, { min: '1B', ...bounds }).prefault(fallback);

/** A rate setting with its default, in tokens per second; 1/h to 100000/s unless bounded otherwise. */
export const rate = (fallback: string, bounds: Bounds = {}) =>
  quantity(rates, { min: '1/h', max: '100000/s', ...bounds }).prefault(fallback);

/** A percentage setting with its default, as a fraction; 0% to 100% unless bounded otherwise. */
export const percent = (fallback: string, bounds: Bounds = {}) =>
  quantity(percentages, { min: '0%', max: '100%', ...bounds }).prefault(fallback);

/** The internal value of a quantity, or `undefined` if the text is not one. */
export function parseQuantity(unit: Unit, text: string): number | undefined {
  const [, number, name] = unit.shape.exec(text) ?? [];
  const factor = name === undefined ? undefined : unit.factors[name];
  return factor === undefined ? undefined : Number(number) * factor;
}

/**
 * An internal value as users write it, in the largest unit that gives a whole number; otherwise with decimals, as the
 * shortest text that is parsed to the same value.
 */
export function formatQuantity(unit: Unit, value: number): string {
  const texts = Object.entries(unit.factors).map(([name, factor]) => ({
    factor,
    number: plainNumber(value / factor),
    text: plainNumber(value / factor) + name,
  }));
  const whole = texts
    .toSorted((one, other) => other.factor - one.factor)
    .find(({ number }) => /^[1-9]\d*$/.test(number));
  const exact = texts
    .toSorted((one, other) => one.text.length - other.text.length)
    .find(({ text }) => isAlmost(parseQuantity(unit, text), value));
  const [first] = texts; // for 0, in the first unit
  return (whole ?? (value === 0 ? first : (exact ?? first)))?.text ?? '';
}

/** Milliseconds as users write them. */
export const formatDuration = (ms: number): string => formatQuantity(durations, ms);

/** With at most nine decimals, as many as a setting may have. */
const plainNumber = (value: number) => value.toFixed(9).replace(/\.?0+$/, '');

/** Equal apart from the rounding of a division. */
const isAlmost = (one: number | undefined, other: number) =>
  one !== undefined && Math.abs(one - other) <= Math.abs(other) * 1e-12;

function quantity(unit: Unit, bounds: Bounds) {
  return z
    .string({ error: (issue) => expectedText(unit, issue.input) })
    .meta({ unit: unit.name, pattern: unit.shape.source })
    .transform((text, context) => {
      const value = parseQuantity(unit, text);
      if (value === undefined) return refuse(context, expectedText(unit, text));
      if (value < boundOf(unit, bounds.min, 0)) return refuse(context, `expected at least ${bounds.min}`);
      if (value > boundOf(unit, bounds.max, Infinity))
        return refuse(context, `expected at most ${bounds.max}`);
      return value;
    });
}

function expectedText(unit: Unit, given: unknown): string {
  const expected = `expected ${unit.expected}`;
  const text = typeof given === 'object' ? '' : String(given); // an object may have no text
  if (/^\d+(\.\d+)?$/.test(text)) return `${expected}; add the unit to the number`;
  const similar = similarQuantity(unit, text);
  return similar === undefined ? expected : `${expected} (did you mean ${similar}?)`;
}

/** What a number with the unit of another program means: `35s` for `35 sec`, and `1500ms` for `1.5s`. */
function similarQuantity(unit: Unit, text: string): string | undefined {
  const [, number, given = ''] = /^(\d{1,9}(?:\.\d{1,3})?) ?([A-Za-z/%]{1,12})$/.exec(text) ?? [];
  const name = given.toLowerCase();
  const known = Object.keys(unit.factors).find((each) => each.toLowerCase() === name) ?? unit.aliases[name];
  const factor = known === undefined ? undefined : unit.factors[known];
  if (factor === undefined) return undefined;
  const value = Number(number) * factor;
  const similar = formatQuantity(unit, value);
  return isAlmost(parseQuantity(unit, similar), value) ? similar : undefined;
}

function aliases(name: string, ...others: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(others.map((other) => [other, name]));
}

const boundOf = (unit: Unit, text: string | undefined, otherwise: number) =>
  (text === undefined ? undefined : parseQuantity(unit, text)) ?? otherwise;

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
