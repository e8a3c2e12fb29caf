/** Files that cannot be a state: each is refused in a sentence that says what to do, and stays as it was. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { createSqliteState } from '../../../src/state/sqlite.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** A state with some values in it, closed. */
async function written(file: string): Promise<void> {
  const { open, close, keyValues } = createSqliteState(file);
  await open();
  await Promise.all(
    Array.from({ length: 200 }, (_, index) => keyValues.write(`name ${index}`, 'x'.repeat(1_000), 1e9)),
  );
  await close();
}

function sqlite(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

async function overwrite(file: string, from: number, to: number): Promise<void> {
  await written(file);
  writeFileSync(file, readFileSync(file).fill('garbage', from, to));
}

const cases: Readonly<Record<string, readonly [(file: string) => unknown, RegExp]>> = {
  'a text': [
    (file) => writeFileSync(file, 'a text\n'.repeat(500)),
    /is no state of Penstock, or is damaged; name another/,
  ],
  'a few bytes': [
    (file) => writeFileSync(file, 'a text'),
    /is no state of Penstock, or is damaged; name another/,
  ],
  'another application’s database': [
    (file) => sqlite(file, 'PRAGMA application_id = 7; CREATE TABLE t (a)'),
    /belongs to another application; name another file$/,
  ],
  'a database of nobody’s': [(file) => sqlite(file, 'CREATE TABLE t (a)'), /belongs to another application/],
  'another application’s database with a log': [
    (file) => sqlite(file, 'PRAGMA journal_mode = WAL; CREATE TABLE value (key)'),
    /belongs to another application/,
  ],
  'of a later version': [
    async (file) => {
      await written(file);
      sqlite(file, 'PRAGMA user_version = 2');
    },
    /was written by a later version of Penstock; run that one, or name another file$/,
  ],
  'without a table': [
    async (file) => {
      await written(file);
      sqlite(file, 'DROP TABLE member');
    },
    /is damaged; put a backup in its place, or move it away/,
  ],
  'with garbage in its midst': [(file) => overwrite(file, 40_000, 120_000), /is damaged; put a backup/],
  'with garbage in its schema': [(file) => overwrite(file, 100, 4_000), /is damaged; put a backup/],
  'with garbage at its head': [(file) => overwrite(file, 0, 100), /is no state of Penstock, or is damaged/],
  'cut off': [
    async (file) => {
      await written(file);
      truncateSync(file, 100_000);
    },
    /is damaged; put a backup/,
  ],
};

describe('a file is refused', () => {
  for (const [what, [make, sentence]] of Object.entries(cases)) {
    test(`that is ${what}; it stays as it was`, async (t) => {
      const file = `${temporaryFolder(t)}/state`;
      await make(file);
      const before = readFileSync(file);
      await assert.rejects(openedState(t, file), (error: Error) => {
        assert.match(error.message, sentence);
        assert.ok(error.message.startsWith(`state.file: ${file} `));
        return true;
      });
      assert.ok(before.equals(readFileSync(file)));
    });
  }

  test('that is a directory or a device', async (t) => {
    await assert.rejects(openedState(t, temporaryFolder(t)), /is a directory or a device; name a file/);
    await assert.rejects(openedState(t, '/dev/null'), /is a directory or a device; name a file/);
  });

  test('whose folder is not there', async (t) => {
    const folder = temporaryFolder(t);
    await assert.rejects(
      openedState(t, `${folder}/none/state`),
      new RegExp(`cannot be created; there is no folder ${folder}/none; create it$`),
    );
    writeFileSync(`${folder}/text`, '');
    await assert.rejects(openedState(t, `${folder}/text/state`), /cannot be created; there is no folder/);
  });

  for (const [what, mode] of [
    ['read', 0o000],
    ['write', 0o444],
  ] as const) {
    test(`that this user may not ${what}`, async (t) => {
      const file = `${temporaryFolder(t)}/state`;
      await written(file);
      chmodSync(file, mode);
      assert.match(
        refusalOfSomebody(file),
        /may not be read and written by this user; change the owner or the mode/,
      );
    });
  }

  test('in a folder that this user may not write, whether or not it is there', async (t) => {
    const folder = `${temporaryFolder(t)}/folder`;
    mkdirSync(folder);
    await written(`${folder}/state`);
    chmodSync(`${folder}/state`, 0o666);
    chmodSync(folder, 0o555);
    assert.match(
      refusalOfSomebody(`${folder}/other`),
      /other may not be read and written by this user; change/,
    );
    assert.match(
      refusalOfSomebody(`${folder}/state`),
      /state cannot be written; it, its folder or its disk is read-only; name/,
    );
  });
});

async function openedState(t: TestContext, file: string): Promise<void> {
  const state = createSqliteState(file);
  t.after(() => state.close());
  await state.open();
}

/** What a process is told that is not root's: root may do everything. */
function refusalOfSomebody(file: string): string {
  chmodSync(dirname(file).replace(/\/folder$/, ''), 0o755);
  const isRoot = process.getuid?.() === 0;
  const code = `
    const { createSqliteState } = await import(${JSON.stringify(import.meta.resolve('../../../src/state/sqlite.ts'))});
    await createSqliteState(${JSON.stringify(file)}).open().catch(({ message }) => console.log(message));`;
  const args = ['--input-type=module', '--eval', code];
  return execFileSync(process.execPath, args, { encoding: 'utf8', ...(isRoot && { uid: 65_534 }) });
}
