/** Rows that wait until they are written. Each replaces the waiting row of its key. */

import { setImmediate } from 'node:timers/promises';
import { isOutage } from './database.ts';

/** In one statement: more would block this process, or other statements, for longer than some milliseconds. */
const rowsPerWrite = 250;

/**
 * @param put       writes rows, and changes nothing if it is repeated
 * @param max       if more rows wait, the oldest ones are lost
 * @param onRefused called if the database does not accept a row: it is lost, and the others are written
 */
export function createLatestRows<Row>(
  put: (rows: readonly Row[]) => Promise<unknown>,
  max: number,
  onRefused: (thrown: unknown) => void,
) {
  async function putAccepted(rows: readonly Row[]): Promise<void> {
    try {
      await put(rows);
    } catch (thrown) {
      if (isOutage(thrown)) throw thrown;
      onRefused(thrown);
    }
  }

  let waiting = new Map<string, Row>();
  return {
    set(key: string, row: Row): void {
      waiting.delete(key);
      waiting.set(key, row);
      for (const oldest of waiting.keys()) {
        if (waiting.size <= max) return;
        waiting.delete(oldest);
      }
    },
    /** @throws DatabaseError: the rows are written by the next call */
    async write(): Promise<void> {
      const rows = [...waiting];
      waiting = new Map();
      let written = 0;
      try {
        for (; written < rows.length; written += rowsPerWrite) {
          if (written > 0) await setImmediate(); // requests are served in between: SQLite answers in the same turn of the event loop
          await putAccepted(rows.slice(written, written + rowsPerWrite).map(([, row]) => row));
        }
      } catch (thrown) {
        waiting = new Map([...rows.slice(written), ...waiting]);
        throw thrown;
      }
    },
  };
}
