/**
 * Runs scripts of package.json at the same time: `node scripts/run-together.ts types lint test:quick`.
 *
 * Prints the output of the last one as it arrives, and that of the others when they have ended. Exits with 1 if one fails.
 */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';

const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);

const names = process.argv.slice(2);
const results = await Promise.all(names.map((name) => run(name, name === names.at(-1))));
const failed = names.filter((_, index) => results[index] !== 0);
if (failed.length > 0) {
  console.error(`failed: ${failed.map((name) => `npm run ${name}`).join(', ')}`);
  process.exitCode = 1;
}

/** @returns the exit code, or the name of the signal that has ended the script */
async function run(name: string, isStreamed: boolean): Promise<number | string | null> {
  const command = scripts[name];
  if (command === undefined) throw new Error(`package.json has no script ${name}`);
  const output = isStreamed ? 'inherit' : 'pipe';
  const child = spawn(`${command}${isStreamed ? '' : ' 2>&1'}`, {
    shell: true,
    stdio: ['ignore', output, 'inherit'],
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
  const { promise: end, resolve } = Promise.withResolvers<number | string | null>();
  child.once('close', (code, signal) => resolve(code ?? signal));
  if (child.stdout) process.stdout.write(await text(child.stdout));
  return end;
}
