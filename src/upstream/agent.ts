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
  /** Closes what is idle now, and every other connection when nobody waits for one: nothing new should begin here. */
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
  return withRest(
    environment.origin.startsWith('https:')
      ? new HttpsAgent({ ...options, ...credentials, minVersion: 'TLSv1.2' })
      : new HttpAgent(options),
  );
}

/** How long a connection must stay silent after an answer before it is used again. Milliseconds. */
const restMs = 5;

/** A connection whose answer has come, and that is not in the pool yet. */
interface Resting {
  /** On the clock of `performance.now()`. */
  readonly sinceMs: number;
  /** Puts it into the pool. */
  readonly pool: () => void;
}

/**
 * Lets every connection rest before it goes back into the pool: what a bank sends behind its answer would else be taken
 * for the answer to the next request, another tenant's perhaps. A connection that speaks unasked is closed.
 */
function withRest(agent: HttpAgent): Pool {
  const unusedSinceMs = new WeakMap<Socket, number>();
  /** Those that rest: nothing is asked on them, and nothing may be said. */
  const silent = new WeakSet<Socket>();
  /** In the order in which they began. */
  let resting: Resting[] = [];
  let draining = false;
  const poolers = agent.listeners('free');
  agent.removeAllListeners('free');
  agent.on('free', (socket: Socket, ...rest: unknown[]) => {
    const sinceMs = performance.now();
    if (!unusedSinceMs.has(socket)) watch(socket);
    unusedSinceMs.set(socket, sinceMs);
    silent.add(socket);
    const pool = () => {
      silent.delete(socket);
      if (draining && !isWaitedFor()) socket.destroy();
      else for (const pooler of poolers) Reflect.apply(pooler, agent, [socket, ...rest]);
    };
    if (resting.length === 0) wake(restMs);
    resting.push({ sinceMs, pool });
  });

  const isWaitedFor = () => Object.keys(agent.requests).length > 0;

  /** For as long as it lives: listeners that come and go with every call cost more. */
  function watch(socket: Socket): void {
    socket.on('data', () => silent.has(socket) && socket.destroy()).on('error', () => socket.destroy());
  }

  /**
   * After a stall of our own process the timers run before the sockets are read: what has come is heard first. Who has
   * rested is settled before that reading: a stall in the middle of it makes nobody rested who was not heard since.
   */
  function wake(inMs: number): void {
    setTimeout(() => {
      const untilMs = performance.now() - restMs;
      setImmediate(() => poolRested(untilMs));
    }, inMs);
  }

  function poolRested(untilMs: number): void {
    const rested = resting.filter(({ sinceMs }) => sinceMs <= untilMs);
    resting = resting.filter(({ sinceMs }) => sinceMs > untilMs);
    const [next] = resting;
    if (next) wake(Math.max(1, Math.ceil(next.sinceMs + restMs - performance.now())));
    for (const { pool } of rested) pool();
  }

  function closeIdle(idleMs: number): void {
    const latestMs = performance.now() - idleMs;
    for (const pooled of Object.values(agent.freeSockets))
      for (const socket of pooled ?? []) {
        if ((unusedSinceMs.get(socket) ?? 0) > latestMs) break; // who was used last comes last
        socket.destroy();
      }
  }
  return Object.assign(agent, {
    /** All its connections lead to one place, by the same credentials: Node would make a name of all options for each call. */
    getName: () => 'bank',
    closeIdle,
    drain() {
      draining = true;
      closeIdle(0);
    },
  });
}
