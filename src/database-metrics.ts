/** The metrics of the database: how long writes take in it, its connections, its size, and what is unfinished. */

import type { Columns, Database, Statement } from './store/database.ts';
import { claim, mark, recordAnswer } from './store/ledger-statements.ts';
import type { BoundHistogram } from './telemetry/histogram.ts';
import type { Metrics } from './telemetry/metrics.ts';

/** The number of calls after which the oldest unfinished write, and the size, are read again. */
const refreshesPerAge = 15;
const refreshesPerSize = 60;

export interface DatabaseMetrics {
  /** The same database, whose statements are measured: one duration for each batch. */
  readonly measured: Database;
  /** The mean of the statements of writes in the last 10 seconds, if it is slow: milliseconds. */
  slowMs(): number | undefined;
  /** Age of the oldest write that is neither answered nor in doubt: milliseconds. */
  oldestUnfinishedMs(): number | undefined;
  /** Reads what the database must be asked for. To be called every second; never rejects. */
  refresh(): Promise<void>;
}

/** The length of the window in seconds, and the number of statements and the mean in milliseconds from which on they are slow. */
const slowness = { seconds: 10, minimum: 5, ms: 200 };

export function createDatabaseMetrics(database: Database, metrics: Metrics): DatabaseMetrics {
  const durations = new Map<Statement<Columns>, BoundHistogram>(
    Object.entries({ claim, mark, record: recordAnswer }).map(([name, statement]) => [
      statement,
      metrics.histogram('penstock_database_seconds', { statement: name }),
    ]),
  );
  metrics.addGaugeSource('penstock_database_connections', () =>
    Object.entries(database.connections?.() ?? {}).map(([state, value]) => ({ labels: { state }, value })),
  );

  let refreshes = 0;
  /** The last seconds, the newest last. */
  const seconds = [{ statements: 0, ms: 0 }];

  function measure(startedAtMs: number, duration: BoundHistogram): void {
    const ms = performance.now() - startedAtMs;
    duration.observe(ms / 1_000);
    const current = seconds.at(-1);
    if (!current) return;
    current.statements += 1;
    current.ms += ms;
  }

  let oldestMs: number | undefined;
  let bytes: number | undefined;
  const sample = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
  metrics.addGaugeSource('penstock_oldest_unfinished_seconds', () =>
    sample(oldestMs === undefined ? undefined : oldestMs / 1_000),
  );
  metrics.addGaugeSource('penstock_database_bytes', () => sample(bytes));

  /** @returns the number in the only row; `undefined` if the database is unavailable */
  const read = (sql: string): Promise<number | undefined> =>
    database.query(sql).then(
      ([row]) => Number(row?.value),
      () => undefined,
    );

  return {
    measured: {
      ...database,
      batch(statement, rows) {
        const duration = durations.get(statement);
        if (!duration) return database.batch(statement, rows);
        const startedAtMs = performance.now();
        return database.batch(statement, rows).finally(() => measure(startedAtMs, duration));
      },
    },
    slowMs() {
      const statements = seconds.reduce((sum, second) => sum + second.statements, 0);
      const mean = seconds.reduce((sum, second) => sum + second.ms, 0) / statements;
      return statements >= slowness.minimum && mean >= slowness.ms ? mean : undefined;
    },
    oldestUnfinishedMs: () => oldestMs,
    async refresh() {
      seconds.push({ statements: 0, ms: 0 });
      if (seconds.length > slowness.seconds) seconds.shift();
      const refresh = refreshes++;
      if (refresh % refreshesPerAge === 0) oldestMs = await read(oldestUnfinished);
      if (refresh % refreshesPerSize === 0) bytes = await read(sizeIn[database.dialect]);
    },
  };
}

/** By an index of the rows that have not ended. Milliseconds. */
const oldestUnfinished = `
  SELECT coalesce(now_ms() - min(claimed_at), 0) AS value FROM ledger
  WHERE ended_at IS NULL AND step IN ('claimed', 'sending')`;

/** In bytes; of SQLite without the file beside it. */
const sizeIn: Readonly<Record<Database['dialect'], string>> = {
  sqlite: 'SELECT page_count * page_size AS value FROM pragma_page_count(), pragma_page_size()',
  postgres: 'SELECT pg_database_size(current_database()) AS value',
};
