/**
 * A process that writes to a SQLite state: `node sqlite-writer.ts FILE COUNT SIZE`.
 *
 * It prints `open`, then the number of each acknowledged write (ten run at the same time), then `done`. It prints errors as
 * text and keeps running.
 */

import { writeSync } from 'node:fs';
import { createSqliteState } from '../../src/state/former/sqlite.ts';

const [file = '', count = '0', size = '0'] = process.argv.slice(2);
const state = createSqliteState(file, (problem) => print(`problem: ${problem}`));
const print = (text: unknown) => writeSync(1, `${text}\n`); // synchronously, in case the process is killed next
const numbers = Array.from({ length: Number(count) }, (_, index) => index).values();

async function writeAll(): Promise<void> {
  for (const number of numbers) {
    await state.keyValues.write(`${number}`, 'x'.repeat(Number(size)));
    print(number);
  }
}

try {
  await state.open();
  print('open');
  await Promise.all(Array.from({ length: 10 }, writeAll));
  print('done');
} catch (error) {
  print(error instanceof Error ? error.message : error);
}
setInterval(() => {}, 60_000); // until it is killed
