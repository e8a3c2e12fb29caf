/** The SQLite database across processes: one process per file, killed processes, a full disk, and files that are not ours. */

import assert from 'node:assert/strict';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Database, DatabaseError } from '../../src/store/database.ts';
import { createInstanceTable } from '../../src/store/instances.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { migrate } from '../../src/store/migrations.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { claimFile, createIfMissing, createWalGuard } from '../../src/store/sqlite-file.ts';
import { type RunningCommand, startCommand } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { invalidFiles } from '../kit/invalid-files.ts';
import { until } from '../kit/within.ts';

const program = fileURLToPath(new URL('../kit/sqlite-database-writer.ts', import.meta.url));

/** A process that creates the tables, and executes `count` writes whose answers have `size` bytes. */
const startWriter = (t: TestContext, file: string, count = 0, size = 0) =>
  startCommand(t, process.execPath, [program, file, `${count}`, `${size}`]);

/** The steps that were confirmed, by the id of the write. */
function confirmedBy(writer: RunningCommand): ReadonlyMap<string, string> {
  const lines = writer.stdout().match(/^(claimed|sending|answered) id-\d+$/gm) ?? [];
  return new Map(lines.map((line) => line.split(' ')).map(([step = '', id = '']) => [id, step]));
}

function openDatabase(t: TestContext, file: string) {
  const database = openSqlite(file);
  t.after(() => database.close());
  return database;
}

const steps = ['claimed', 'sending', 'answered'];

/** Every write is at least at the step that was confirmed. */
async function assertContains(t: TestContext, file: string, confirmed: ReadonlyMap<string, string>) {
  const rows = await openDatabase(t, file).query('SELECT request_id, step FROM ledger');
  const stored = new Map(rows.map(({ request_id, step }) => [String(request_id), String(step)]));
  for (const [id, step] of confirmed) {
    const found = stored.get(id) ?? '';
    assert.ok(
      steps.indexOf(found) >= steps.indexOf(step),
      `${id}: ${step} was confirmed, ${found} is stored`,
    );
  }
}

const fails = (reason: RegExp) => (thrown: unknown) => {
  assert.ok(thrown instanceof DatabaseError);
  assert.match(thrown.reason, reason);
  assert.equal(thrown.effect, 'none');
  assert.equal(thrown.code, 'STATE_UNAVAILABLE');
  return true;
};

const insert = (database: Database, tenant: string) =>
  database.query('INSERT INTO credential (hash, tenant) VALUES ($1, $1)', [tenant]);

async function inserted(database: Database): Promise<readonly unknown[]> {
  const rows = await database.query('SELECT tenant FROM credential ORDER BY tenant');
  return rows.map(({ tenant }) => tenant);
}

describe('the SQLite database across processes', () => {
  for (const count of [1, 250, 700])
    test(`loses no confirmed step when its process is killed after ${count} writes`, async (t) => {
      const file = join(temporaryFolder(t), 'penstock.db');
      const writer = startWriter(t, file, 100_000, 2_000);
      await until(30_000, 'it has written', () => confirmedBy(writer).size >= count);
      writer.kill('SIGKILL');
      assert.equal(await writer.exitCode(), 'SIGKILL');
      const confirmed = confirmedBy(writer);
      assert.ok(confirmed.size < 100_000);
      await assertContains(t, file, confirmed);
    });

  test('refuses a second process while the first one runs, and accepts it after the first was killed', async (t) => {
    const file = join(temporaryFolder(t), 'penstock.db');
    const first = startWriter(t, file, 1);
    await first.waitForOutput('done');
    const second = startWriter(t, file);
    const refusal = `state.file: ${file} is in use by another process; stop that process, or use another file`;
    await second.waitForOutput(refusal);
    const own = openDatabase(t, file);
    await assert.rejects(own.query('SELECT 1'), fails(/is in use by another process/));
    first.kill('SIGKILL');
    await first.exitCode();
    await own.query('SELECT 1');
    await own.close();
    await assertContains(t, file, new Map([['id-0', 'answered']]));
  });

  test('refuses changes after its file was removed or replaced, until the original file is back', async (t) => {
    const file = join(temporaryFolder(t), 'penstock.db');
    const database = openDatabase(t, file);
    await migrate(database);
    const instances = createInstanceTable(database, 'one');
    await instances.report();
    const isReplaced = fails(/was removed or replaced .* restore the original file/);
    renameSync(file, `${file}.original`);
    await assert.rejects(instances.report(), isReplaced);
    await assert.rejects(database.execute('DELETE FROM instance'), isReplaced);
    copyFileSync(`${file}.original`, file);
    await assert.rejects(instances.report(), isReplaced);
    await assert.rejects(database.execute('DELETE FROM instance'), isReplaced);
    renameSync(`${file}.original`, file);
    await instances.report();
  });

  const losses: Readonly<Record<string, (wal: string) => void>> = {
    removed: (wal) => rmSync(wal),
    'replaced by an older copy': (wal) => renameSync(`${wal}.copy`, wal),
  };
  for (const [what, lose] of Object.entries(losses))
    test(`loses nothing when FILE-wal is ${what}, and the process is killed later`, async (t) => {
      const folder = temporaryFolder(t);
      const file = join(folder, 'penstock.db');
      const database = openDatabase(t, file);
      await migrate(database);
      copyFileSync(`${file}-wal`, `${file}-wal.copy`);
      await insert(database, 'before');
      lose(`${file}-wal`);
      await insert(database, 'after');
      assert.ok(existsSync(`${file}-wal`));
      // What a killed process leaves.
      const left = join(temporaryFolder(t), 'left');
      cpSync(folder, left, { recursive: true });
      assert.deepEqual(await inserted(openDatabase(t, join(left, 'penstock.db'))), ['after', 'before']);
    });

  test('refuses changes while its folder is another one, and writes what was in a removed FILE-wal to FILE', async (t) => {
    const folder = join(temporaryFolder(t), 'state');
    mkdirSync(folder);
    const file = join(folder, 'penstock.db');
    const database = openDatabase(t, file);
    await migrate(database);
    await insert(database, 'before');
    renameSync(folder, `${folder}.original`);
    rmSync(`${folder}.original/penstock.db-wal`);
    cpSync(`${folder}.original`, folder, { recursive: true });
    const isReplaced = fails(/was removed or replaced .* restore the original file/);
    await assert.rejects(insert(database, 'refused'), isReplaced);
    assert.ok(!existsSync(`${file}-wal`), 'it creates nothing in the other folder');
    copyFileSync(`${folder}.original/penstock.db`, `${file}.copy`);
    assert.deepEqual(await inserted(openDatabase(t, `${file}.copy`)), ['before']);
    rmSync(folder, { recursive: true });
    renameSync(`${folder}.original`, folder);
    await insert(database, 'after');
    assert.ok(existsSync(`${file}-wal`));
  });

  test('refuses changes while the commits of a removed FILE-wal cannot be written to FILE, and keeps them', (t) => {
    const file = join(temporaryFolder(t), 'penstock.db');
    createIfMissing(file);
    const database = new DatabaseSync(file);
    t.after(() => database.close());
    claimFile(file, database, { applicationId: 1, version: 0, schema: 'CREATE TABLE one (id)' });
    const check = createWalGuard(file, database);
    database.exec('INSERT INTO one VALUES (1), (2)');
    rmSync(`${file}-wal`);
    const rows = database.prepare('SELECT id FROM one').iterate();
    rows.next(); // a read that has not ended prevents it
    assert.throws(check, /-wal was removed or replaced .* do not stop the gateway before/);
    assert.throws(check, /-wal was removed or replaced/);
    assert.equal([...rows].length, 1);
    check();
    assert.ok(existsSync(`${file}-wal`));
    assert.equal(database.prepare('SELECT count(*) AS rows FROM one').get()?.rows, 2);
  });

  test('refuses changes on a full disk, and keeps every confirmed step', async (t) => {
    const file = join(temporaryFolder(t), 'penstock.db');
    const limit = 'ulimit -f 2000; exec "$@"'; // blocks of 512 bytes: the system lets no file grow larger
    const writer = startCommand(t, 'sh', [
      '-c',
      limit,
      'sh',
      process.execPath,
      program,
      file,
      '1000',
      '10000',
    ]);
    await writer.waitForOutput(`state.file: ${file} `);
    const confirmed = confirmedBy(writer);
    assert.ok(confirmed.size > 10 && confirmed.size < 900, `${confirmed.size}`);
    writer.kill('SIGKILL');
    await writer.exitCode();
    await assertContains(t, file, confirmed);
  });

  test('has a clock that does not run back after a restart', async (t) => {
    const file = join(temporaryFolder(t), 'penstock.db');
    const first = openSqlite(file, () => 2_000_000_000_000);
    await migrate(first);
    await createInstanceTable(first, 'one').report();
    await createInstanceTable(first, 'one').deregister();
    await first.close();
    const second = openSqlite(file, () => 1_000_000_000_000);
    t.after(() => second.close());
    const [row] = await second.query('SELECT now_ms() AS now');
    assert.equal(row?.now, 2_000_000_000_000);
  });

  test('has a clock that steps of the clock of the machine do not change', async (t) => {
    const database = openDatabase(t, join(temporaryFolder(t), 'penstock.db'));
    const readTime = async () => Number((await database.query('SELECT now_ms() AS now'))[0]?.now);
    const before = await readTime();
    assert.ok(Math.abs(before - Date.now()) < 60_000, 'it is about right');
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 48 * 3_600_000 });
    assert.ok((await readTime()) - before < 60_000);
  });

  test('may be reached by a symbolic link', async (t) => {
    const folder = temporaryFolder(t);
    const [file, link] = [join(folder, 'penstock.db'), join(temporaryFolder(t), 'link.db')];
    await createFile(file);
    symlinkSync(file, link);
    const database = openDatabase(t, link);
    assert.equal((await database.query('SELECT 1 FROM ledger')).length, 200);
    rmSync(`${file}-wal`);
    const [row] = await database.query('SELECT count(*) AS writes FROM ledger');
    assert.equal(row?.writes, 200, 'FILE-wal was found beside the file');
    assert.ok(existsSync(`${file}-wal`));
  });

  test('does not open the file again after it was closed', async (t) => {
    const database = openDatabase(t, join(temporaryFolder(t), 'penstock.db'));
    await database.query('SELECT 1');
    await database.close();
    await assert.rejects(database.query('SELECT 1'), fails(/is closed/));
  });
});

async function createFile(file: string): Promise<void> {
  const database = openSqlite(file);
  await migrate(database);
  const ledger = createLedgerTable(database);
  await Promise.all(
    Array.from({ length: 200 }, (_, number) =>
      ledger.claim({
        ...{ tenant: 'shop', operation: 'initiatePayment', payment: '', requestId: `${number}` },
        ...{ attempt: `${number}`, instance: 'one', path: 'x'.repeat(1_000) },
        ...{
          fingerprintKey: undefined,
          fingerprintRequest: 'r',
          fingerprintContent: 'c',
          isFirstFactor: false,
        },
      }),
    ),
  );
  await database.close();
}

describe('opening a SQLite database', () => {
  for (const [what, [make, reason]] of Object.entries(invalidFiles(createFile)))
    test(`refuses a file that ${what}, and leaves it unchanged`, async (t) => {
      const file = join(temporaryFolder(t), 'penstock.db');
      await make(file);
      const before = readFileSync(file);
      await assert.rejects(openDatabase(t, file).query('SELECT 1'), fails(reason));
      assert.ok(before.equals(readFileSync(file)));
    });
});
