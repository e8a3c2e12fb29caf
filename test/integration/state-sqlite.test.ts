/** One process a file, whatever becomes of the process: killed, refused, out of room. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { State } from '../../src/state/ports.ts';
import { createSqliteState } from '../../src/state/sqlite.ts';
import { type RunningCommand, startCommand } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/within.ts';

const program = fileURLToPath(new URL('../kit/file-writer.ts', import.meta.url));

/** A process that writes so many values of a size, or none. */
const startWriter = (t: TestContext, file: string, count = 0, size = 0) =>
  startCommand(t, process.execPath, [program, file, `${count}`, `${size}`]);

/** The writes that a process said were acknowledged. */
const acknowledged = (writer: RunningCommand) => writer.stdout().match(/^\d+$/gm) ?? [];

async function opened(t: TestContext, file: string): Promise<State> {
  const state = createSqliteState(file);
  t.after(() => state.close());
  await state.open();
  return state;
}

async function holds({ keyValues, sets }: State, numbers: readonly string[]): Promise<void> {
  const members = new Set(await sets.members('set'));
  for (const number of numbers) {
    assert.notEqual(await keyValues.read(number), undefined, number);
    assert.ok(members.has(number), number);
  }
}

describe('a process that is killed while it writes', () => {
  for (const moment of [1, 250, 700]) {
    test(`(after ${moment} of a thousand) has lost nothing that was acknowledged, and the next one gets the file`, async (t) => {
      const file = `${temporaryFolder(t)}/state`;
      const writer = startWriter(t, file, 1_000, 2_000);
      await until(20_000, 'it has written', () => acknowledged(writer).length >= moment);
      writer.kill('SIGKILL');
      assert.equal(await writer.exitCode(), 'SIGKILL');
      const numbers = acknowledged(writer);
      assert.ok(numbers.length < 1_000);
      t.diagnostic(`${numbers.length} were acknowledged`);
      await holds(await opened(t, file), numbers);
    });
  }
});

test('a second process is refused while the first one lives, and not when that was killed', async (t) => {
  const file = `${temporaryFolder(t)}/state`;
  const first = startWriter(t, file, 1);
  await first.waitForOutput('done');
  const second = startWriter(t, file);
  await second.waitForOutput(
    `state.file: ${file} is in use by another process; stop that one, or name another file`,
  );
  await assert.rejects(opened(t, file), /is in use by another process/);
  first.kill('SIGKILL');
  await first.exitCode();
  await holds(await opened(t, file), ['0']);
});

test('two that create the same file at the same time: one gets it, the other is refused', async (t) => {
  const file = `${temporaryFolder(t)}/state`;
  const writers = [startWriter(t, file), startWriter(t, file)];
  await Promise.all(writers.map((writer) => until(20_000, 'it has tried', () => writer.stdout() !== '')));
  const said = writers.map((writer) => writer.stdout().includes('is in use by another process'));
  assert.deepEqual(said.toSorted(), [false, true]);
});

test('on a disk that takes no more, writes are refused, the trouble is told, and what was written stays', async (t) => {
  const file = `${temporaryFolder(t)}/state`;
  const limit = 'ulimit -f 2000; exec "$@"'; // blocks of 512 bytes: the system lets no file grow larger
  const writer = startCommand(t, 'sh', ['-c', limit, 'sh', process.execPath, program, file, '1000', '10000']);
  await writer.waitForOutput('trouble: state.file: ');
  await writer.waitForOutput('cannot be used at the moment');
  const numbers = acknowledged(writer);
  assert.ok(numbers.length > 10 && numbers.length < 900, `${numbers.length}`);
  writer.kill('SIGKILL');
  await writer.exitCode();
  await holds(await opened(t, file), numbers);
});
