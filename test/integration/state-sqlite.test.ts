/** The SQLite state across processes: one process per file, killed processes, and a full disk. */

import assert from 'node:assert/strict';
import { copyFileSync, renameSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createSqliteState } from '../../src/state/former/sqlite.ts';
import type { State } from '../../src/state/ports.ts';
import { type RunningCommand, startCommand } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/within.ts';

const program = fileURLToPath(new URL('../kit/sqlite-writer.ts', import.meta.url));

/** A process that opens the state, and writes `count` values of `size` characters. */
const startWriter = (t: TestContext, file: string, count = 0, size = 0) =>
  startCommand(t, process.execPath, [program, file, `${count}`, `${size}`]);

/** The numbers of the acknowledged writes. */
const acknowledgedBy = (writer: RunningCommand) => writer.stdout().match(/^\d+$/gm) ?? [];

async function openState(t: TestContext, file: string): Promise<State> {
  const state = createSqliteState(file);
  t.after(() => state.close());
  await state.open();
  return state;
}

async function assertContains({ keyValues }: State, numbers: readonly string[]): Promise<void> {
  for (const number of numbers) assert.notEqual(await keyValues.read(number), undefined, number);
}

describe('the SQLite state across processes', () => {
  for (const count of [1, 250, 700]) {
    test(`loses no acknowledged write when its process is killed after ${count} writes`, async (t) => {
      const file = `${temporaryFolder(t)}/state`;
      const writer = startWriter(t, file, 100_000, 2_000);
      await until(20_000, 'it has written', () => acknowledgedBy(writer).length >= count);
      writer.kill('SIGKILL');
      assert.equal(await writer.exitCode(), 'SIGKILL');
      const acknowledged = acknowledgedBy(writer);
      assert.ok(acknowledged.length < 100_000);
      await assertContains(await openState(t, file), acknowledged);
    });
  }

  test('refuses a second process while the first one runs, and accepts it after the first was killed', async (t) => {
    const file = `${temporaryFolder(t)}/state`;
    const first = startWriter(t, file, 1);
    await first.waitForOutput('done');
    const second = startWriter(t, file);
    const refusal = `state.file: ${file} is in use by another process; stop that process, or use another file`;
    await second.waitForOutput(refusal);
    await assert.rejects(openState(t, file), /is in use by another process/);
    first.kill('SIGKILL');
    await first.exitCode();
    await assertContains(await openState(t, file), ['0']);
  });

  test('lets exactly one of two processes create the file', async (t) => {
    const file = `${temporaryFolder(t)}/state`;
    const writers = [startWriter(t, file), startWriter(t, file)];
    await Promise.all(writers.map((writer) => until(20_000, 'it has tried', () => writer.stdout() !== '')));
    const refused = writers.map((writer) => writer.stdout().includes('is in use by another process'));
    assert.deepEqual(refused.toSorted(), [false, true]);
  });

  test('refuses writes after its file was removed or replaced, until the original file is back', async (t) => {
    const file = `${temporaryFolder(t)}/state`;
    const state = await openState(t, file);
    const { keyValues } = state;
    await keyValues.write('1', 'one');
    renameSync(file, `${file}.original`);
    await assert.rejects(keyValues.write('2', 'two'), { code: 'STATE_UNAVAILABLE' });
    assert.match(state.problem() ?? '', /state was removed or replaced .* restore the original file/);
    copyFileSync(`${file}.original`, file);
    await assert.rejects(keyValues.write('2', 'two'), { code: 'STATE_UNAVAILABLE' });
    renameSync(`${file}.original`, file);
    await keyValues.write('2', 'two');
    assert.equal(state.problem(), undefined);
    await state.close();
    assert.equal(await (await openState(t, file)).keyValues.read('2'), 'two');
  });

  test('refuses writes on a full disk, reports the problem, and keeps what was written', async (t) => {
    const file = `${temporaryFolder(t)}/state`;
    const limit = 'ulimit -f 2000; exec "$@"'; // blocks of 512 bytes: the system lets no file grow larger
    const args = ['-c', limit, 'sh', process.execPath, program, file, '1000', '10000'];
    const writer = startCommand(t, 'sh', args);
    await writer.waitForOutput('problem: state.file: ');
    await writer.waitForOutput('is unavailable');
    const acknowledged = acknowledgedBy(writer);
    assert.ok(acknowledged.length > 10 && acknowledged.length < 900, `${acknowledged.length}`);
    writer.kill('SIGKILL');
    await writer.exitCode();
    await assertContains(await openState(t, file), acknowledged);
  });
});
