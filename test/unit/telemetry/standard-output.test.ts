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

/** Writes that many lines of 1 KiB, says so on standard error, and ends when it is told to. */
const program = (lines: number) => `
  import { standardOutput } from './src/telemetry/standard-output.ts';
  const output = standardOutput((lost) => output.write('lost ' + lost + '\\n'));
  for (let count = 0; count < ${lines}; count++) output.write('a'.repeat(1023) + '\\n');
  process.stderr.write('written');
  process.stdin.once('data', async () => {
    await output.flush();
    process.exit(0);
  });`;

/** A process that has written them all. @param stdout where to; a pipe, unless it is a file's descriptor */
async function startWriter(t: TestContext, lines: number, stdout: 'pipe' | number = 'pipe') {
  const args = ['--input-type=module-typescript', '--eval', program(lines)];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['pipe', stdout, 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  child.stdin?.on('error', () => {});
  if (child.stderr) await within(20_000, 'all to be written', once(child.stderr, 'data'));
  return child;
}

async function ended(child: Awaited<ReturnType<typeof startWriter>>): Promise<unknown> {
  const exit = once(child, 'exit');
  child.stdin?.write('end\n');
  return within(5_000, 'the process to end', exit);
}

describe('standard output (H12)', () => {
  test('a pipe that nobody reads does not stop the writer, and gets all of it when it is read again', async (t) => {
    const child = await startWriter(t, 4_000);
    const all = child.stdout ? text(child.stdout) : assert.fail();
    assert.deepEqual(await ended(child), [0, null]);
    assert.equal(await all, line.repeat(4_000));
  });

  test('what is too much is lost, and its lines are counted', async (t) => {
    const child = await startWriter(t, 20_000);
    const all = child.stdout ? text(child.stdout) : assert.fail();
    assert.deepEqual(await ended(child), [0, null]);
    const [kept = '', lost] = (await all).split('lost ');
    assert.equal(kept.length / line.length + Number(lost), 20_000);
    assert.ok(kept.length > 8 * 1024 * 1024);
  });

  test('a reader that leaves harms nobody', async (t) => {
    const child = await startWriter(t, 4_000);
    child.stdout?.destroy();
    assert.deepEqual(await ended(child), [0, null]);
  });

  test('a file has all of it, and a full disk harms nobody', async (t) => {
    const file = join(temporaryFolder(t), 'log');
    for (const path of [file, '/dev/full']) {
      const descriptor = openSync(path, 'w');
      t.after(() => closeSync(descriptor));
      assert.deepEqual(await ended(await startWriter(t, 100, descriptor)), [0, null]);
    }
    assert.equal(readFileSync(file, 'utf8'), line.repeat(100));
  });
});
