/** Reads the report of all instances: deviations, checked messages and skipped messages. */

import { setImmediate } from 'node:timers/promises';
import type { RequestLog } from '../state/ports.ts';
import type { CheckScope } from './deviation-counts.ts';
import {
  dayMs,
  dayOf,
  decodeDay,
  mergeDetails,
  type RowDetails,
  type StoredDay,
  type StoredDeviation,
  type StoredMessages,
  type StoredSkipped,
  sliceOfDay,
} from './report-days.ts';

export interface ReportReader {
  /**
   * Reads everything that was stored since a time.
   *
   * @param fromMs milliseconds since 1970; the report has whole days
   * @throws GatewayError STATE_UNAVAILABLE
   */
  read(fromMs: number): Promise<ContractReport>;
}

export interface ContractReport {
  /** The beginning of the first day: milliseconds since 1970. */
  readonly fromMs: number;
  readonly deviations: readonly ReportedDeviation[];
  readonly messages: readonly ReportedMessages[];
  readonly skipped: readonly StoredSkipped[];
}

/** One deviation, summed over all days and clients. */
export interface ReportedDeviation
  extends Omit<StoredDeviation, 'client' | 'valueName'>,
    Omit<RowDetails, 'requestId'> {
  /** Of the last message. */
  readonly requestId: string;
  /** The most frequent first. */
  readonly clients: readonly ClientCount[];
}

export interface ClientCount {
  readonly client: string;
  readonly count: number;
}

/** Messages of one environment that were checked against one contract. */
export interface ReportedMessages extends CheckScope {
  readonly count: number;
  /** When the first one was checked against this contract: milliseconds since 1970. */
  readonly firstMs: number;
  readonly clients: readonly ClientCount[];
}

interface ReportReaderDependencies {
  readonly requestLog: Pick<RequestLog, 'readCounters' | 'readValues'>;
  /** Writes what this instance has counted. */
  readonly flush: () => Promise<unknown>;
  /** `contract.keepFor` in milliseconds. */
  readonly keepFor: () => number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export function createReportReader({
  requestLog,
  flush,
  keepFor,
  now = Date.now,
}: ReportReaderDependencies): ReportReader {
  async function readDay(day: number): Promise<StoredDay> {
    const [counters, values] = await Promise.all([
      requestLog.readCounters(sliceOfDay(day)),
      requestLog.readValues(sliceOfDay(day), 'errors'),
    ]);
    return decodeDay(counters, values);
  }

  return {
    async read(fromMs) {
      await flush(); // if it fails, the reads fail as well
      const first = dayOf(Math.max(fromMs, now() - keepFor()));
      const last = dayOf(now());
      const sums = createSums();
      for (let day = first; day <= last; day++) {
        sums.add(await readDay(day)); // one at a time: payments use the same connection
        await setImmediate();
      }
      return { fromMs: first * dayMs, ...sums.report() };
    },
  };
}

interface Sum<Row> {
  readonly row: Row;
  count: number;
  details: RowDetails | undefined;
  readonly clients: Map<string, number>;
}

function createSums() {
  const deviations = new Map<string, Sum<StoredDeviation>>();
  const messages = new Map<string, Sum<StoredMessages>>();
  const skipped = new Map<string, StoredSkipped>();

  function addTo<Row extends StoredDeviation | StoredMessages>(
    sums: Map<string, Sum<Row>>,
    row: Row,
  ): Sum<Row> {
    const sum = sums.get(row.valueName) ?? { row, count: 0, details: undefined, clients: new Map() };
    sums.set(row.valueName, sum);
    sum.count += row.count;
    sum.clients.set(row.client, (sum.clients.get(row.client) ?? 0) + row.count);
    return sum;
  }

  return {
    add(day: StoredDay): void {
      const touched = new Set([
        ...day.deviations.map((row) => addTo(deviations, row)),
        ...day.messages.map((row) => addTo(messages, row)),
      ]);
      for (const sum of touched) {
        const details = day.details.get(sum.row.valueName);
        if (details) sum.details = mergeDetails(details, sum.details);
      }
      for (const row of day.skipped) {
        const key = `${row.environment} ${row.direction} ${row.reason}`;
        skipped.set(key, { ...row, count: row.count + (skipped.get(key)?.count ?? 0) });
      }
    },
    report: (): Omit<ContractReport, 'fromMs'> => ({
      deviations: [...deviations.values()]
        .map(({ row: { client: _, valueName: __, ...row }, count, details, clients }) => ({
          ...row,
          count,
          firstMs: details?.firstMs ?? 0,
          lastMs: details?.lastMs ?? 0,
          changedMs: details?.changedMs,
          requestId: details?.requestId ?? '',
          clients: clientCounts(clients),
        }))
        .toSorted(byImportance),
      messages: Array.from(
        messages.values(),
        ({ row: { environment, hash, isOwn, direction }, count, details, clients }) => ({
          ...{ environment, hash, isOwn, direction },
          count,
          firstMs: details?.firstMs ?? 0,
          clients: clientCounts(clients),
        }),
      ),
      skipped: [...skipped.values()],
    }),
  };
}

const clientCounts = (clients: ReadonlyMap<string, number>): readonly ClientCount[] =>
  Array.from(clients, ([client, count]) => ({ client, count })).toSorted(
    (one, other) => other.count - one.count,
  );

const levels = ['harmful', 'notable', 'usual'];

function byImportance(one: ReportedDeviation, other: ReportedDeviation): number {
  return levels.indexOf(one.level) - levels.indexOf(other.level) || other.count - one.count;
}
