/** The pool of connections to one environment of the bank; never shared with another environment. */

import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import type { Environment } from '../flow/environment.ts';
import type { Credentials } from './credentials.ts';

interface PoolSettings {
  /** Connections at most, per environment. */
  readonly maxSockets: number;
  /** A pooled connection idle for longer, in milliseconds, is closed: it must be less than the bank's own limit. */
  readonly idle: number;
}

/** A pool that can be told to keep only what was used just now. */
export type Pool = HttpAgent & {
  /**
   * Closes the connections that were unused for this long, in milliseconds, or longer. Called just before a payment is
   * sent: the likelier a bank has closed a connection meanwhile, the likelier the payment's outcome would not be known.
   */
  readonly closeIdle: (idleMs: number) => void;
  /** Closes what is idle now, and every other connection when its answer has come: nothing new should begin here. */
  readonly drain: () => void;
};

/** A keep-alive pool; the connection used last is taken first, so that surplus ones fall idle and close. */
export function createAgent(
  environment: Environment,
  { maxSockets, idle }: PoolSettings,
  credentials: Credentials = {},
): Pool {
  const options = {
    keepAlive: true,
    maxSockets,
    maxFreeSockets: maxSockets,
    timeout: idle,
    scheduling: 'lifo',
  } as const;
  return resting(
    environment.origin.startsWith('https:')
      ? new HttpsAgent({ ...options, ...credentials, minVersion: 'TLSv1.2' })
      : new HttpAgent(options),
  );
}

/** How long a connection must stay silent after an answer before it is used again. Milliseconds. */
const restMs = 5;

/**
 * Lets every connection rest before it goes back into the pool: what a bank sends behind its answer would else be taken
 * for the answer to the next request, another tenant's perhaps. A connection that speaks unasked is closed.
 */
function resting(agent: HttpAgent): Pool {
  const unusedSinceMs = new WeakMap<Socket, number>();
  let draining = false;
  const poolers = agent.listeners('free');
  agent.removeAllListeners('free');
  agent.on('free', (socket: Socket, ...rest: unknown[]) => {
    unusedSinceMs.set(socket, performance.now());
    const close = () => socket.destroy();
    socket.on('data', close).on('error', close);
    const pool = () => {
      socket.off('data', close).off('error', close);
      if (draining) close();
      else for (const pooler of poolers) Reflect.apply(pooler, agent, [socket, ...rest]);
    };
    // After a stall of our own process the timers run before the sockets are read: what has come is heard first.
    setTimeout(() => setImmediate(pool), restMs);
  });
  function closeIdle(idleMs: number): void {
    const latestMs = performance.now() - idleMs;
    for (const socket of Object.values(agent.freeSockets).flatMap((pooled = []) => pooled)) {
      if ((unusedSinceMs.get(socket) ?? 0) <= latestMs) socket.destroy();
    }
  }
  return Object.assign(agent, {
    closeIdle,
    drain() {
      draining = true;
      closeIdle(0);
    },
  });
}
