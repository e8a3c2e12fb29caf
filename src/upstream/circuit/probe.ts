/** Asks the bank whether it is back: by a GET of the gateway's own, never by a payment. */

import type { Lane } from '../../pis/operations.ts';
import type { Answered } from '../shaping/bank-limit.ts';
import type { Shaper } from '../shaping/shaper.ts';
import { type Verdict, verdictOfFailure, verdictOfProbe } from './verdict.ts';

/**
 * Never rejects, and comes back in bounded time.
 *
 * @param lane whose circuit wants to know
 * @returns `nothing` if the bank could not be asked
 */
export type Probe = (lane: Lane) => Promise<Verdict>;

interface Parts {
  /** The probe takes a turn like any call. */
  readonly shaper: Pick<Shaper, 'run'>;
  /** Reads the environment's `probePath`. @param deadlineAtMs on the clock of `now` */
  readonly get: (deadlineAtMs: number) => Promise<Answered>;
  /** How long a probe may take in all, its turn included. Milliseconds. */
  readonly boundMs: number;
  readonly now?: () => number;
}

/** Nobody's: the gateway stands in the line beside the tenants. */
const tenant = '';

export function createProbe({ shaper, get, boundMs, now = () => performance.now() }: Parts): Probe {
  return (lane) => {
    const deadlineAtMs = now() + boundMs; // kept by the shaper, and by the transport
    return shaper
      .run({ lane, tenant, deadlineAtMs }, () => get(deadlineAtMs))
      .then(({ status }) => verdictOfProbe(status), verdictOfFailure);
  };
}
