/** Reads the report of all instances: deviations, checked messages and skipped messages. */

import { type ContractReportTable, dayMs, dayOf } from '../store/contract-report.ts';
import { type Row, textOf } from '../store/database.ts';
import type { CheckScope, Direction } from './deviation-counts.ts';

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
  /** The harmful ones first, then the most frequent ones. */
  readonly deviations: readonly ReportedDeviation[];
  readonly messages: readonly ReportedMessages[];
  readonly skipped: readonly ReportedSkips[];
}

/** One deviation, summed over all days and clients. A later release may have other operations, rules, levels and effects. */
export interface ReportedDeviation extends CheckScope {
  readonly operation: string;
  readonly path: string;
  readonly rule: string;
  readonly level: string;
  readonly effect: string;
  /** The hash of the environment's own contract at that time, if both contracts refused the requests. */
  readonly alsoRefusedBy?: string | undefined;
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** When the alert "the bank has changed" was raised for it: milliseconds since 1970. */
  readonly changedMs?: number | undefined;
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

interface ReportedSkips {
  readonly environment: string;
  readonly direction: Direction;
  readonly reason: string;
  readonly count: number;
}

interface ReportReaderDependencies {
  readonly table: Pick<ContractReportTable, 'deviations' | 'checks' | 'skips'>;
  /** Writes what this instance has counted. */
  readonly flush: () => Promise<unknown>;
  /** `contract.keepFor` in milliseconds. */
  readonly keepFor: () => number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export function createReportReader({
  table,
  flush,
  keepFor,
  now = Date.now,
}: ReportReaderDependencies): ReportReader {
  return {
    async read(fromMs) {
      await flush(); // if it fails, the last counts of this instance are missing
      const day = dayOf(Math.max(fromMs, now() - keepFor()));
      const [deviations, checks, skips] = await Promise.all([
        table.deviations(day),
        table.checks(day),
        table.skips(day),
      ]);
      return {
        fromMs: day * dayMs,
        deviations: groupClients(deviations, deviationOf).map(sumDeviation).toSorted(byImportance),
        messages: groupClients(checks, scopeOf).map((rows) => ({ ...scopeOf(rows[0]), ...sumClients(rows) })),
        skipped: skips.map((row) => ({
          environment: String(row.environment),
          direction: directionOf(row),
          reason: String(row.reason),
          count: Number(row.messages),
        })),
      };
    },
  };
}

type Rows = readonly [Row, ...Row[]];

/** @returns the rows of all clients together @param identify what they have in common */
const groupClients = (rows: readonly Row[], identify: (row: Row) => object): readonly Rows[] => {
  const groups = new Map<string, [Row, ...Row[]]>();
  for (const row of rows) {
    const key = JSON.stringify(identify(row));
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()];
};

function sumClients(rows: Rows) {
  const clients = rows.map(({ client, messages }) => ({ client: String(client), count: Number(messages) }));
  return {
    count: clients.reduce((sum, { count }) => sum + count, 0),
    firstMs: Math.min(...rows.map((row) => Number(row.first_at))),
    clients: clients.toSorted((one, other) => other.count - one.count),
  };
}

function sumDeviation(rows: Rows): ReportedDeviation {
  const { changed_at: changedAt } = rows[0];
  const [last = ''] = rows
    .map((row) => String(row.last))
    .toSorted()
    .toReversed();
  const lastMs = Number.parseInt(last, 10);
  return {
    ...deviationOf(rows[0]),
    ...sumClients(rows),
    lastMs,
    requestId: last.slice(last.indexOf(' ') + 1),
    changedMs: typeof changedAt === 'number' ? changedAt : undefined,
  };
}

const deviationOf = (row: Row) => ({
  ...scopeOf(row),
  operation: String(row.operation),
  path: String(row.path),
  rule: String(row.rule),
  level: String(row.level),
  effect: String(row.effect),
  alsoRefusedBy: textOf(row.also_refused_by),
});

const scopeOf = (row: Row) => ({
  environment: String(row.environment),
  hash: String(row.contract),
  isOwn: Boolean(row.is_own),
  direction: directionOf(row),
});

const directionOf = ({ direction }: Row): Direction => (direction === 'request' ? 'request' : 'response');

const levels = ['harmful', 'notable', 'usual'];

function byImportance(one: ReportedDeviation, other: ReportedDeviation): number {
  return levels.indexOf(one.level) - levels.indexOf(other.level) || other.count - one.count;
}
