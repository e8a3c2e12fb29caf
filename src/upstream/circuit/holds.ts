/** Holds: operators keep a circuit open or closed for a time, on all instances and across restarts. */

import { type Lane, lanes } from '../../pis/operations.ts';
import type { AuditRecorder } from '../../request/audit-event.ts';
import type { PubSub } from '../../state/ports.ts';
import type { HoldTable, StoredHold } from '../../store/holds.ts';

export interface CircuitId {
  readonly environment: string;
  readonly lane: Lane;
}

export interface Hold extends CircuitId {
  /** Open: no call is sent. Closed: every call is sent, whatever its outcome. */
  readonly as: StoredHold['as'];
  readonly reason: string;
  /** Milliseconds since 1970, on the clock of this instance. */
  readonly untilMs: number;
}

export interface Holds {
  /** The current hold on a circuit, as far as this instance knows. */
  of(id: CircuitId): Hold | undefined;
  /** Holds a circuit; replaces an earlier hold. @throws DatabaseError; the hold may be stored nevertheless */
  hold(hold: StoredHold & CircuitId): Promise<void>;
  /** Removes the hold. @throws DatabaseError as above */
  release(id: CircuitId): Promise<void>;
  /** Reads the holds from the database. @throws DatabaseError; the known holds then stay in effect */
  refresh(): Promise<void>;
}

const channel = 'circuit';

/** @param wall milliseconds since 1970 */
export function createHolds(table: HoldTable, pubsub: PubSub, wall: () => number = Date.now): Holds {
  let known: readonly Hold[] = [];

  pubsub.subscribe(channel, () => void refresh().catch(() => {})); // the heartbeat reads them again

  async function refresh(): Promise<void> {
    const stored = await table.read();
    const nowMs = wall();
    known = stored.flatMap(({ lane: name, leftMs, ...hold }) => {
      const lane = lanes.find((one) => one === name);
      return lane === undefined ? [] : { ...hold, lane, untilMs: nowMs + leftMs };
    });
  }

  async function change(write: () => Promise<void>): Promise<void> {
    await table.deleteEnded();
    await write();
    await refresh();
    await pubsub.publish(channel, '').catch(() => {}); // the other instances read them every second
  }

  return {
    of: (id) => known.find((hold) => isFor(hold, id) && hold.untilMs > wall()),
    hold: (hold) => change(() => table.hold(hold)),
    release: (id) => change(() => table.release(id)),
    refresh,
  };
}

const isFor = (hold: Hold, { environment, lane }: CircuitId) =>
  hold.environment === environment && hold.lane === lane;

/** A request of an operator to hold a circuit, or to release it. */
interface HoldRequest extends CircuitId {
  readonly who: string;
  readonly hold: Hold['as'] | null;
  /** Appears in the audit log and in the view of the circuit. */
  readonly reason: string;
  readonly forMs: number;
}

/** @throws DatabaseError; the request may have taken effect nevertheless */
export type HoldCircuit = (request: HoldRequest) => Promise<void>;

/** Carries out the requests of operators, and records each in the audit log. */
export function createHoldCircuit(holds: Holds, audit: AuditRecorder): HoldCircuit {
  return async ({ who, environment, lane, hold, reason, forMs }) => {
    const until = new Date(Date.now() + forMs).toISOString();
    const details = { environment, lane, hold, reason, ...(hold && { until }) };
    const done = hold
      ? holds.hold({ environment, lane, as: hold, reason, leftMs: forMs })
      : holds.release({ environment, lane });
    const outcome = await done.then(
      () => 'done',
      () => 'failed',
    );
    await audit.record({ who, action: 'hold circuit', outcome, details });
    await done;
  };
}
