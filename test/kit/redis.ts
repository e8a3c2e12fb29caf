/** A Redis for a test, found or started; without one, the tests that need it are skipped, loudly. */

import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { howToGetRedis, redisIsRequired, redisProgram, runningRedis } from './find-redis.ts';
import type { Life } from './life.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';

/** A server of this test's own. */
export interface RedisServer extends RedisProcess {
  readonly url: string;
  /** Any command, on a connection of the test's own, such as `command('CONFIG', 'SET', 'maxmemory', '1mb')`. */
  command(name: string, ...args: readonly string[]): Promise<unknown>;
  /** Forgets everything. */
  flush(): Promise<void>;
}

const missing = `there is no Redis; get one: ${howToGetRedis}`;

/** Why tests that start a Redis of their own are skipped, or false: `test(name, { skip: withoutRedisServer }, ...)`. */
export const skipWithoutRedisServer: string | false = redisProgram() || redisIsRequired() ? false : missing;

/** Why tests that need any Redis are skipped, or false. */
export const skipWithoutRedis: string | false = runningRedis() ? false : skipWithoutRedisServer;

/** The address of a Redis that others may use too: keep to your own prefix. */
export async function sharedRedisUrl(life: Life): Promise<string> {
  return runningRedis() ?? (await startRedis(life)).url;
}

/** A server that answers, keeps nothing on disk, and ends with the test. @param args further arguments of redis-server */
export async function startRedis(life: Life, args: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedisProcess(life, { args: () => ['--save', '', '--appendonly', 'no', ...args] });
  const url = `redis://127.0.0.1:${server.port}`;
  const command = (name: string, ...rest: readonly string[]) => sendRedisCommand(server.port, name, ...rest);
  return { ...server, url, command, flush: async () => void (await command('FLUSHALL')) };
}

/**
 * Ways to one new part of a Redis, for an instance each, which wait for answers as long as a way can: so that on a busy
 * machine nothing but what a test does makes the state unavailable.
 */
export function redisStateFactory(url: string, prefix = `test-${randomUUID()}:`): () => State {
  return () => createRedisState({ kind: 'single', url }, prefix, () => {}, 500);
}

/** One command to the server on a port, on a connection of its own. */
export async function sendRedisCommand(
  port: number,
  name: string,
  ...args: readonly string[]
): Promise<unknown> {
  const client = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => {});
  try {
    await client.connect();
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}
