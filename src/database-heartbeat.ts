/**
 * Proves every second that the database accepts writes, by a report that this instance lives, and reads what operators may have changed on
 * another instance.
 */

import type { ActiveEnvironment } from './environments/active-environment.ts';
import { createPeriodicTask, heartbeatMs, type PeriodicTask } from './periodic-task.ts';
import { type Database, DatabaseError } from './store/database.ts';
import { refuseWithoutAccess, UnusableDatabaseError } from './store/gateway-database.ts';
import type { InstanceTable } from './store/instances.ts';
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
}

interface DatabaseHeartbeatDependencies {
  readonly dialect: Database['dialect'];
  readonly instances: Pick<InstanceTable, 'report'>;
  /** Checks the schema, and applies the migrations that are missing. */
  readonly prepare: () => Promise<void>;
  /** @throws UnusableDatabaseError if a migration has excluded this build */
  readonly checkSchema: () => Promise<void>;
  readonly activeEnvironment: Pick<ActiveEnvironment, 'read'>;
  readonly holds: Pick<Holds, 'refresh'>;
  readonly log: Log;
}

/** Interval after a failure. Milliseconds. */
const retryIntervalMs = 250;

/** A single failure may be a coincidence: two in a row are a problem. */
export function createDatabaseHeartbeat({
  dialect,
  instances,
  prepare,
  checkSchema,
  activeEnvironment,
  holds,
  log,
}: DatabaseHeartbeatDependencies): DatabaseHeartbeat {
  let isPrepared = false;
  let failures = 0;
  let problem: string | undefined;

  async function beat(): Promise<void> {
    if (!isPrepared) await prepare();
    isPrepared = true;
    await instances.report();
    await checkSchema(); // after the report: a migration that excludes this build has either seen the report, or is seen here
    await activeEnvironment.read();
    await holds.refresh();
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
  };
}

/** For operators. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof DatabaseError) return thrown.reason;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
