/** A database that pauses a write at a chosen step of its row in the ledger. */

import type { BatchResult, Columns, Database, DatabaseError } from '../../src/store/database.ts';
import type { Breakpoint } from './breakpoint-state.ts';
import { nameOfStatement } from './database-statements.ts';

type Breakpoints = readonly [before: Breakpoint | undefined, after: Breakpoint];

const breakpointsAround: Readonly<Record<string, Breakpoints>> = {
  claim: ['before the claim', 'claimed'],
  mark: [undefined, 'sending'],
  recordAnswer: ['answered', 'stored'],
};

/** @param onBreakpoint called at each step with the `X-Request-ID`; the write continues when it returns */
export function createBreakpointDatabase(
  database: Database,
  onBreakpoint: (requestId: string, breakpoint: Breakpoint) => Promise<void>,
): Database {
  return {
    ...database,
    // Each write alone: a paused one does not stop the others.
    batches: { maxRunning: Number.POSITIVE_INFINITY, maxBatch: 1 },
    async batch(statement, rows) {
      const [before, after] = breakpointsAround[nameOfStatement(statement)] ?? [];
      if (!before && !after) return database.batch(statement, rows);
      return together(
        await Promise.all(
          rows.map(async (row) => {
            const requestId = String(requestIdIn(row));
            if (before) await onBreakpoint(requestId, before);
            const result = await database.batch(statement, [row]);
            if (after && result.rows.length > 0) await onBreakpoint(requestId, after);
            return result;
          }),
        ),
      );
    },
  };
}

const requestIdIn = <Input extends Columns>(row: Readonly<Record<keyof Input, unknown>>): unknown =>
  Object.entries(row).find(([name]) => name === 'request_id')?.[1];

/** The results of rows that were executed alone. */
function together(results: readonly BatchResult[]): BatchResult {
  const refused = new Map<number, DatabaseError>();
  for (const [index, result] of results.entries())
    for (const cause of result.refused.values()) refused.set(index, cause);
  return { rows: results.flatMap(({ rows }) => rows), refused };
}
