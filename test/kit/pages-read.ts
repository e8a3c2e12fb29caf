/** How much PostgreSQL reads for a statement. */

import type { Database, Row, Value } from '../../src/store/database.ts';

/** A database that explains its queries while it executes them; they return no rows. */
export function explained(database: Database) {
  let pages = 0;
  return {
    database: {
      ...database,
      async query(sql: string, values?: readonly Value[]): Promise<readonly Row[]> {
        const plan = await database.query(`EXPLAIN (ANALYZE, BUFFERS) ${sql}`, values);
        const text = plan.map((row) => row['QUERY PLAN']).join('\n');
        const [, hit = 0, read = 0] = /Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/.exec(text) ?? [];
        pages += Number(hit) + Number(read);
        return [];
      },
    } satisfies Database,
    /** From its memory or from the disk: of the queries since the last call. */
    pages() {
      const read = pages;
      pages = 0;
      return read;
    },
  };
}
