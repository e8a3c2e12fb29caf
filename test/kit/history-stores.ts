/** The database and the Redis of a random history, as one of its instances reaches them: a statement may fail, or its answer be lost. */

import { GatewayError } from '../../src/request/errors.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { type Columns, type Database, DatabaseError } from '../../src/store/database.ts';
import { createSharedBuckets } from './shared-buckets.ts';
import type { SimulatedProcess, SimulatedProcesses } from './simulated-processes.ts';

/** `before` and `after` lose the connection: the statement has no effect, or its effect is not known. */
export type StatementFate =
  | 'executed'
  | 'unreachable'
  | 'lost before'
  | 'lost after'
  | 'killed before'
  | 'killed after'
  | 'paused before'
  | 'paused after';

interface HistoryDatabaseOptions {
  readonly processes: SimulatedProcesses;
  readonly process: SimulatedProcess;
  readonly dialect: Database['dialect'];
  readonly fateOf: (statement: string) => StatementFate;
  readonly pause: () => void;
  /** How many turns of the event loop it takes. */
  readonly turns: () => number;
  /** Before each statement, for the clock of a PostgreSQL. */
  readonly prepare?: (() => Promise<void>) | undefined;
}

/** The database of one instance. @param shared with its other instances, and with those that follow it */
export function createHistoryDatabase(
  shared: Database,
  { processes, process, dialect, fateOf, pause, turns, prepare }: HistoryDatabaseOptions,
): Database {
  async function execute<Result>(statement: string, run: () => Promise<Result>): Promise<Result> {
    processes.touch();
    await processes.turns(turns());
    await process.gate();
    const fate = fateOf(statement);
    if (fate === 'killed before') process.kill();
    if (fate === 'paused before') pause();
    await process.gate();
    if (fate === 'unreachable') throw new DatabaseError('cannot be reached', 'none');
    if (fate === 'lost before') throw new DatabaseError('the connection is lost before', 'unknown');
    if (prepare) await processes.awaitReal(prepare());
    const result = await (prepare ? processes.awaitReal(run()) : run());
    if (fate === 'killed after') process.kill();
    if (fate === 'paused after') pause();
    processes.touch();
    await processes.turns(turns());
    await process.gate();
    processes.touch();
    if (fate === 'lost after') throw new DatabaseError('the connection is lost after', 'unknown');
    return result;
  }

  return {
    ...shared,
    dialect,
    batch: <Input extends Columns>(...[statement, rows]: Parameters<typeof shared.batch<Input>>) =>
      execute(statement.sql('input', 'changed'), () => shared.batch(statement, rows)),
    query(sql, values) {
      const answer = shared.dialect === dialect ? undefined : answerOfPostgres(sql);
      return execute(sql, async () => answer ?? shared.query(sql, values));
    },
    execute: (script) => execute(script, () => shared.execute(script)),
    close: async () => {},
  };
}

/** What a gateway asks a PostgreSQL at its start; SQLite in its place executes all other statements. */
function answerOfPostgres(sql: string) {
  if (sql.includes('to_regclass')) return [{ one: 1 }];
  if (!sql.includes('current_setting')) return undefined;
  const settings = {
    ...{ lock_timeout: '200ms', statement_timeout: '2s', synchronous_commit: 'on' },
    default_transaction_isolation: 'read committed',
  };
  return [
    {
      ...settings,
      server_encoding: 'UTF8',
      server_version: '17',
      server_version_num: '170000',
      is_read_only: false,
    },
  ];
}

export interface HistoryRedis {
  /** The state of an instance. */
  stateOf(process: SimulatedProcess): State;
  /** It loses everything. */
  lose(): void;
  /** Until `return`, it cannot be reached; messages are lost. */
  vanish(): void;
  return(): void;
}

/** In place of a Redis that several instances share. */
export function createHistoryRedis(processes: SimulatedProcesses, server: SimulatedProcess): HistoryRedis {
  let isReachable = true;
  let stored = server.run(newStore);
  const listeners = new Set<(channel: string, message: string) => void>();

  function newStore() {
    return { ...createMemoryState(), tokenBuckets: createSharedBuckets(processes.now) };
  }

  /** The same functions, which answer as those of a server do. */
  function remote<Part extends object>(process: SimulatedProcess, part: () => Part): Part {
    const call = async (name: string | symbol, values: unknown[]) => {
      await process.gate();
      if (!isReachable) throw new GatewayError('STATE_UNAVAILABLE', 'Redis cannot be reached');
      const method: (...all: unknown[]) => unknown = Reflect.get(part() as object, name);
      const result = await server.run(() => method(...values));
      processes.touch();
      await process.gate();
      return result;
    };
    return new Proxy(part(), {
      get(target, name) {
        const value = Reflect.get(target, name);
        return typeof value === 'function' ? (...values: unknown[]) => call(name, values) : value;
      },
    });
  }

  return {
    stateOf: (process) => ({
      keyValues: remote(process, () => stored.keyValues),
      tokenBuckets: remote(process, () => stored.tokenBuckets),
      pubsub: {
        async publish(channel, message) {
          await process.gate();
          if (isReachable) for (const listener of listeners) listener(channel, message);
        },
        subscribe(channel, listener) {
          const receive = (to: string, message: string) => {
            if (to === channel) process.deliver(() => listener(message));
          };
          listeners.add(receive);
          process.onKill(() => listeners.delete(receive));
          return () => listeners.delete(receive);
        },
      },
      async open() {},
      problem: () => undefined,
      warnings: () => [],
      async close() {},
    }),
    lose() {
      stored = server.run(newStore);
    },
    vanish() {
      isReachable = false;
    },
    return() {
      isReachable = true;
    },
  };
}
