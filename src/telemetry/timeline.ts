/**
 * The timeline: what changed on any instance, and who asked for it. It is stored in journals of one hour each, and is the same on
 * every instance (ADR 97).
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Lane, lanes } from '../pis/operations.ts';
import { parseStored } from '../state/parse-stored.ts';
import type { Journals } from '../state/ports.ts';
import type { Log } from './log.ts';

export const timelineKinds = [
  'circuit',
  'hold',
  'switch',
  'reload',
  'certificate',
  'start',
  'stop',
  'lost',
  'contract',
] as const;

const storedEntry = z.object({
  /** Entries with the same id are one: several instances may notice the same, and an append may be repeated. */
  id: z.string(),
  at: z.iso.datetime(),
  kind: z.enum(timelineKinds),
  /** The name of the instance that it happened on. */
  instance: z.string(),
  /** The operator or the signal that caused it. */
  who: z.string().nullable(),
  environment: z.string().nullable(),
  lane: z.enum(lanes).nullable(),
  text: z.string(),
  details: z.record(z.string(), z.unknown()),
});

export type TimelineEntry = Readonly<Omit<z.output<typeof storedEntry>, 'id'>>;

type StoredEntry = Readonly<z.output<typeof storedEntry>>;

/** Something to record. */
export interface TimelineEvent {
  readonly kind: TimelineEntry['kind'];
  /** A sentence. Contains only what may be logged. */
  readonly text: string;
  readonly who?: string | undefined;
  readonly environment?: string | undefined;
  readonly lane?: Lane | undefined;
  /** By default this instance. */
  readonly instance?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>>;
  /** Identifies an event that several instances notice; by default random. */
  readonly id?: string | undefined;
}

export interface Timeline {
  /** Stores an event soon. Never throws: while the state is unavailable, the event waits in the memory of this instance. */
  record(event: TimelineEvent): void;
  /**
   * The entries of all instances in a period, newest first; those of this instance only, while the state is unavailable.
   *
   * @param toMs milliseconds since 1970, like `fromMs`
   */
  read(fromMs: number, toMs: number): Promise<readonly TimelineEntry[]>;
  /** Stores the events that wait; to be called every second. Never rejects. */
  flush(): Promise<void>;
  /** Stores the last events, and ignores later ones. Never rejects. */
  close(): Promise<void>;
}

/** How long entries are stored. Milliseconds. */
const storedForMs = 7 * 24 * 3_600_000;
/** How many entries a read returns. */
const maxEntries = 1_000;

const hourMs = 3_600_000;
const keyOf = (hour: number) => `timeline:${hour}`;

/**
 * How many changes of circuits, certificates and banks one instance records in an hour. A journal keeps its newest texts: a circuit that
 * opens and closes for an hour must not remove what operators did.
 */
const maxAutomaticPerHour = 100;
/** How many events of this instance wait to be stored, and how many it shows, while the state is unavailable. */
const maxOwn = 500;
const maxTextLength = 1_000;
const maxDetailsLength = 20_000;
/** How many journals are read at once. */
const journalsPerRead = 24;

interface TimelineDependencies {
  readonly journals: Journals;
  /** The name of this instance. */
  readonly instance: string;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export function createTimeline({ journals, instance, log, now = Date.now }: TimelineDependencies): Timeline {
  let pending: readonly StoredEntry[] = [];
  let own: readonly StoredEntry[] = [];
  let flushing: Promise<void> | undefined;
  let isClosed = false;
  const countAutomatic = createHourlyLimit(maxAutomaticPerHour, now);

  function record(event: TimelineEvent): void {
    if (isClosed) return;
    const isAutomatic = event.kind === 'circuit' || event.kind === 'certificate' || event.kind === 'contract';
    const limit = isAutomatic ? countAutomatic() : 'under';
    if (limit === 'beyond') return;
    const recorded = limit === 'last' ? { kind: event.kind, text: suppressed } : event;
    const entry = entryOf(recorded, instance, now());
    own = [...own, entry].slice(-maxOwn);
    if (pending.length === maxOwn)
      log('warn', 'an entry of the timeline is lost: its store is unavailable', {
        entry: pending[0]?.text,
      });
    pending = [...pending, entry].slice(-maxOwn);
    void flush();
  }

  /** Never runs twice at the same time, so that the entries of an instance stay in order. */
  function flush(): Promise<void> {
    flushing ??= appendPending().finally(() => {
      flushing = undefined;
    });
    return flushing;
  }

  async function appendPending(): Promise<void> {
    await Promise.resolve(); // events of the same tick are appended together
    while (pending.length > 0) {
      const hour = hourOf(pending[0]?.at ?? '');
      const entries = pending.filter(({ at }) => hourOf(at) === hour);
      const texts = entries.map((entry) => JSON.stringify(entry));
      try {
        await journals.append(keyOf(hour), texts, storedForMs + hourMs);
      } catch {
        return; // the state is unavailable: the next call tries again
      }
      pending = pending.filter((entry) => !entries.includes(entry));
    }
  }

  /** Newest journal first, until there are enough entries. */
  async function readStored(fromMs: number, toMs: number): Promise<readonly StoredEntry[]> {
    const first = Math.floor(Math.max(fromMs, now() - storedForMs) / hourMs);
    const last = Math.floor(Math.min(toMs, now() + hourMs) / hourMs);
    let found: readonly StoredEntry[] = [];
    for (let end = last; end >= first && found.length < maxEntries; end -= journalsPerRead) {
      const start = Math.max(first, end - journalsPerRead + 1);
      const hours = Array.from({ length: end - start + 1 }, (_, index) => start + index);
      const texts = await Promise.all(hours.map((hour) => journals.read(keyOf(hour))));
      found = [...texts.flat().flatMap(parseEntry), ...found];
    }
    return found;
  }

  return {
    record,
    async read(fromMs, toMs) {
      const stored = await readStored(fromMs, toMs).catch(() => own);
      const unique = new Map<string, StoredEntry>();
      for (const entry of [...stored, ...pending]) if (!unique.has(entry.id)) unique.set(entry.id, entry);
      return [...unique.values()]
        .filter(({ at }) => Date.parse(at) >= fromMs && Date.parse(at) <= toMs)
        .toSorted((one, other) => other.at.localeCompare(one.at))
        .slice(0, maxEntries)
        .map(({ id: _, ...entry }) => entry);
    },
    flush,
    async close() {
      await flush();
      await flush(); // what was recorded during the first one
      isClosed = true;
    },
  };
}

const suppressed = `more than ${maxAutomaticPerHour} changes of circuits, certificates and banks within an hour; further ones are only in the log`;

function entryOf(event: TimelineEvent, ownName: string, nowMs: number): StoredEntry {
  const { kind, text, who, environment, lane, instance, details = {}, id } = event;
  const isLong = JSON.stringify(details).length > maxDetailsLength;
  return {
    id: id ?? randomUUID(),
    at: new Date(nowMs).toISOString(),
    kind,
    instance: instance ?? ownName,
    who: who ?? null,
    environment: environment ?? null,
    lane: lane ?? null,
    text: text.slice(0, maxTextLength),
    details: isLong ? { omitted: 'too long; see the log' } : details,
  };
}

const hourOf = (at: string) => Math.floor(Date.parse(at) / hourMs);

/** Ignores an entry of a newer release that this one does not know. */
const parseEntry = (text: string): StoredEntry | readonly [] => parseStored(storedEntry, text) ?? [];

/** @returns counts an event of the current hour */
function createHourlyLimit(max: number, now: () => number): () => 'under' | 'last' | 'beyond' {
  let hour = 0;
  let count = 0;
  return () => {
    const current = Math.floor(now() / hourMs);
    if (current !== hour) count = 0;
    hour = current;
    count += 1;
    if (count > max) return 'beyond';
    return count === max ? 'last' : 'under';
  };
}
