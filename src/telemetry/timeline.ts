/** The timeline: what changed on any instance, and who asked for it. It is a table, the same for every instance (ADR 123). */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Lane, lanes } from '../pis/operations.ts';
import { type Database, type Row, statement } from '../store/database.ts';
import { deletedAt, deleteInBatches } from '../store/delete-in-batches.ts';
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

const entryShape = z.object({
  /** By the clock of the database: ISO 8601, UTC. */
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

export type TimelineEntry = Readonly<z.output<typeof entryShape>>;

/** An entry of this instance. */
interface OwnEntry {
  readonly id: string;
  /** When it was recorded, on the monotonic clock. */
  readonly recordedAtMs: number;
  readonly entry: TimelineEntry;
}

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
  /** Stores an event soon. Never throws: while the database is unavailable, the event waits in the memory of this instance. */
  record(event: TimelineEvent): void;
  /**
   * The entries of all instances in a period, newest first; those of this instance only, while the database is unavailable.
   *
   * @param toMs milliseconds since 1970, like `fromMs`
   */
  read(fromMs: number, toMs: number): Promise<readonly TimelineEntry[]>;
  /** Stores the events that wait; to be called every second. Never rejects. */
  flush(): Promise<void>;
  /** Deletes old entries. @throws DatabaseError */
  deleteExpired(): Promise<void>;
  /** Stores the last events, and ignores later ones. Never rejects. */
  close(): Promise<void>;
}

/** How long entries are stored. Milliseconds. */
const storedForMs = 7 * 24 * 3_600_000;
/** How many entries a read returns. */
const maxEntries = 1_000;

const hourMs = 3_600_000;

/**
 * How many changes of circuits, certificates and banks one instance records in an hour: a circuit that opens and closes for an hour
 * must not hide what operators did.
 */
const maxAutomaticPerHour = 100;
/** How many events of this instance wait to be stored, and how many it shows, while the database is unavailable. */
const maxOwn = 500;
const maxTextLength = 1_000;
const maxDetailsLength = 20_000;

const columns = 'id, happened_at, kind, instance, who, environment, lane, text, details';

const insert = statement({
  columns: {
    ...{ id: 'text', age_ms: 'bigint', kind: 'text', instance: 'text', who: 'text', environment: 'text' },
    ...{ lane: 'text', text: 'text', details: 'text' },
  },
  sql: (input) => `
    INSERT INTO timeline (${columns})
    SELECT i.id, now_ms() - i.age_ms, i.kind, i.instance, i.who, i.environment, i.lane, i.text, i.details
    FROM ${input} AS i WHERE true ON CONFLICT (id) DO NOTHING RETURNING id`,
});

/**
 * @param instance the name of this instance
 * @param now milliseconds since 1970
 */
export function createTimeline(
  database: Database,
  instance: string,
  log: Log,
  now: () => number = Date.now,
): Timeline {
  let pending: readonly OwnEntry[] = [];
  let own: readonly OwnEntry[] = [];
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
        entry: pending[0]?.entry.text,
      });
    pending = [...pending, entry].slice(-maxOwn);
    void flush();
  }

  function flush(): Promise<void> {
    flushing ??= insertPending().finally(() => {
      flushing = undefined;
    });
    return flushing;
  }

  async function insertPending(): Promise<void> {
    await Promise.resolve(); // events of the same tick are inserted together
    while (pending.length > 0) {
      const entries = pending;
      try {
        const { refused } = await database.batch(insert, entries.map(inputOf));
        const isLater = (index: number) => refused.get(index)?.effect === 'none';
        const later = entries.filter((_, index) => isLater(index));
        for (const [index, { reason }] of refused)
          if (!isLater(index))
            log('warn', 'an entry of the timeline is lost: the database does not accept it', {
              ...{ entry: entries[index]?.entry.text, why: reason },
            });
        pending = pending.filter((entry) => !entries.includes(entry) || later.includes(entry));
        if (later.length > 0) return;
      } catch {
        return; // the database is unavailable: the next call tries again
      }
    }
  }

  async function readStored(fromMs: number, toMs: number) {
    const rows = await database.query(
      `SELECT ${columns} FROM timeline WHERE happened_at BETWEEN $1 AND $2 ORDER BY happened_at DESC, id LIMIT ${maxEntries}`,
      [fromMs, toMs],
    );
    return rows.flatMap((row) => {
      const { success, data: entry } = entryShape.safeParse(membersOf(row));
      return success ? [{ id: String(row.id), entry }] : []; // of a newer version, which this one does not know
    });
  }

  return {
    record,
    async read(fromMs, toMs) {
      const stored = await readStored(fromMs, toMs).catch(() => own);
      const ids = new Set(stored.map(({ id }) => id));
      return [...stored, ...pending.filter(({ id }) => !ids.has(id))]
        .map(({ entry }) => entry)
        .filter(({ at }) => Date.parse(at) >= fromMs && Date.parse(at) <= toMs)
        .toSorted((one, other) => other.at.localeCompare(one.at))
        .slice(0, maxEntries);
    },
    flush,
    deleteExpired: () =>
      deleteInBatches(async (limit, from) => {
        const deleted = await database.query(
          `DELETE FROM timeline WHERE id IN (
             SELECT id FROM timeline WHERE happened_at < (SELECT now_ms() - $1) AND happened_at >= $3 ORDER BY happened_at LIMIT $2)
           RETURNING happened_at`,
          [storedForMs, limit, from],
        );
        return deletedAt(deleted.map(({ happened_at }) => Number(happened_at)));
      }),
    async close() {
      await flush();
      await flush(); // what was recorded during the first one
      isClosed = true;
    },
  };
}

const suppressed = `more than ${maxAutomaticPerHour} changes of circuits, certificates and banks within an hour; further ones are only in the log`;

function entryOf(event: TimelineEvent, ownName: string, nowMs: number): OwnEntry {
  const { kind, text, who, environment, lane, instance, details = {}, id } = event;
  const isLong = JSON.stringify(details).length > maxDetailsLength;
  return {
    id: id ?? randomUUID(),
    recordedAtMs: performance.now(),
    entry: {
      at: new Date(nowMs).toISOString(),
      kind,
      instance: instance ?? ownName,
      who: who ?? null,
      environment: environment ?? null,
      lane: lane ?? null,
      text: text.slice(0, maxTextLength),
      details: isLong ? { omitted: 'too long; see the log' } : details,
    },
  };
}

const inputOf = ({ id, recordedAtMs, entry: { at: _, details, ...entry } }: OwnEntry) => ({
  ...{ id, age_ms: Math.round(performance.now() - recordedAtMs) },
  ...{ ...entry, details: JSON.stringify(details) },
});

const membersOf = ({ happened_at, details, id: _, ...row }: Row) => ({
  ...{ at: new Date(Number(happened_at)).toISOString(), ...row },
  details: JSON.parse(String(details)),
});

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
