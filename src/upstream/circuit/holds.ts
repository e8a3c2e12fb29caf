/** Holds: operators keep a circuit open or closed for a time, on all instances and across restarts. */

import { z } from 'zod';
import { type Lane, lanes } from '../../pis/operations.ts';
import type { AuditRecorder } from '../../request/audit-event.ts';
import { parseStored } from '../../state/parse-stored.ts';
import type { KeyValues, PubSub } from '../../state/ports.ts';

export interface CircuitId {
  readonly environment: string;
  readonly lane: Lane;
}

const holdSchema = z.object({
  environment: z.string(),
  lane: z.enum(lanes),
  /** Open: no call is sent. Closed: every call is sent, whatever its outcome. */
  as: z.enum(['open', 'closed']),
  reason: z.string(),
  /** Milliseconds since 1970, up to the largest date (ECMA-262, time values and time range). */
  untilMs: z.number().max(8.64e15),
});

export type Hold = Readonly<z.output<typeof holdSchema>>;

export interface Holds {
  /** The current hold on a circuit, as far as this instance knows. */
  of(id: CircuitId): Hold | undefined;
  /**
   * Holds a circuit; replaces an earlier hold.
   *
   * @throws GatewayError STATE_UNAVAILABLE if the state cannot be reached; the hold may be stored nevertheless
   */
  hold(hold: Hold): Promise<void>;
  /** Removes the hold. @throws GatewayError STATE_UNAVAILABLE as above */
  release(id: CircuitId): Promise<void>;
  /** Reads the holds from the state. @throws GatewayError STATE_UNAVAILABLE; the known holds then stay in effect */
  refresh(): Promise<void>;
}

interface HoldsDependencies {
  readonly keyValues: KeyValues;
  readonly pubsub: PubSub;
}

const key = 'circuit:holds';
const channel = 'circuit';

/** @param wall milliseconds since 1970 */
export function createHolds({ keyValues, pubsub }: HoldsDependencies, wall: () => number = Date.now): Holds {
  let known: readonly Hold[] = [];

  // After a missed message the next state heartbeat refreshes.
  pubsub.subscribe(channel, () => void refresh().catch(() => {}));

  async function refresh(): Promise<void> {
    known = currentHolds(await keyValues.read(key));
  }

  const currentHolds = (raw: string | undefined): readonly Hold[] =>
    parseHolds(raw).filter(({ untilMs }) => untilMs > wall());

  async function update(change: (holds: readonly Hold[]) => readonly Hold[]): Promise<void> {
    const raw = await keyValues.read(key);
    const holds = change(currentHolds(raw));
    const text = JSON.stringify(holds);
    const ttlMs = Math.max(1, ...holds.map(({ untilMs }) => untilMs - wall()));
    const isStored = await (raw === undefined
      ? keyValues.writeIfAbsent(key, text, ttlMs)
      : keyValues.replace(key, raw, text, ttlMs));
    if (!isStored) return update(change); // another instance has changed the holds
    known = holds;
    await pubsub.publish(channel, '').catch(() => {}); // the other instances also refresh with their heartbeat
  }

  const isOther = (id: CircuitId) => (hold: Hold) => !isFor(hold, id);

  return {
    of: (id) => known.find((hold) => isFor(hold, id) && hold.untilMs > wall()),
    hold: (hold) => update((holds) => [...holds.filter(isOther(hold)), hold]),
    release: (id) => update((holds) => holds.filter(isOther(id))),
    refresh,
  };
}

const isFor = (hold: Hold, { environment, lane }: CircuitId) =>
  hold.environment === environment && hold.lane === lane;

/** Ignores a foreign value, or one of a later version. */
const parseHolds = (raw = '[]'): readonly Hold[] => parseStored(z.array(holdSchema), raw) ?? [];

/** A request of an operator to hold a circuit, or to release it. */
interface HoldRequest extends CircuitId {
  readonly who: string;
  readonly hold: Hold['as'] | null;
  /** Appears in the audit log and in the view of the circuit. */
  readonly reason: string;
  readonly forMs: number;
}

/** @throws GatewayError STATE_UNAVAILABLE; the request may have taken effect nevertheless */
export type HoldCircuit = (request: HoldRequest) => Promise<void>;

/** Carries out the requests of operators, and records each in the audit log. */
export function createHoldCircuit(holds: Holds, audit: AuditRecorder): HoldCircuit {
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
