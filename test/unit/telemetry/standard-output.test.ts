import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { root } from '../../kit/command.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { within } from '../../kit/within.ts';

const line = `${'a'.repeat(1023)}\n`;

/** Writes lines of 1 KiB, reports that on standard error, and exits when it reads a line. */
const program = (lines: number) => `
  import { standardOutput } from './src/telemetry/standard-output.ts';
  const output = standardOutput();
  output.onLinesDropped((dropped) => output.write('dropped ' + dropped + '\\n'));
  for (let count = 0; count < ${lines}; count++) output.write('a'.repeat(1023) + '\\n');
  process.stderr.write('written');
  process.stdin.once('data', async () => {
    await output.flush();
    process.exit(0);
  });`;

/** A process that has written all lines. @param stdout a pipe or the descriptor of a file */
async function startWriter(t: TestContext, lines: number, stdout: 'pipe' | number = 'pipe') {
  const args = ['--input-type=module-typescript', '--eval', program(lines)];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['pipe', stdout, 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  child.stdin?.on('error', () => {});
  if (child.stderr) await within(20_000, 'all to be written', once(child.stderr, 'data'));
  return child;
}

async function exitOf(child: Awaited<ReturnType<typeof startWriter>>): Promise<unknown> {
  const exit = once(child, 'exit');
  child.stdin?.write('end\n');
  return within(5_000, 'the process to end', exit);
}

describe('standard output (H12)', () => {
  test('does not block the writer if nobody reads the pipe, and delivers all lines when it is read again', async (t) => {
    const child = await startWriter(t, 4_000);
    const all = child.stdout ? text(child.stdout) : assert.fail();
    assert.deepEqual(await exitOf(child), [0, null]);
    assert.equal(await all, line.repeat(4_000));
  });

  test('drops the lines that exceed its buffer, and reports their number', async (t) => {
    const child = await startWriter(t, 20_000);
    const all = child.stdout ? text(child.stdout) : assert.fail();
    assert.deepEqual(await exitOf(child), [0, null]);
    const [delivered = '', dropped] = (await all).split('dropped ');
    assert.equal(delivered.length / line.length + Number(dropped), 20_000);
    assert.ok(delivered.length > 8 * 1024 * 1024);
  });

  test('keeps the process running if the reader closes the pipe', async (t) => {
    const child = await startWriter(t, 4_000);
    child.stdout?.destroy();
    assert.deepEqual(await exitOf(child), [0, null]);
  });

  test('writes all lines to a file, and keeps the process running if the disk is full', async (t) => {
    const file = join(temporaryFolder(t), 'log');
    for (const path of [file, '/dev/full']) {
      const descriptor = openSync(path, 'w');
      t.after(() => closeSync(descriptor));
      assert.deepEqual(await exitOf(await startWriter(t, 100, descriptor)), [0, null]);
    }
    assert.equal(readFileSync(file, 'utf8'), line.repeat(100));
  });
});
