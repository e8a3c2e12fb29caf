/** How operators hold a circuit open or closed, or let it go as it measures; every use of it is an audit record. */

import type { AuditTrail } from '../../flow/audit-event.ts';
import type { CircuitPlace, Hold, Holds } from './holds.ts';

/** What an operator asks for. */
export interface HoldOrder extends CircuitPlace {
  readonly who: string;
  readonly hold: Hold['as'] | null;
  /** Stands in the audit log, and in the view of the circuit. */
  readonly reason: string;
  /** How long, in milliseconds. */
  readonly forMs: number;
}

/** @throws GatewayError STATE_UNAVAILABLE; it is not known then whether it was done */
export type HoldCircuit = (order: HoldOrder) => Promise<void>;

export function createHoldCircuit(holds: Holds, audit: AuditTrail): HoldCircuit {
  return async ({ who, environment, lane, hold, reason, forMs }) => {
    const untilMs = Date.now() + forMs;
    const until = new Date(untilMs).toISOString();
    const details = { environment, lane, hold, reason, ...(hold && { until }) };
    const done = hold
      ? holds.hold({ environment, lane, as: hold, reason, untilMs })
      : holds.release({ environment, lane });
    const outcome = await done.then(
      () => 'done',
      () => 'failed',
    );
    await audit.record({ who, action: 'hold circuit', outcome, details });
    await done;
  };
}
