/** A Redis for a test: a running one or a new process. Without one, the tests that need it are skipped with a reason. */

import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { howToGetRedis, redisIsRequired, redisProgram, runningRedis } from './find-redis.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';
import type { TestScope } from './test-scope.ts';

/** A server that only this test uses. */
export interface RedisServer extends RedisProcess {
  readonly url: string;
  /** Sends any command on a separate connection, such as `command('CONFIG', 'SET', 'maxmemory', '1mb')`. */
  command(name: string, ...args: readonly string[]): Promise<unknown>;
  flush(): Promise<void>;
}

const missing = `there is no Redis; get one: ${howToGetRedis}`;

/** Why tests that start a Redis are skipped, or false: `test(name, { skip: skipWithoutRedisServer }, ...)`. */
export const skipWithoutRedisServer: string | false = redisProgram() || redisIsRequired() ? false : missing;

/** Why tests that need any Redis are skipped, or false. */
export const skipWithoutRedis: string | false = runningRedis() ? false : skipWithoutRedisServer;

/** The address of a Redis that other tests may use as well: use a prefix of your own. */
export async function sharedRedisUrl(life: TestScope): Promise<string> {
  return runningRedis() ?? (await startRedis(life)).url;
}

/** Starts a server without persistence. @param args further arguments of redis-server */
export async function startRedis(life: TestScope, args: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedisProcess(life, () => ['--save', '', '--appendonly', 'no', ...args]);
  const url = `redis://127.0.0.1:${server.port}`;
  const command = (name: string, ...rest: readonly string[]) => sendRedisCommand(server.port, name, ...rest);
  return { ...server, url, command, flush: async () => void (await command('FLUSHALL')) };
}

/** Which database the gateways with these states share: it is kept when a test wraps a state. */
export const databaseOfState = Symbol('the database of a state');

/**
 * Creates states with a common prefix, one for each instance. Gateways with them share a database, too (database.ts). They have the longest possible timeout, so that only the test
 * itself makes the state unavailable, not a busy machine.
 */
export function redisStateFactory(
  url: string,
  prefix = `test-${randomUUID()}:`,
  timeoutMs = 2_000,
): () => State {
  return () => ({
    ...createRedisState({ kind: 'single', url }, prefix, () => {}, timeoutMs),
    [databaseOfState]: `${url} ${prefix}`,
  });
}

/** Sends one command on a new connection. */
export async function sendRedisCommand(
  port: number,
  name: string,
  ...args: readonly string[]
): Promise<unknown> {
  const client = new Redis(port, '127.0.0.1', {
    lazyConnect: true,
    retryStrategy: () => null,
    // Only the command itself is sent: tests repeat commands until something happens.
    enableReadyCheck: false,
    disableClientInfo: true,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}
