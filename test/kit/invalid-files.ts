/** Files that are no SQLite databases of Penstock, or damaged ones. */

import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** How each invalid file is made, and the error that refuses it. */
export type InvalidFiles = Readonly<Record<string, readonly [(file: string) => unknown, RegExp]>>;

/** Writes a valid file of 200 KB. */
type CreateFile = (file: string) => Promise<void>;

export const invalidFiles = (create: CreateFile): InvalidFiles => ({
  'is a text file': [
    (file) => writeFileSync(file, 'a text\n'.repeat(500)),
    /is not a state file of Penstock, or is damaged; use another/,
  ],
  'is a database without an application id': [
    (file) => execute(file, 'CREATE TABLE t (a)'),
    /belongs to another application; use another file$/,
  ],
  'contains garbage in the middle': [
    (file) => overwrite(file, create, 40_000, 120_000),
    /is damaged; restore a backup/,
  ],
  'contains garbage in the schema': [
    (file) => overwrite(file, create, 100, 4_000),
    /is damaged; restore a backup/,
  ],
  'is truncated': [
    async (file) => {
      await create(file);
      truncateSync(file, 100_000);
    },
    /is damaged; restore a backup/,
  ],
});

export function execute(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

/** A valid file with garbage from one byte to another. */
export async function overwrite(file: string, create: CreateFile, from: number, to: number): Promise<void> {
  await create(file);
  writeFileSync(file, readFileSync(file).fill('garbage', from, to));
}
