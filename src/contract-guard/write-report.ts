/**
 * Writes what this instance has counted to the report that all instances share, and finds new kinds of deviations in answers: the
 * bank has changed. While the state is unavailable, what was counted waits, within a limit.
 */

import { createHash } from 'node:crypto';
import type { KeyValues, LogWrite, RequestLog } from '../state/ports.ts';
import type { CountedChecks, CountedDeviation, CountedMessages } from './deviation-counts.ts';
import {
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
  /** Writes what was counted. Never rejects. @returns whether everything is stored */
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

/** Counters and values in one write: it must not delay other commands of the state. */
const maxPerWrite = 250;
/** While the state is unavailable. */
const maxWaitingWrites = 100;
/**
 * Answers of an operation after which a deviation that none of them has is a change of the bank. Those before show what the bank
 * has always done.
 */
const baselineAnswers = 10;

interface WaitingWrite {
  readonly day: number;
  readonly write: LogWrite;
  /** What the first counters of the write count. */
  readonly messages: readonly CountedMessages[];
  readonly deviations: readonly CountedDeviation[];
}

/** A counter, and what it counts. */
interface CountedRow {
  readonly counter: string;
  readonly by: number;
  readonly message?: CountedMessages;
  readonly deviation?: CountedDeviation;
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
  /** The values of the day, as this instance knows them. */
  let details = new Map<string, RowDetails>();
  let detailsDay = 0;
  /** Kinds of deviations in answers, and operations with a baseline, that this instance has announced on this day. */
  let announced = new Set<string>();
  let nextNumber = 0;
  let flushing: Promise<boolean> | undefined;

  async function flushAll(): Promise<boolean> {
    try {
      const counted = waiting.length < maxWaitingWrites ? take() : undefined;
      if (counted) await prepareWrites(counted);
      const baselines: string[] = [];
      for (let [first] = waiting; first; [first] = waiting) {
        const { day, write } = first;
        const ttlMs = (day + 1) * dayMs + keepFor() - now();
        const totals = ttlMs > 0 ? await requestLog.append(sliceOfDay(day), { ...write, ttlMs }) : [];
        waiting.shift();
        await announceChanges(first);
        baselines.push(...baselinesIn(first, totals));
      }
      await recordBaselines(baselines);
      return true;
    } catch {
      return false; // the state is unavailable: the next flush tries again
    }
  }

  /** The writes of what was counted. If the values cannot be read, it is written without those of other instances. */
  async function prepareWrites({ deviations, messages, skipped }: CountedChecks): Promise<void> {
    const day = dayOf(now());
    const updates = [
      ...messages.map((row) => ({ name: valueName.messages(row), row, requestId: undefined })),
      ...deviations.map((row) => ({ name: valueName.deviation(row), row, requestId: row.requestId })),
    ];
    if (day !== detailsDay) {
      details = new Map();
      announced = new Set();
      detailsDay = day;
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
      ...messages.map((row) => ({ counter: counterName.messages(row), by: row.count, message: row })),
      ...deviations.map((row) => ({ counter: counterName.deviation(row), by: row.count, deviation: row })),
      ...skipped.map((row) => ({ counter: counterName.skipped(row), by: row.count })),
    ];
    const values = Array.from(changed, ([name, value]) => detailsValue(name, value));
    const count = Math.ceil(Math.max(rows.length, values.length) / maxPerWrite);
    for (let part = 0; part < count; part++) {
      const range = [part * maxPerWrite, (part + 1) * maxPerWrite] as const;
      const partRows = rows.slice(...range);
      addWrite(day, {
        values: values.slice(...range),
        counters: partRows.map(({ counter, by }) => ({ name: counter, by })),
        messages: partRows.flatMap(({ message }) => message ?? []),
        deviations: partRows.flatMap(({ deviation }) => deviation ?? []),
      });
    }
  }

  function addWrite(
    day: number,
    {
      values,
      counters,
      messages,
      deviations,
    }: Pick<LogWrite, 'values' | 'counters'> & Omit<WaitingWrite, 'day' | 'write'>,
  ): void {
    const write = {
      writer: `${instance} contract`,
      number: nextNumber++,
      ttlMs: 0,
      index: new Map(),
      values,
      counters,
    };
    waiting.push({ day, write, messages, deviations });
  }

  async function readDetails(day: number): Promise<void> {
    const stored = await requestLog.readValues(sliceOfDay(day), 'errors').catch(() => undefined);
    for (const [name, value] of stored ?? []) {
      const decoded = decodeDetails(value);
      if (decoded) details.set(name, mergeDetails(decoded, details.get(name)));
    }
  }

  /**
   * Finds new kinds of deviations in answers. They are changes if this bank has a baseline for the operation; otherwise, they
   * become a part of it.
   */
  async function announceChanges({ day, deviations }: WaitingWrite): Promise<void> {
    for (const deviation of deviations.filter(isOfBank)) {
      const kind = kindKey(deviation);
      if (announced.has(kind)) continue;
      const hasBaseline = (await keyValues.read(baselineKey(deviation))) !== undefined;
      const isNew = await keyValues.writeIfAbsent(kind, '1', keepFor());
      announced.add(kind);
      if (isNew && hasBaseline) raise(day, deviation);
      if (!isNew) await keyValues.write(kind, '1', keepFor()); // seen again: it stays known for longer
    }
  }

  async function recordBaselines(keys: readonly string[]): Promise<void> {
    for (const key of keys.filter((each) => !announced.has(each))) {
      await keyValues.write(key, '1', keepFor());
      announced.add(key);
    }
  }

  function raise(day: number, deviation: CountedDeviation): void {
    onChange(deviation);
    const name = valueName.deviation(deviation);
    const { firstMs, lastMs, requestId } = deviation;
    const changed = { ...(details.get(name) ?? { firstMs, lastMs, requestId }), changedMs: now() };
    details.set(name, changed);
    addWrite(day, { values: [detailsValue(name, changed)], counters: [], messages: [], deviations: [] });
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

/** @param totals the new values of the counters of the write, of all instances */
const baselinesIn = ({ messages }: WaitingWrite, totals: readonly number[]): readonly string[] =>
  messages
    .filter(
      (row, index) => row.isOwn && row.direction === 'response' && (totals[index] ?? 0) >= baselineAnswers,
    )
    .map(baselineKey);

const detailsValue = (name: string, details: RowDetails) =>
  ({ group: 'errors', name, value: encodeDetails(details) }) as const;

/**
 * A deviation that every bank has is no change. Nor is the form of an error: errors are rare, so that the answers before show nothing
 * about it.
 */
const isOfBank = ({ isOwn, direction, level, path }: CountedDeviation) =>
  isOwn && direction === 'response' && level !== 'usual' && path !== 'error' && !path.startsWith('error/');

function kindKey({ environment, hash, operation, path, rule }: CountedDeviation): string {
  return `contract-kind:${digest([environment, hash, operation, path, rule])}`;
}

function baselineKey({ environment, hash, operation }: CountedMessages | CountedDeviation): string {
  return `contract-baseline:${digest([environment, hash, operation])}`;
}

const digest = (names: readonly string[]) =>
  createHash('sha256').update(JSON.stringify(names)).digest('base64url').slice(0, 22);
