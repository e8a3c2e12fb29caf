/** A database whose statements fail, or answer late, when a test says so, and which records them. */

import { type BatchResult, type Columns, type Database, DatabaseError } from '../../src/store/database.ts';
import { nameOfStatement, type StatementName } from './database-statements.ts';

/** A statement of the ledger, or part of the text of another one. */
export type StatementPattern = StatementName | RegExp;

/** `before`: nothing was changed. `after`: everything was changed, and the answer is lost. */
export type FaultTime = 'before' | 'after';

export interface FaultyDatabase extends Database {
  /** The names of the ledger's statements, and the texts of the others, in the order in which they began. */
  readonly statements: readonly string[];
  /** Lets these statements fail from now on; all of them if none is named. */
  fail(when: FaultTime, ...patterns: readonly StatementPattern[]): void;
  recover(): void;
  /** The next such statement takes effect at once, but returns only after `unblock` was called. @returns `unblock` */
  block(pattern: StatementPattern): () => void;
}

/** @param shared several instances can share it, and fail independently */
export function createFaultyDatabase(shared: Database): FaultyDatabase {
  const statements: string[] = [];
  let fault: { readonly when: FaultTime; readonly patterns: readonly StatementPattern[] } | undefined;
  const blocked: { readonly pattern: StatementPattern; readonly unblocked: Promise<void> }[] = [];

  async function execute<Result>(statement: string, run: () => Promise<Result>): Promise<Result> {
    const matches = (pattern: StatementPattern) =>
      pattern instanceof RegExp ? pattern.test(statement) : pattern === statement;
    const isFailing = fault && (fault.patterns.length === 0 || fault.patterns.some(matches));
    const when = isFailing ? fault?.when : undefined;
    statements.push(statement);
    if (when === 'before') throw new DatabaseError('the test cuts the connection before', 'none');
    const result = await run();
    if (when === 'after') throw new DatabaseError('the test cuts the connection after', 'unknown');
    const index = blocked.findIndex(({ pattern }) => matches(pattern));
    if (index >= 0) await blocked.splice(index, 1)[0]?.unblocked;
    return result;
  }

  return {
    ...shared,
    batch: <Input extends Columns>(
      ...[statement, rows]: Parameters<typeof shared.batch<Input>>
    ): Promise<BatchResult> =>
      execute(nameOfStatement(statement) || statement.sql('input', 'changed'), () =>
        shared.batch(statement, rows),
      ),
    query: (sql, values) => execute(sql, () => shared.query(sql, values)),
    execute: (script) => execute(script, () => shared.execute(script)),
    get statements() {
      return [...statements];
    },
    fail(when, ...patterns) {
      fault = { when, patterns };
    },
    recover() {
      fault = undefined;
    },
    block(pattern) {
      const { promise, resolve } = Promise.withResolvers<void>();
      blocked.push({ pattern, unblocked: promise });
      return resolve;
    },
  };
}
