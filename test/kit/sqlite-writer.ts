/**
 * A process of its own that writes to a state in a file: `node file-writer.ts FILE COUNT SIZE`.
 *
 * It says `open`, then the number of each write that was acknowledged, ten at a time on their way; then `done`. What
 * fails it says as a sentence, and goes on living.
 */

import { writeSync } from 'node:fs';
import { createSqliteState } from '../../src/state/sqlite.ts';

const [file = '', count = '0', size = '0'] = process.argv.slice(2);
const state = createSqliteState(file, (trouble) => say(`trouble: ${trouble}`));
const say = (text: unknown) => writeSync(1, `${text}\n`); // at once, whatever becomes of the process
const numbers = Array.from({ length: Number(count) }, (_, index) => index).values();

async function writeAll(): Promise<void> {
  for (const number of numbers) {
    const pair = [
      state.keyValues.write(`${number}`, 'x'.repeat(Number(size))),
      state.sets.add('set', `${number}`),
    ];
    await Promise.all(pair);
    say(number);
  }
}

try {
  await state.open();
  say('open');
  await Promise.all(Array.from({ length: 10 }, writeAll));
  say('done');
} catch (error) {
  say(error instanceof Error ? error.message : error);
}
setInterval(() => {}, 60_000); // it lives until it is killed
