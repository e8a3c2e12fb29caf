/** The lease on the polls of a payment: among all instances, one polls at a time, with the credentials that it has. */

import { randomUUID } from 'node:crypto';
import type { PaymentOfTenant } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';

export interface PollLease {
  /** Nobody else polls until then. Never fails. */
  keep(ms: number): Promise<void>;
  /** Another instance may poll at once. Never fails. */
  release(): Promise<void>;
}

/**
 * Of another name after each change and write: a poll is then due although the interval has not passed.
 *
 * @param generation of the payment
 */
export const pollLeaseName = ({ tenantId, paymentKey }: PaymentOfTenant, generation: string): string =>
  `${paymentKey}:poll:${tenantId}:${generation}`;

/** The lease is kept for this part of the interval to the next poll: the clocks of the instances differ. */
const keptShare = 0.9;

/** How long to keep a lease after a poll. Milliseconds. */
export const keptMsOf = (intervalMs: number): number => Math.max(1, Math.floor(intervalMs * keptShare));

/** After a failure, which may concern only this instance, the lease is kept for no longer than this. Milliseconds. */
export const maxKeptAfterFailureMs = 5_000;

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
