/**
 * The transactional database that holds what must never be lost (ADR 120): SQLite for one instance, PostgreSQL for several. A statement is
 * written once for both, and executed for many rows at a time.
 */

/** A value of a column. */
export type Value = string | number | boolean | Buffer | null;

/** The types of columns, as PostgreSQL names them; SQLite has none. */
export type ColumnType = 'text' | 'bigint' | 'integer' | 'boolean' | 'bytea';

/** A row by column; a boolean is a number in SQLite. */
export type Row = Readonly<Record<string, Value>>;

/** A statement that is executed for a number of rows at once. */
export interface Statement<Columns extends Readonly<Record<string, ColumnType>>> {
  /** The columns of its input. */
  readonly columns: Columns;
  /** @param input a table expression with these columns, to be used once, such as in `FROM ${input} AS i` */
  readonly sql: (input: string) => string;
}

export type InputOf<Columns> = { readonly [Name in keyof Columns]: Value };

/** The rows that a batch has returned, and the input rows that the database refused, with the reasons. */
export interface BatchResult {
  readonly rows: readonly Row[];
  readonly refused: ReadonlyMap<number, Error>;
}

export interface Database {
  readonly dialect: 'sqlite' | 'postgres';
  /**
   * Executes a statement for all rows in one transaction. If the database refuses it, executes it for each row alone, so that one row
   * that cannot be stored does not fail the others.
   *
   * @throws DatabaseError if the database cannot be reached; it is unknown then which rows have been changed
   */
  batch<Columns extends Readonly<Record<string, ColumnType>>>(
    statement: Statement<Columns>,
    rows: readonly InputOf<Columns>[],
  ): Promise<BatchResult>;
  /** Executes one statement with `$1`, `$2`. @throws DatabaseError */
  query(sql: string, values?: readonly Value[]): Promise<readonly Row[]>;
  /** Executes several statements without values, separated by semicolons, in one transaction. @throws DatabaseError */
  execute(script: string): Promise<void>;
  close(): Promise<void>;
}

/** The database has not executed a statement, or it is unknown whether it has. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  /** Whether the statement was refused, and has changed nothing. */
  readonly isRefused: boolean;

  constructor(
    message: string,
    { cause, isRefused }: { readonly cause: unknown; readonly isRefused: boolean },
  ) {
    super(message, { cause });
    this.isRefused = isRefused;
  }
}

/** Executes a statement for each row alone. */
export async function oneByOne<Input>(
  rows: readonly Input[],
  execute: (row: Input) => Promise<readonly Row[]>,
): Promise<BatchResult> {
  const refused = new Map<number, Error>();
  const results: Row[] = [];
  for (const [index, row] of rows.entries())
    try {
      results.push(...(await execute(row)));
    } catch (thrown) {
      if (!(thrown instanceof DatabaseError) || !thrown.isRefused) throw thrown;
      refused.set(index, thrown);
    }
  return { rows: results, refused };
}
