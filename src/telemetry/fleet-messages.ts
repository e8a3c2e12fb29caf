/**
 * The messages with which the instances report to each other. Messages that a newer release has changed, or that come from
 * elsewhere, are ignored; so are additional members.
 */

import { z } from 'zod';
import { lanes } from '../pis/operations.ts';
import { parseStored } from '../state/parse-stored.ts';
import { bucketCount, maxSeconds } from './live-stats.ts';

const count = z.int().nonnegative();
const name = z.string().max(300);
const text = z.string().max(2_000);
const time = z.iso.datetime();
const maxListLength = 1_000;
const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).max(maxListLength).readonly();

const figures = z.object({
  /** Per second, in the last five seconds. */
  requestsPerSecond: z.number(),
  refusedPerSecond: z.number(),
  failedPerSecond: z.number(),
  p50Ms: z.number().nullable(),
  p99Ms: z.number().nullable(),
  /** Calls to the bank, now. */
  waiting: count,
  inFlight: count,
  /** Status reads that wait, open streams, and the polls for them; earlier releases do not report these. */
  waits: count.default(0),
  streams: count.default(0),
  pollsPerSecond: z.number().default(0),
  overduePolls: count.default(0),
  /** Of the process, in the last second; 100 is one core. */
  cpuPercent: z.number(),
  memoryBytes: count,
  eventLoopDelayMs: z.number(),
});

/** A circuit that is not closed for every tenant, or that is held. */
const circuit = z.object({
  environment: name,
  lane: z.enum(lanes),
  state: z.enum(['closed', 'open', 'half-open', 'probation']),
  hold: z.enum(['open', 'closed']).nullable(),
  cause: z
    .object({
      at: time,
      openedAt: time,
      xRequestId: name,
      operation: name,
      tenant: name,
      why: text,
      count,
      calls: count,
    })
    .nullable(),
  /** The tenants whose circuit is not closed: at most 20. */
  tenants: listOf(name),
});

/** The calls of one instance to one environment. */
const queue = z.object({
  environment: name,
  waiting: z.object({ write: count, read: count, status: count }),
  inFlight: count,
});

const report = z.object({
  id: name,
  name,
  version: name,
  /** When it started. */
  since: time,
  /** When it sent this. */
  at: time,
  ready: z.boolean(),
  reasons: listOf(text),
  figures,
  circuits: listOf(circuit),
  queues: listOf(queue),
});

/** What an instance reports of itself. Times are on its own clock: ISO 8601, UTC. */
export type InstanceReport = Readonly<z.output<typeof report>>;
export type InstanceFigures = Readonly<z.output<typeof figures>>;
export type ReportedCircuit = Readonly<z.output<typeof circuit>>;

const bucket = z
  .int()
  .min(0)
  .max(bucketCount - 1);

const second = z.object({
  at: z.int(),
  requests: count,
  refused: count,
  failed: count,
  cache: z.object({ hit: count, stale: count, shared: count, miss: count, bypass: count }),
  durations: z
    .array(z.tuple([bucket, count]).readonly())
    .max(bucketCount)
    .readonly(),
});

const message = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('running'),
    report,
    /** The first and the last second that the sender has counted; at most five minutes. */
    from: z.int(),
    through: z.int(),
    /** Those with requests that have ended since the last message; if an instance has asked for them, since `from`. */
    seconds: z.array(second).max(maxSeconds).readonly(),
    /** Whether the sender has missed seconds of the others. */
    wantsSeconds: z.boolean(),
  }),
  z.object({ kind: z.literal('stopped'), report }),
]);

export type FleetMessage = Readonly<z.output<typeof message>>;

export const serializeMessage = (sent: FleetMessage): string => JSON.stringify(sent);

/** @returns `undefined` if this release does not know the message */
export const parseMessage = (received: string): FleetMessage | undefined => parseStored(message, received);

const rosterEntry = z.object({ status: z.enum(['up', 'down', 'stopped']), report });

/** What the shared state says of an instance: its last report, and whether it ended since. */
export type RosterEntry = Readonly<z.output<typeof rosterEntry>>;

/** @returns `undefined` if this release does not know the entry */
export const parseRosterEntry = (stored: string): RosterEntry | undefined => parseStored(rosterEntry, stored);
