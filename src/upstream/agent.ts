/** The pool of connections to one environment of the bank; never shared with another environment. */

import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Environment } from '../flow/environment.ts';
import type { Credentials } from './credentials.ts';

interface PoolSettings {
  /** Connections at most, per environment. */
  readonly maxSockets: number;
  /** A pooled connection idle for longer, in milliseconds, is closed: it must be less than the bank's own limit. */
  readonly idle: number;
}

/** A keep-alive pool; the connection used last is taken first, so that surplus ones fall idle and close. */
export function createAgent(
  environment: Environment,
  { maxSockets, idle }: PoolSettings,
  credentials: Credentials = {},
): HttpAgent {
  const options = {
    keepAlive: true,
    maxSockets,
    maxFreeSockets: maxSockets,
    timeout: idle,
    scheduling: 'lifo',
  } as const;
  return environment.origin.startsWith('https:')
    ? new HttpsAgent({ ...options, ...credentials, minVersion: 'TLSv1.2' })
    : new HttpAgent(options);
}
