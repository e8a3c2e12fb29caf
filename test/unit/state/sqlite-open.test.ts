import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { createSqliteState } from '../../../src/state/former/sqlite.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { execute, type InvalidFiles, invalidFiles, overwrite } from '../../kit/invalid-files.ts';

/** Creates a state file with some values. */
async function createStateFile(file: string): Promise<void> {
  const { open, close, keyValues } = createSqliteState(file);
  await open();
  await Promise.all(
    Array.from({ length: 200 }, (_, index) => keyValues.write(`key ${index}`, 'x'.repeat(1_000), 1e9)),
  );
  await close();
}

/** How each invalid file is made, and the error that refuses it. */
const cases: InvalidFiles = {
  ...invalidFiles(createStateFile),
  'has only a few bytes': [
    (file) => writeFileSync(file, 'a text'),
    /is not a state file of Penstock, or is damaged; use another/,
  ],
  'is a database of another application': [
    (file) => execute(file, 'PRAGMA application_id = 7; CREATE TABLE t (a)'),
    /belongs to another application; use another file$/,
  ],
  'is a database of another application in WAL mode': [
    (file) => execute(file, 'PRAGMA journal_mode = WAL; CREATE TABLE value (key)'),
    /belongs to another application/,
  ],
  'was written by a later version': [
    async (file) => {
      await createStateFile(file);
      execute(file, 'PRAGMA user_version = 2');
    },
    /was written by a later version of Penstock; run that version, or use another file$/,
  ],
  'lacks a table': [
    async (file) => {
      await createStateFile(file);
      execute(file, 'DROP TABLE value');
    },
    /is damaged; restore a backup, or move the file away/,
  ],
  'contains garbage in the header': [
    (file) => overwrite(file, createStateFile, 0, 100),
    /is not a state file of Penstock, or is damaged/,
  ],
};

describe('opening the SQLite state', () => {
  for (const [what, [make, message]] of Object.entries(cases)) {
    test(`refuses a file that ${what}, and leaves it unchanged`, async (t) => {
      const file = `${temporaryFolder(t)}/state`;
      await make(file);
      const before = readFileSync(file);
      await assert.rejects(openState(t, file), (error: Error) => {
        assert.match(error.message, message);
        assert.ok(error.message.startsWith(`state.file: ${file} `));
        return true;
      });
      assert.ok(before.equals(readFileSync(file)));
    });
  }

  test('refuses a directory or a device', async (t) => {
    await assert.rejects(openState(t, temporaryFolder(t)), /is a directory or a device; use a regular file/);
    await assert.rejects(openState(t, '/dev/null'), /is a directory or a device; use a regular file/);
  });

  test('refuses a file in a folder that does not exist', async (t) => {
    const folder = temporaryFolder(t);
    await assert.rejects(
      openState(t, `${folder}/none/state`),
      new RegExp(`cannot be created; the directory ${folder}/none does not exist; create it$`),
    );
    writeFileSync(`${folder}/text`, '');
    await assert.rejects(
      openState(t, `${folder}/text/state`),
      /cannot be created; the directory .* does not exist/,
    );
  });

  for (const [what, mode] of [
    ['read', 0o000],
    ['write', 0o444],
  ] as const) {
    test(`refuses a file that this user may not ${what}`, async (t) => {
      const file = `${temporaryFolder(t)}/state`;
      await createStateFile(file);
      chmodSync(file, mode);
      assert.match(
        errorForOtherUser(file),
        /cannot be read and written by this user; change the owner or the mode/,
      );
    });
  }

  test('refuses a new or existing file in a folder that this user may not write to', async (t) => {
    const folder = `${temporaryFolder(t)}/folder`;
    mkdirSync(folder);
    await createStateFile(`${folder}/state`);
    chmodSync(`${folder}/state`, 0o666);
    chmodSync(folder, 0o555);
    assert.match(
      errorForOtherUser(`${folder}/other`),
      /other cannot be read and written by this user; change/,
    );
    assert.match(
      errorForOtherUser(`${folder}/state`),
      /state cannot be written; the file, its directory or its disk is read-only; use/,
    );
  });
});

async function openState(t: TestContext, file: string): Promise<void> {
  const state = createSqliteState(file);
  t.after(() => state.close());
  await state.open();
}

/**
 * The error that a process without root rights gets: root ignores file modes. It gives its rights up when it has loaded the program:
 * other users may not be able to enter the checkout.
 */
function errorForOtherUser(file: string): string {
  chmodSync(dirname(file).replace(/\/folder$/, ''), 0o755);
  const code = `
    const { createSqliteState } = await import(${JSON.stringify(import.meta.resolve('../../../src/state/former/sqlite.ts'))});
    if (process.getuid?.() === 0) process.setuid(65_534);
    await createSqliteState(${JSON.stringify(file)}).open().catch(({ message }) => console.log(message));`;
  const args = ['--input-type=module', '--eval', code];
  return execFileSync(process.execPath, args, { encoding: 'utf8' });
}
