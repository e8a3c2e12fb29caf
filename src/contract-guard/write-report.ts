/**
 * Writes the counts of this instance to the report of all instances, and finds new kinds of deviations in answers, which show that the
 * bank has changed. While the state is unavailable, a limited number of writes waits.
 */

import { createHash } from 'node:crypto';
import type { KeyValues, LogWrite, RequestLog } from '../state/ports.ts';
import type {
  CheckScope,
  CountedChecks,
  CountedDeviation,
  CountedMessages,
  Direction,
} from './deviation-counts.ts';
import {
  baselineSlice,
  counterName,
  dayMs,
  dayOf,
  decodeDetails,
  encodeDetails,
  mergeDetails,
  type RowDetails,
  sliceOfDay,
  valueName,
} from './report-days.ts';

export interface ReportWriter {
  /** Writes everything that was counted. Never rejects. @returns whether everything is stored */
  flush(): Promise<boolean>;
}

interface ReportWriterDependencies {
  readonly requestLog: Pick<RequestLog, 'append' | 'readValues'>;
  readonly keyValues: Pick<KeyValues, 'read' | 'writeIfAbsent' | 'write'>;
  /** The name of this instance; new after every start. */
  readonly instance: string;
  readonly take: () => CountedChecks | undefined;
  /** `contract.keepFor` in milliseconds. */
  readonly keepFor: () => number;
  /** Called once on one instance for each new kind of deviation in the answers of an environment. */
  readonly onChange: (deviation: CountedDeviation) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * The most different deviations that an instance adds to a day, by client: harmful and other ones of requests, and of answers, each. More than
 * ten thousand would delay payments while the day is read.
 */
const maxPerDay = 1_000;
/** How many counters, and how many values, one write has: it must not delay other commands of the state. */
const maxPerWrite = 250;
/** While the state is unavailable. */
const maxWaitingWrites = 100;
/**
 * How many answers of an operation are its baseline: what the bank has always done. A later deviation that none of them has is a
 * change of the bank.
 */
const baselineAnswers = 10;

interface WaitingWrite {
  readonly day: number;
  readonly write: LogWrite;
  /** The deviations that it counts. */
  readonly deviations: readonly CountedDeviation[];
}

/** A counter, and the deviations that it counts. */
interface CountedRow {
  readonly counter: string;
  readonly by: number;
  readonly deviations?: readonly CountedDeviation[];
}

export function createReportWriter({
  requestLog,
  keyValues,
  instance,
  take,
  keepFor,
  onChange,
  now = Date.now,
}: ReportWriterDependencies): ReportWriter {
  const waiting: WaitingWrite[] = [];
  let today = startDay(dayOf(now()));
  /** The end of the last flush that stored everything: milliseconds since 1970. */
  let storedAtMs = now();
  /** Answers that were checked since the last flush, of operations that may not have a baseline. */
  let uncounted = new Map<string, number>();
  let nextNumber = 0;
  let flushing: Promise<boolean> | undefined;

  async function flushAll(): Promise<boolean> {
    try {
      const counted = waiting.length < maxWaitingWrites ? take() : undefined;
      if (counted) await prepareWrites(counted);
      for (let [first] = waiting; first; [first] = waiting) {
        const { day, write } = first;
        const ttlMs = (day + 1) * dayMs + keepFor() - now();
        const totals = ttlMs > 0 ? await requestLog.append(sliceOfDay(day), { ...write, ttlMs }) : [];
        if (day === today.day && isLost(write, totals)) resetAfterLoss(first, totals);
        await announceChanges(first); // if it fails, the next flush repeats both; a repeated write has no effect
        waiting.shift();
      }
      await recordBaselines();
      storedAtMs = now();
      return true;
    } catch {
      return false; // the state is unavailable: the next flush tries again
    }
  }

  /** Queues writes with the counts. If the values of other instances cannot be read, it replaces them. */
  async function prepareWrites({ deviations: all, messages, skipped }: CountedChecks): Promise<void> {
    const day = dayOf(now());
    if (day !== today.day) today = startDay(day);
    const { details, knownKeys } = today;
    const { deviations = [], notCounted = [] } = Object.groupBy(all, (row) =>
      hasRoom(row) ? 'deviations' : 'notCounted',
    );
    const updates = [
      ...messages.map((row) => ({ name: valueName.messages(row), row, requestId: undefined })),
      ...deviations.map((row) => ({ name: valueName.deviation(row), row, requestId: row.requestId })),
    ];
    for (const row of messages.filter(isAnswer)) {
      const key = baselineKey(row);
      if (!knownKeys.has(key)) uncounted.set(key, (uncounted.get(key) ?? 0) + row.count);
    }
    if (updates.some(({ name }) => !details.has(name))) await readDetails(day);
    const changed = new Map<string, RowDetails>();
    for (const { name, row, requestId } of updates) {
      const lastMs = 'lastMs' in row ? row.lastMs : row.firstMs;
      const merged = mergeDetails({ firstMs: row.firstMs, lastMs, requestId }, details.get(name));
      details.set(name, merged);
      changed.set(name, merged);
    }
    const rows: readonly CountedRow[] = [
      ...messages.map((row) => ({ counter: counterName.messages(row), by: row.count })),
      ...deviations.map((row) => ({ counter: counterName.deviation(row), by: row.count, deviations: [row] })),
      ...skipped.map((row) => ({ counter: counterName.skipped(row), by: row.count })),
      ...notCountedRows(notCounted),
    ];
    const values = Array.from(changed, ([name, value]) => detailsValue(name, value));
    const count = Math.ceil(Math.max(rows.length, values.length) / maxPerWrite);
    for (let part = 0; part < count; part++) {
      const range = [part * maxPerWrite, (part + 1) * maxPerWrite] as const;
      const partRows = rows.slice(...range);
      const counters = partRows.map(({ counter, by }) => ({ name: counter, by }));
      const counted = partRows.flatMap((row) => row.deviations ?? []);
      addWrite(day, { values: values.slice(...range), counters }, counted);
    }
  }

  /** Whether the day has room for a deviation. Other ones cannot take the places of harmful ones. */
  function hasRoom(row: CountedDeviation): boolean {
    const known = today.deviationNames[row.direction][row.level === 'harmful' ? 'harmful' : 'other'];
    const name = counterName.deviation(row);
    if (!known.has(name) && known.size >= maxPerDay) return false;
    known.add(name);
    return true;
  }

  /** Whether a counter is smaller than this instance last saw it: the state has lost data. */
  function isLost({ counters }: LogWrite, totals: readonly number[]): boolean {
    let isSmaller = false;
    for (const [at, { name }] of counters.entries()) {
      const total = totals[at];
      if (total === undefined) continue;
      if (total < (today.totals.get(name) ?? 0)) isSmaller = true;
      today.totals.set(name, total);
    }
    return isSmaller;
  }

  /** Drops the copy of the day, and corrects the values of the write that has found the loss, and of those that wait. */
  function resetAfterLoss({ day, write }: WaitingWrite, totals: readonly number[]): void {
    today = { ...startDay(day), deviationNames: today.deviationNames };
    isLost(write, totals); // remembers the counters
    const corrected = ({ values }: LogWrite) =>
      values.flatMap(({ name, value }) => {
        const known = decodeDetails(value);
        if (!known) return [];
        const details = { ...known, firstMs: Math.max(known.firstMs, storedAtMs) };
        today.details.set(name, details);
        return [detailsValue(name, details)];
      });
    for (const [at, one] of waiting.entries())
      if (at > 0 && one.day === day)
        waiting[at] = { ...one, write: { ...one.write, values: corrected(one.write) } };
    addWrite(day, { values: corrected(write), counters: [] }, []);
  }

  function addWrite(
    day: number,
    content: Pick<LogWrite, 'values' | 'counters'>,
    deviations: readonly CountedDeviation[],
  ): void {
    const write = { ...emptyWrite, writer: `${instance} contract`, number: nextNumber++, ...content };
    waiting.push({ day, write, deviations });
  }

  async function readDetails(day: number): Promise<void> {
    const stored = await requestLog.readValues(sliceOfDay(day), 'errors').catch(() => undefined);
    for (const [name, value] of stored ?? []) {
      const decoded = decodeDetails(value);
      if (decoded) today.details.set(name, mergeDetails(decoded, today.details.get(name)));
    }
  }

  /**
   * Finds new kinds of deviations in answers. They are changes of the bank if the operation has a baseline; otherwise they become a
   * part of it.
   */
  async function announceChanges({ day, write, deviations }: WaitingWrite): Promise<void> {
    const { knownKeys } = today;
    const finder = `${instance} ${write.number}`;
    for (const deviation of deviations.filter(canBeChange)) {
      const kind = kindKey(deviation);
      if (knownKeys.has(kind)) continue;
      const hasBaseline = (await keyValues.read(baselineKey(deviation))) !== undefined;
      const isAbsent = await keyValues.writeIfAbsent(kind, finder, keepFor());
      // An earlier flush of this write may have failed after it wrote the kind.
      const knownFinder = isAbsent ? finder : await keyValues.read(kind);
      if (knownFinder === finder) {
        if (hasBaseline) raiseAlert(day, deviation);
      } else {
        await keyValues.write(kind, knownFinder ?? '', keepFor()); // renews its expiry
      }
      knownKeys.add(kind);
    }
  }

  /** Counts answers for the baselines. If the state fails, these answers are lost, and the baseline is complete later. */
  async function recordBaselines(): Promise<void> {
    if (uncounted.size === 0) return;
    const counters = Array.from(uncounted, ([name, by]) => ({ name, by }));
    uncounted = new Map();
    const write = { ...emptyWrite, writer: `${instance} contract baseline`, number: nextNumber++, counters };
    const totals = await requestLog.append(baselineSlice, { ...write, ttlMs: keepFor() });
    for (const [index, { name }] of counters.entries()) {
      if ((totals[index] ?? 0) < baselineAnswers) continue;
      await keyValues.write(name, '1', keepFor());
      today.knownKeys.add(name);
    }
  }

  function raiseAlert(day: number, deviation: CountedDeviation): void {
    onChange(deviation);
    const { firstMs, lastMs, requestId } = deviation;
    const changed = { firstMs, lastMs, requestId, changedMs: now() };
    addWrite(day, { values: [detailsValue(valueName.change(deviation), changed)], counters: [] }, []);
  }

  return {
    flush() {
      flushing ??= flushAll().finally(() => {
        flushing = undefined;
      });
      return flushing;
    },
  };
}

/** What an instance knows of a day's report. */
interface KnownDay {
  readonly day: number;
  /** The values, by name. */
  readonly details: Map<string, RowDetails>;
  /** The counters that it has written, as it last saw them. */
  readonly totals: Map<string, number>;
  /** The names of the counters of its deviations. */
  readonly deviationNames: Readonly<Record<Direction, Readonly<Record<'harmful' | 'other', Set<string>>>>>;
  /** Keys of kinds of deviations and of baselines that it has found in the state, or written. */
  readonly knownKeys: Set<string>;
}

const startDay = (day: number): KnownDay => ({
  day,
  details: new Map(),
  totals: new Map(),
  deviationNames: { request: noNames(), response: noNames() },
  knownKeys: new Set(),
});

const noNames = () => ({ harmful: new Set<string>(), other: new Set<string>() });

/** One row for each environment and direction. A change of the bank is announced also if it is not counted. */
function notCountedRows(deviations: readonly CountedDeviation[]): readonly CountedRow[] {
  const nameOf = (row: CountedDeviation) => counterName.skipped({ ...row, reason: 'not-counted' });
  return Object.entries(Object.groupBy(deviations, nameOf)).map(([counter, rows = []]) => ({
    counter,
    by: rows.reduce((sum, { count }) => sum + count, 0),
    deviations: rows.filter(canBeChange),
  }));
}

const emptyWrite = { ttlMs: 0, index: new Map<never, never>(), values: [] } as const;

const detailsValue = (name: string, details: RowDetails) =>
  ({ group: 'errors', name, value: encodeDetails(details) }) as const;

/**
 * Whether a new kind of this deviation is a change of the bank. Deviations that every bank has are none, nor is the form of an error:
 * errors are rare, so that the baseline may contain none.
 */
const canBeChange = (deviation: CountedDeviation) =>
  isAnswer(deviation) &&
  deviation.level !== 'usual' &&
  deviation.path !== 'error' &&
  !deviation.path.startsWith('error/');

const isAnswer = ({ isOwn, direction }: CheckScope) => isOwn && direction === 'response';

function kindKey({ environment, hash, operation, path, rule }: CountedDeviation): string {
  return `contract-kind:${digest([environment, hash, operation, path, rule])}`;
}

function baselineKey({ environment, hash, operation }: CountedMessages | CountedDeviation): string {
  return `contract-baseline:${digest([environment, hash, operation])}`;
}

const digest = (names: readonly string[]) =>
  createHash('sha256').update(JSON.stringify(names)).digest('base64url').slice(0, 22);
