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
  for (const { name, otherKeys = [], args: own } of commands) {
    const first = otherKeys.length > 0 ? [keys.push(...otherKeys) - otherKeys.length + 1] : [];
    args.push(name, first.length + own.length, ...first, ...own);
  }
  return [keys.length, ...keys, ...args];
}

export const isScriptMissing = (result: unknown) =>
  result instanceof Error && result.message.startsWith('NOSCRIPT');
