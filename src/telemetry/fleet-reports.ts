/** What the instances report of themselves, as a table. Reports that a newer version has changed are ignored; so are additional members. */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { lanes } from '../pis/operations.ts';
import { parseStored } from '../state/parse-stored.ts';
import { type Database, type Row, rowsOfAll, statement, textOf } from '../store/database.ts';
import { tenantNumbers } from './initiations.ts';
import { bucketCount, type SecondCounts } from './live-stats.ts';

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
  /** Status reads that wait, open streams, and the polls for them. */
  waits: count,
  streams: count,
  pollsPerSecond: z.number(),
  overduePolls: count,
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

/** How an instance has answered a request to all of them to load their configuration again. */
const reloadOutcome = z.object({
  /** Of the request. */
  id: name,
  outcome: z.enum(['applied', 'refused']),
  errors: listOf(text),
  /** Changes that take effect after a restart. */
  restartRequired: listOf(text),
});

/** What the instance has found out: see src/alerts. */
const alert = z.object({
  id: name,
  key: text,
  severity: z.enum(['critical', 'warning', 'info']),
  environment: name.optional(),
  text,
  sinceMs: z.number(),
  overAtMs: z.number().optional(),
});

const report = z.object({
  ready: z.boolean(),
  reasons: listOf(text),
  figures,
  circuits: listOf(circuit),
  queues: listOf(queue),
  alerts: listOf(alert),
  /** Of the last request; `null` if there was none since the start. */
  reload: reloadOutcome.nullable(),
});

/** What an instance reports of itself. */
export type InstanceReport = Readonly<z.output<typeof report>> & {
  readonly version: string;
  /** Equal hashes: the same configuration (configuration-hash.ts). */
  readonly configurationHash: string;
};
export type InstanceFigures = Readonly<z.output<typeof figures>>;
export type ReloadOutcome = Readonly<z.output<typeof reloadOutcome>>;
export type ReportedAlert = Readonly<z.output<typeof alert>>;
export type ReportedCircuit = Readonly<z.output<typeof circuit>>;

const bucket = z
  .int()
  .min(0)
  .max(bucketCount - 1);

const tenantNumber = z
  .int()
  .min(0)
  .max(tenantNumbers - 1);

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
  initiations: listOf(
    z.object({
      ...{ environment: name, product: name, result: name, count },
      tenants: z
        .array(z.tuple([tenantNumber, count]).readonly())
        .max(tenantNumbers)
        .readonly(),
      bankMs: z.number().nonnegative(),
    }),
  ),
});

const storedReport = report.extend({
  /** The first and the last second that the instance has counted. */
  from: z.int(),
  through: z.int(),
});

/** The last report of an instance, as all instances read it. Times are the database's, in milliseconds since 1970. */
export interface StoredReport extends InstanceReport {
  readonly id: string;
  readonly startedAtMs: number;
  readonly reportedAtMs: number;
  readonly hasStopped: boolean;
  /** By how much its clock is ahead of the database's. */
  readonly clockDifferenceMs: number;
  readonly from: number;
  readonly through: number;
}

/** The report of this instance, with the time since its start. */
export type OwnReport = Omit<StoredReport, 'startedAtMs' | 'reportedAtMs'> & { readonly ageMs: number };

/** What has been reported since the last read. */
export interface NewReports {
  readonly databaseNowMs: number;
  readonly reports: readonly StoredReport[];
  readonly seconds: readonly { readonly instance: string; readonly counts: SecondCounts }[];
  readonly reloadRequest: StoredReloadRequest | undefined;
}

/** An operator's request that all instances load their configuration again. */
export interface StoredReloadRequest {
  readonly id: string;
  /** On the clock of the database. */
  readonly requestedAtMs: number;
  readonly who: string;
  readonly reason: string | undefined;
}

const write = statement({
  columns: {
    ...{ id: 'text', age_ms: 'bigint', has_stopped: 'boolean', version: 'text' },
    ...{ clock_difference_ms: 'bigint', configuration_hash: 'text', report: 'text' },
  },
  sql: (input) => `
    INSERT INTO instance_report (id, started_at, reported_at, stopped_at, version, clock_difference_ms, configuration_hash, report)
    SELECT i.id, now_ms() - i.age_ms, now_ms(), CASE WHEN i.has_stopped THEN now_ms() END, i.version, i.clock_difference_ms,
      i.configuration_hash, i.report
    FROM ${input} AS i WHERE true
    ON CONFLICT (id) DO UPDATE SET reported_at = excluded.reported_at, stopped_at = excluded.stopped_at,
      clock_difference_ms = excluded.clock_difference_ms, configuration_hash = excluded.configuration_hash, report = excluded.report
    RETURNING reported_at`,
});

const insertSeconds = statement({
  columns: { instance: 'text', second: 'bigint', counts: 'text' },
  sql: (input) => `
    INSERT INTO instance_second (instance, second, inserted_at, counts)
    SELECT i.instance, i.second, now_ms(), i.counts FROM ${input} AS i WHERE true
    ON CONFLICT (instance, second) DO NOTHING RETURNING second`,
});

/** How long an instance is listed after its last report. Milliseconds. */
export const listedForMs = 3_600_000;
/** How long seconds are kept: after a start, alerts look at the initiations of 15 minutes. Milliseconds. */
const secondsKeptMs = 960_000;
/** A statement that began so much earlier may be visible only now: the time-out of a statement, and a little more. Milliseconds. */
const overlapMs = 2_500;

/** How long the instances may take to load their configuration again. Milliseconds. */
export const reloadAnswerMs = 15_000;

const read = statement({
  isRead: true,
  columns: { since: 'bigint' },
  sql: (input) => `
    SELECT 'now' AS kind, '' AS id, 0 AS started_at, now_ms() AS reported_at, NULL AS stopped_at, '' AS version,
      0 AS clock_difference_ms, '' AS configuration_hash, '' AS content
    UNION ALL SELECT 'report', r.id, r.started_at, r.reported_at, r.stopped_at, r.version,
      r.clock_difference_ms, r.configuration_hash, r.report
    FROM ${input} AS i JOIN instance_report r ON r.reported_at > i.since WHERE r.reported_at > now_ms() - ${listedForMs}
    UNION ALL SELECT 'reload', q.id, 0, q.requested_at, NULL, q.who, 0, '', coalesce(q.reason, '')
    FROM ${input} AS i JOIN reload_request q ON q.requested_at > i.since
    UNION ALL SELECT 'second', s.instance, 0, s.inserted_at, NULL, '', 0, '', s.counts
    FROM ${input} AS i JOIN instance_second s ON s.inserted_at > i.since WHERE s.inserted_at > now_ms() - ${secondsKeptMs}`,
});

/** Every function @throws DatabaseError. */
export function createReportTable(database: Database) {
  return {
    /**
     * @param seconds with requests, which have not been stored yet
     * @returns the time of the database
     */
    async write(own: OwnReport, seconds: readonly SecondCounts[]): Promise<number> {
      const { id, ageMs, hasStopped, version, clockDifferenceMs, configurationHash, ...more } = own;
      // First: with the report, the others know that the seconds are complete.
      if (seconds.length > 0)
        await execute(
          insertSeconds,
          seconds.map((counts) => ({ instance: id, second: counts.at, counts: JSON.stringify(counts) })),
        );
      const [row] = await execute(write, [
        {
          ...{ id, age_ms: Math.round(ageMs), has_stopped: hasStopped, version },
          ...{ clock_difference_ms: Math.round(clockDifferenceMs), configuration_hash: configurationHash },
          report: JSON.stringify(more),
        },
      ]);
      return Number(row?.reported_at);
    },

    /** What was reported since the last read. @param last its `databaseNowMs`; `undefined` at first */
    async readSince(last: number | undefined): Promise<NewReports> {
      const rows = await execute(read, [{ since: last === undefined ? 0 : last - overlapMs }]);
      const ofKind = (kind: string) => rows.filter((row) => row.kind === kind);
      return {
        databaseNowMs: Number(ofKind('now')[0]?.reported_at),
        reports: ofKind('report').flatMap(reportOf),
        seconds: ofKind('second').flatMap(({ id, content }) => {
          const counts = parseStored(second, String(content));
          return counts ? [{ instance: String(id), counts }] : [];
        }),
        reloadRequest: ofKind('reload').map(reloadRequestOf)[0],
      };
    },

    /** @returns its id; `undefined` if another one was requested less than 15 s ago, and not all instances have answered it */
    async requestReload(who: string, reason: string | undefined): Promise<string | undefined> {
      const [row] = await database.query(
        `INSERT INTO reload_request AS q (only_row, id, requested_at, who, reason) VALUES (true, $1, now_ms(), $2, $3)
         ON CONFLICT (only_row) DO UPDATE SET id = excluded.id, requested_at = excluded.requested_at, who = excluded.who, reason = excluded.reason
         WHERE q.requested_at < now_ms() - $4 RETURNING id`,
        [randomUUID(), who, reason ?? null, reloadAnswerMs],
      );
      return textOf(row?.id);
    },

    /** All instances have answered. */
    async endReload(id: string): Promise<void> {
      await database.query('DELETE FROM reload_request WHERE id = $1', [id]);
    },

    async deleteOld(): Promise<void> {
      await database.query('DELETE FROM instance_report WHERE reported_at < now_ms() - $1', [listedForMs]);
      await database.query('DELETE FROM instance_second WHERE inserted_at < now_ms() - $1', [secondsKeptMs]);
    },
  };

  function execute(...batch: Parameters<typeof database.batch>): Promise<readonly Row[]> {
    return rowsOfAll(database.batch(...batch));
  }
}

export type ReportTable = ReturnType<typeof createReportTable>;

/** Its columns are those of a report. */
const reloadRequestOf = ({ id, reported_at, version: who, content: reason }: Row): StoredReloadRequest => ({
  ...{ id: String(id), requestedAtMs: Number(reported_at), who: String(who) },
  reason: reason === '' ? undefined : String(reason),
});

function reportOf(row: Row): readonly StoredReport[] {
  const parsed = parseStored(storedReport, String(row.content));
  if (!parsed) return [];
  return [
    {
      ...parsed,
      id: String(row.id),
      startedAtMs: Number(row.started_at),
      reportedAtMs: Number(row.reported_at),
      hasStopped: row.stopped_at !== null,
      version: String(row.version),
      clockDifferenceMs: Number(row.clock_difference_ms),
      configurationHash: String(row.configuration_hash),
    },
  ];
}
