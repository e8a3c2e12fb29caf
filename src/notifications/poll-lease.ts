/** The lease on the polls of a payment: among all instances, one polls at a time, with the credentials that it has. */

import { randomUUID } from 'node:crypto';
import type { KeyValues } from '../state/ports.ts';

export interface PollLease {
  /** Nobody else polls until then. Never fails. */
  keep(ms: number): Promise<void>;
  /** Another instance may poll at once. Never fails. */
  release(): Promise<void>;
}

/** The lease of an instance that dies expires after this time. Milliseconds. */
const leaseMs = 5_000;

/**
 * Takes the lease, and renews it until it is kept or released.
 *
 * @returns `undefined` if another instance holds it
 * @throws GatewayError STATE_UNAVAILABLE
 */
export async function takePollLease(keyValues: KeyValues, name: string): Promise<PollLease | undefined> {
  const holder = randomUUID();
  if (!(await keyValues.writeIfAbsent(name, holder, leaseMs))) return undefined;
  const renew = (ms: number) => keyValues.replace(name, holder, holder, ms).then(ignore, ignore);
  const renewal = setInterval(renew, leaseMs / 3, leaseMs);
  renewal.unref();
  return {
    keep(ms) {
      clearInterval(renewal);
      return renew(ms);
    },
    release() {
      clearInterval(renewal);
      return keyValues.removeIf(name, holder).then(ignore, ignore);
    },
  };
}

function ignore(): void {}
