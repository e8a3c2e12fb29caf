/**
 * Proves every second that the database accepts writes, by a report that this instance lives, and reads what operators may have changed on
 * another instance.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { ActiveEnvironment } from './environments/active-environment.ts';
import { createPeriodicTask, heartbeatMs, type PeriodicTask } from './periodic-task.ts';
import { type Database, DatabaseError } from './store/database.ts';
import { refuseWithoutAccess, UnusableDatabaseError } from './store/gateway-database.ts';
import type { InstanceTable } from './store/instances.ts';
import { type PostgresWarning, postgresWarningKinds } from './store/postgres-settings.ts';
import type { Log } from './telemetry/log.ts';
import type { Holds } from './upstream/circuit/holds.ts';

/** Runs every second, and every 250 ms while the database accepts no writes. */
export interface DatabaseHeartbeat extends PeriodicTask {
  /**
   * The first one, before the first request. A PostgreSQL that cannot be reached does not prevent the start.
   *
   * @throws UnusableDatabaseError, or Error that says what is wrong with the file
   */
  first(): Promise<void>;
  /** Whether it was found usable since the start, and this build may still use it. */
  isPrepared(): boolean;
  /** What is wrong with the database, as a sentence; `undefined` if nothing is. */
  problem(): string | undefined;
  /** When this instance has noticed the last failover since its start: milliseconds since 1970. */
  failedOverAtMs(): number | undefined;
  /** What may lose payments, although the database is usable; `undefined` until the database was read. */
  warnings(): readonly DatabaseWarning[] | undefined;
}

export const databaseWarningKinds = [...postgresWarningKinds, 'failover'] as const;

/** Why payments may be lost, or have been: a name, and a sentence for operators. */
export interface DatabaseWarning {
  readonly kind: (typeof databaseWarningKinds)[number];
  readonly text: string;
  /** Whether it has been so since the start of this instance. */
  readonly isOld: boolean;
}

interface DatabaseHeartbeatDependencies {
  readonly dialect: Database['dialect'];
  readonly instances: Pick<InstanceTable, 'report' | 'lostInFailover'>;
  /** Checks the schema, and applies the migrations that are missing. */
  readonly prepare: () => Promise<void>;
  /** What this instance has written lately. */
  readonly recent: {
    /** After a failover: writes again what the database has lost. @returns how many writes */
    writeBack(): Promise<number>;
    hasForgottenTooMuch(): boolean;
    forgetOld(): void;
  };
  /** What the settings of the server mean for payments. */
  readonly readWarnings: () => Promise<readonly PostgresWarning[]>;
  /** @throws UnusableDatabaseError if a migration has excluded this build */
  readonly checkSchema: () => Promise<void>;
  readonly activeEnvironment: Pick<ActiveEnvironment, 'read' | 'restore'>;
  readonly holds: Pick<Holds, 'refresh'>;
  readonly log: Log;
}

/** Interval after a failure. Milliseconds. */
const retryIntervalMs = 250;
/** The warnings are read at every fifth success, and after each failure. */
const beatsPerWarnings = 5;

/** A single failure may be a coincidence: two in a row are a problem. */
export function createDatabaseHeartbeat({
  dialect,
  instances,
  prepare,
  recent,
  readWarnings,
  checkSchema,
  activeEnvironment,
  holds,
  log,
}: DatabaseHeartbeatDependencies): DatabaseHeartbeat {
  let isPrepared = false;
  let beats = 0;
  let failures = 0;
  let problem: string | undefined;
  let warnings: readonly DatabaseWarning[] | undefined;
  let firstKinds: ReadonlySet<DatabaseWarning['kind']> | undefined;
  let failedOverAtMs: number | undefined;
  /** Whether this instance had forgotten some of what it should have written back. */
  let isIncomplete = false;
  /** The last failover of the database after which this instance has written back what it remembers. */
  let restored: string | undefined;

  async function beat(): Promise<void> {
    if (!isPrepared) await prepare();
    isPrepared = true;
    const failover = await instances.report(restored);
    restored ??= failover;
    await checkSchema(); // after the report: a migration that excludes this build has either seen the report, or is seen here
    if (failover !== restored) await restore(failover);
    restored = failover;
    recent.forgetOld();
    await activeEnvironment.read();
    await holds.refresh();
    if (beats++ % beatsPerWarnings === 0) await refreshWarnings();
  }

  /** Claims of all instances wait for it. */
  async function restore(failover: string): Promise<void> {
    const startedAtMs = performance.now();
    failedOverAtMs = Date.now();
    await activeEnvironment.restore();
    isIncomplete ||= recent.hasForgottenTooMuch();
    beats = 0;
    const writtenBack = await whileReporting(recent.writeBack());
    await instances.report(failover);
    const milliseconds = Math.round(performance.now() - startedAtMs);
    log('warn', 'the database has failed over to another server', { writtenBack, milliseconds });
  }

  /** Tens of thousands of writes take many seconds: the others wait for an instance that reports. */
  async function whileReporting<Result>(writing: Promise<Result>): Promise<Result> {
    const ended = writing.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([ended, sleep(heartbeatMs, false, { ref: false })])))
      await instances.report(restored).catch(() => {}); // the next one may succeed
    return writing;
  }

  async function refreshWarnings(): Promise<void> {
    const found = [
      ...(await readWarnings()),
      ...lostWarnings([...(await instances.lostInFailover()), ...(isIncomplete ? ['this instance'] : [])]),
    ];
    firstKinds ??= new Set(found.map(({ kind }) => kind));
    const known = firstKinds;
    const next = found.map((warning) => ({ ...warning, isOld: known.has(warning.kind) }));
    firstKinds = new Set(next.flatMap(({ kind, isOld }) => (isOld ? kind : [])));
    for (const { kind, text } of next)
      if (!warnings?.some((known) => known.kind === kind && known.text === text))
        log(kind === 'failover' ? 'error' : 'warn', 'the database may lose payments', { why: text });
    warnings = next;
  }

  function setProblem(next: string | undefined): void {
    if (next !== undefined && next !== problem) log('error', 'the database is unavailable', { why: next });
    if (next === undefined && problem !== undefined) log('info', 'the database is available again');
    problem = next;
  }

  const task = createPeriodicTask(async () => {
    try {
      await beat();
      failures = 0;
      setProblem(undefined);
    } catch (thrown) {
      failures += 1;
      await refreshWarnings().catch(() => {}); // they may be the cause: while a standby is missing, commits wait, and reads do not
      if (thrown instanceof UnusableDatabaseError) isPrepared = false;
      if (failures > 1 || !isPrepared) setProblem(reasonOf(thrown));
    }
    return failures === 0 ? heartbeatMs : retryIntervalMs;
  });

  return {
    ...task,
    async first() {
      try {
        await refuseWithoutAccess(beat());
      } catch (thrown) {
        if (!(thrown instanceof DatabaseError)) throw thrown;
        if (dialect === 'sqlite') throw new Error(thrown.reason, { cause: thrown });
        setProblem(thrown.reason);
      }
    },
    isPrepared: () => isPrepared,
    problem: () => problem,
    failedOverAtMs: () => failedOverAtMs,
    warnings: () => warnings,
  };
}

function lostWarnings(instances: readonly string[]): readonly Omit<DatabaseWarning, 'isOld'>[] {
  if (instances.length === 0) return [];
  const text =
    `after a failover of the database, ${instances.join(', ')} did not write back all that it had sent: payments of the last moments ` +
    'before it may be missing, and a repeat of them is paid again; ask the bank which payments it received then';
  return [{ kind: 'failover', text }];
}

/** For operators. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof DatabaseError) return thrown.reason;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
