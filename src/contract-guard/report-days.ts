/**
 * The stored form of the report: slices of the request log, one for each day of UTC (ADR 110). The numbers of messages and deviations
 * are counters, which all instances increment; times and the last X-Request-ID are values.
 */

import { z } from 'zod';
import { parseStored } from '../state/parse-stored.ts';
import type { CheckScope, CountedDeviation, CountedMessages, SkippedMessages } from './deviation-counts.ts';

export const dayMs = 86_400_000;

/** The day of a time: days since 1970. */
export const dayOf = (atMs: number): number => Math.floor(atMs / dayMs);

/** The number of a day's slice. Slices of request records have the number of their ten minutes, which reaches this range in 20982. */
export const sliceOfDay = (day: number): number => 1_000_000_000 + day;

/** A slice for counters of no certain day: how many answers were checked, for the baseline of an operation. */
export const baselineSlice = 2_000_000_000;

/** A deviation on one day. */
export type DeviationRow = Omit<CountedDeviation, 'firstMs' | 'lastMs' | 'requestId'>;
export type MessageRow = Omit<CountedMessages, 'firstMs'>;

/** Details of a deviation, or of the messages of one scope, on one day. */
export interface RowDetails {
  readonly firstMs: number;
  readonly lastMs: number;
  /** Of the last message. */
  readonly requestId?: string | undefined;
  /** When the alert "the bank has changed" was raised for it: milliseconds since 1970. */
  readonly changedMs?: number | undefined;
}

type Names = readonly (string | number)[];
const nameOf = (what: string, names: Names) => `${what} ${JSON.stringify(names)}`;
const scopeNames = ({ environment, hash, isOwn, direction }: CheckScope): Names => [
  environment,
  hash,
  isOwn ? 1 : 0,
  direction,
];

const deviationNames = (row: Omit<DeviationRow, 'client' | 'count'>): Names => [
  ...scopeNames(row),
  row.operation,
  row.path,
  row.rule,
  row.level,
  row.effect,
  ...(row.alsoRefusedBy === undefined ? [] : [row.alsoRefusedBy]),
];

export const counterName = {
  deviation: (row: Omit<DeviationRow, 'count'>) => nameOf('deviation', [...deviationNames(row), row.client]),
  messages: (row: Omit<MessageRow, 'count'>) =>
    nameOf('messages', [...scopeNames(row), row.operation, row.client]),
  skipped: ({ environment, direction, reason }: Omit<SkippedMessages, 'count'>) =>
    nameOf('skipped', [environment, direction, reason]),
} as const;

export const valueName = {
  deviation: (row: Omit<DeviationRow, 'client' | 'count'>) => nameOf('deviation', deviationNames(row)),
  /** The time of the alert for a deviation. A separate value, because instances replace the other ones. */
  change: (row: Omit<DeviationRow, 'client' | 'count'>) => nameOf('change', deviationNames(row)),
  /** For all operations together. */
  messages: (row: CheckScope) => nameOf('messages', scopeNames(row)),
} as const;

const scope = [z.string(), z.string(), z.literal([0, 1]), z.enum(['request', 'response'])] as const;
const text = z.string();
const deviationCounter = z.union([
  z.tuple([...scope, text, text, text, text, text, text]),
  z.tuple([...scope, text, text, text, text, text, text, text]),
]);
const messagesCounter = z.tuple([...scope, text, text]);
const skippedCounter = z.tuple([text, z.enum(['request', 'response']), text]);

/** A row as it is read: a later release may have other operations, rules, levels and effects. */
export interface StoredDeviation extends CheckScope {
  readonly operation: string;
  readonly path: string;
  readonly rule: string;
  readonly level: string;
  readonly effect: string;
  /** The hash of the environment's own contract at that time, if both contracts refused the requests. */
  readonly alsoRefusedBy?: string | undefined;
  readonly client: string;
  readonly count: number;
  /** The name of its value. */
  readonly valueName: string;
}

export interface StoredMessages extends CheckScope {
  readonly operation: string;
  readonly client: string;
  readonly count: number;
  readonly valueName: string;
}

export interface StoredSkipped {
  readonly environment: string;
  readonly direction: 'request' | 'response';
  readonly reason: string;
  readonly count: number;
}

export interface StoredDay {
  readonly deviations: readonly StoredDeviation[];
  readonly messages: readonly StoredMessages[];
  readonly skipped: readonly StoredSkipped[];
  /** By `valueName`. */
  readonly details: ReadonlyMap<string, RowDetails>;
}

/** Ignores entries that a later release has stored in another form. */
export function decodeDay(
  counters: ReadonlyMap<string, number>,
  values: ReadonlyMap<string, Buffer>,
): StoredDay {
  const deviations: StoredDeviation[] = [];
  const messages: StoredMessages[] = [];
  const skipped: StoredSkipped[] = [];
  for (const [name, count] of counters) {
    const at = name.indexOf(' ');
    const names = name.slice(at + 1);
    switch (name.slice(0, at)) {
      case 'deviation':
        deviations.push(...decodeDeviation(names, count));
        break;
      case 'messages':
        messages.push(...decodeMessages(names, count));
        break;
      case 'skipped':
        skipped.push(...decodeSkipped(names, count));
        break;
    }
  }
  const details = new Map<string, RowDetails>();
  for (const [name, value] of values) {
    const decoded = decodeDetails(value);
    const rowName = name.replace(/^change /, 'deviation ');
    if (decoded) details.set(rowName, mergeDetails(decoded, details.get(rowName)));
  }
  return { deviations, messages, skipped, details };
}

function decodeDeviation(names: string, count: number): readonly StoredDeviation[] {
  const parsed = parseStored(deviationCounter, names);
  if (!parsed) return [];
  const [environment, hash, own, direction, operation, path, rule, level, effect] = parsed;
  const alsoRefusedBy = parsed.length === 11 ? parsed[9] : undefined;
  const client = parsed.length === 11 ? parsed[10] : parsed[9];
  const checked = { environment, hash, isOwn: own === 1, direction };
  const deviation = { operation, path, rule, level, effect, alsoRefusedBy };
  const name = nameOf('deviation', parsed.slice(0, -1));
  return [{ ...checked, ...deviation, client, count, valueName: name }];
}

function decodeMessages(names: string, count: number): readonly StoredMessages[] {
  const parsed = parseStored(messagesCounter, names);
  if (!parsed) return [];
  const [environment, hash, own, direction, operation, client] = parsed;
  const row = { environment, hash, isOwn: own === 1, direction };
  return [{ ...row, operation, client, count, valueName: valueName.messages(row) }];
}

function decodeSkipped(names: string, count: number): readonly StoredSkipped[] {
  const parsed = parseStored(skippedCounter, names);
  if (!parsed) return [];
  const [environment, direction, reason] = parsed;
  return [{ environment, direction, reason, count }];
}

/** The first byte of a value is the version of its format. */
const header = Buffer.of(1);

const storedDetails = z.object({
  firstMs: z.number(),
  lastMs: z.number(),
  requestId: z.string().optional(),
  changedMs: z.number().optional(),
});

export const encodeDetails = (details: RowDetails): Buffer =>
  Buffer.concat([header, Buffer.from(JSON.stringify(details))]);

export function decodeDetails(value: Buffer): RowDetails | undefined {
  if (value[0] !== header[0]) return undefined;
  return parseStored(storedDetails, value.subarray(1).toString());
}

/** Merges the details of several days or instances. */
export function mergeDetails(one: RowDetails, other: RowDetails | undefined): RowDetails {
  if (!other) return one;
  const last = one.lastMs >= other.lastMs ? one : other;
  return {
    firstMs: Math.min(one.firstMs, other.firstMs),
    lastMs: last.lastMs,
    requestId: last.requestId,
    changedMs: one.changedMs ?? other.changedMs,
  };
}
