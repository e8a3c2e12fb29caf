/** How a batch of commands is passed to the script of redis-scripts.ts, and what the script returns. */

import { createHash } from 'node:crypto';
import type { RedisCommand } from './redis-batch.ts';
import { batchLua } from './redis-scripts.ts';

export type ScriptArguments = readonly [keys: number, ...RedisCommand['args'][number][]];

/** The script by which Redis executes a command: by its hash, if it knows the script. */
export const scriptOf = {
  evalsha: createHash('sha1').update(batchLua).digest('hex'),
  eval: batchLua,
} as const;

/** The arguments of the script: the number of keys, the keys, and the rest. */
export function batchArguments(commands: readonly RedisCommand[]): ScriptArguments {
  const keys = commands.map(({ key }) => key);
  const args: RedisCommand['args'][number][] = [commands.length];
  for (const { name, fence, otherKeys = [], after, args: own } of commands) {
    const first = fence ? [keys.push(fence.key), fence.epoch, fence.sequence] : [];
    if (otherKeys.length > 0) first.push(keys.push(...otherKeys) - otherKeys.length + 1);
    if (after) args.push('after', commands.indexOf(after) + 1);
    args.push(name, first.length + own.length, ...first, ...own);
  }
  return [keys.length, ...keys, ...args];
}

/** The results of a script of `size` commands: its own error counts for each of them. */
export function resultsOf(
  size: number,
  [error, results]: [error: Error | null, results?: unknown] = [null],
): readonly unknown[] {
  const list = Array.isArray(results) ? results : [];
  return Array.from({ length: size }, (_, index) => error ?? list[index] ?? new Error('not executed'));
}

export const isScriptMissing = (result: unknown) =>
  result instanceof Error && result.message.startsWith('NOSCRIPT');
