/**
 * The transactional database that holds what must never be lost (ADR 120): SQLite for one instance, PostgreSQL for several. A statement is
 * written once for both, and executed for many rows at a time.
 */

import { GatewayError } from '../request/errors.ts';
import type { BatchLimits } from './collect.ts';

/** A value of a column. */
export type Value = string | number | boolean | Buffer | null;

/** The types of columns, as PostgreSQL names them; SQLite has none. */
export type ColumnType = 'text' | 'bigint' | 'integer' | 'boolean' | 'bytea';

/** The columns of the input of a statement. */
export type Columns = Readonly<Record<string, ColumnType>>;

/** A row by column; a boolean is a number in SQLite. */
export type Row = Readonly<Record<string, Value>>;

/** A statement that is executed for a number of rows at once. */
export interface Statement<Input extends Columns> {
  readonly columns: Input;
  /** It changes nothing, and needs no transaction. */
  readonly isRead?: boolean;
  /**
   * A statement before this one, in the same transaction. In PostgreSQL both see the rows as they were before, so they must not change the
   * same rows. It returns rows, which the other one can read.
   */
  readonly before?: {
    /** The table that it changes. */
    readonly table: string;
    readonly sql: (input: string) => string;
  };
  /**
   * @param input a table expression with these columns, to be used as in `FROM ${input} AS i`; once, if there is no `before`
   * @param changed the rows that `before` has changed, as a table of the same name would show them: at least these, with its columns
   */
  readonly sql: (input: string, changed: string) => string;
}

/** Keeps the type of its columns. */
export function statement<const Input extends Columns>(definition: Statement<Input>): Statement<Input> {
  return definition;
}

export type InputOf<Input extends Columns> = { readonly [Name in keyof Input]: Value };

/** The rows that a batch has returned, and the input rows that the database refused, with the reasons. */
export interface BatchResult {
  readonly rows: readonly Row[];
  readonly refused: ReadonlyMap<number, DatabaseError>;
}

export interface Database {
  readonly dialect: 'sqlite' | 'postgres';
  /** How its statements are sent together; by default as collect.ts says. */
  readonly batches?: BatchLimits;
  /** Connections that execute a statement, and statements that wait for one; SQLite has none. */
  readonly connections?: () => { readonly in_use: number; readonly waiting: number };
  /**
   * Executes a statement for all rows in one transaction. If the database refuses it, executes it for each row alone, so that one row
   * that cannot be stored does not fail the others.
   *
   * @throws DatabaseError with the effect `unknown`: it is unknown which rows have been changed; or with `none`: it cannot be reached
   */
  batch<Input extends Columns>(
    statement: Statement<Input>,
    rows: readonly InputOf<Input>[],
  ): Promise<BatchResult>;
  /** Executes one statement with `$1`, `$2`. @throws DatabaseError */
  query(sql: string, values?: readonly Value[]): Promise<readonly Row[]>;
  /**
   * Executes several statements without values, separated by semicolons, in one transaction.
   *
   * @param maxMs how long PostgreSQL may take, instead of the 2 s of every statement
   * @throws DatabaseError
   */
  execute(script: string, maxMs?: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * What a failed statement has changed. `none`: nothing, and it may succeed later. `none-ever`: nothing, because the database does not
 * accept a value. `unknown`: there was no answer, because the connection was lost or the time had passed.
 */
export type Effect = 'none' | 'none-ever' | 'unknown';

/**
 * The database has not executed a statement, or it is unknown whether it has. A request that ends with it is answered with
 * STATE_UNAVAILABLE; `reason` is for the log and for operators.
 */
export class DatabaseError extends GatewayError {
  readonly reason: string;
  readonly effect: Effect;

  constructor(reason: string, effect: Effect, cause?: unknown) {
    super('STATE_UNAVAILABLE', 'The database of the gateway is unavailable. Try again.', {
      cause: new Error(reason, { cause }),
    });
    this.reason = reason;
    this.effect = effect;
  }
}

/** Whether the same statement may succeed later. Otherwise, it has a value that the database does not accept. */
export const isOutage = (thrown: unknown): thrown is DatabaseError =>
  thrown instanceof DatabaseError && thrown.effect !== 'none-ever';

/** The database refuses the role, or does not exist. It is no outage: somebody must change something. */
export class DatabaseAccessError extends DatabaseError {}

export const hasNoEffect = (thrown: unknown): thrown is DatabaseError =>
  thrown instanceof DatabaseError && thrown.effect !== 'unknown';

/** The text in a column; `undefined` if it is NULL. */
export const textOf = (value: Row[string] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

/**
 * @returns the rows of a batch
 * @throws DatabaseError if the database has refused an input row: that of one that may succeed later, if there is one
 */
export async function rowsOfAll(batch: Promise<BatchResult>): Promise<readonly Row[]> {
  const { rows, refused } = await batch;
  const causes = [...refused.values()];
  const cause = causes.find(isOutage) ?? causes[0];
  if (cause) throw cause;
  return rows;
}

/** Executes a statement for each row alone. */
export async function oneByOne<Input>(
  rows: readonly Input[],
  execute: (row: Input) => Promise<readonly Row[]>,
): Promise<BatchResult> {
  const refused = new Map<number, DatabaseError>();
  const results: Row[] = [];
  for (const [index, row] of rows.entries())
    try {
      results.push(...(await execute(row)));
    } catch (thrown) {
      if (!hasNoEffect(thrown)) throw thrown;
      refused.set(index, thrown);
    }
  return { rows: results, refused };
}
