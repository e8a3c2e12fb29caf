/** What operators decided about circuits: held open or closed, for a time, on all instances and across restarts. */

import { z } from 'zod';
import { type Lane, lanes } from '../../pis/operations.ts';
import type { AuditRecorder } from '../../request/audit-event.ts';
import type { KeyValues, PubSub } from '../../state/ports.ts';

const key = 'circuit:holds';
const channel = 'circuit';

const holdShape = z.object({
  environment: z.string(),
  lane: z.enum(lanes),
  /** Open: nothing is sent. Closed: all is sent, whatever becomes of it. */
  as: z.enum(['open', 'closed']),
  reason: z.string(),
  /** Milliseconds since 1970; as far as dates go (ECMA-262, time values and time range). */
  untilMs: z.number().max(8.64e15),
});

export type Hold = Readonly<z.output<typeof holdShape>>;

/** Which circuit. */
export interface CircuitId {
  readonly environment: string;
  readonly lane: Lane;
}

export interface Holds {
  /** The hold on a circuit, as far as this instance knows; one that is over is none. */
  of(place: CircuitId): Hold | undefined;
  /**
   * Holds a circuit, in place of any hold before.
   *
   * @throws GatewayError STATE_UNAVAILABLE if the state cannot be reached; it is not known then whether it was done
   */
  hold(hold: Hold): Promise<void>;
  /** Lets a circuit go as it measures. @throws GatewayError STATE_UNAVAILABLE as above */
  release(place: CircuitId): Promise<void>;
  /** Reads what is decided; for the start and the heartbeat. @throws GatewayError STATE_UNAVAILABLE: what was known stays */
  refresh(): Promise<void>;
}

interface HoldsDependencies {
  readonly keyValues: KeyValues;
  readonly pubsub: PubSub;
}

/** @param wall milliseconds since 1970 */
export function createHolds({ keyValues, pubsub }: HoldsDependencies, wall: () => number = Date.now): Holds {
  let known: readonly Hold[] = [];

  pubsub.subscribe(channel, () => void refresh().catch(() => {})); // missed: the next heartbeat sees it

  async function refresh(): Promise<void> {
    known = inEffect(await keyValues.read(key));
  }

  const inEffect = (raw: string | undefined): readonly Hold[] =>
    parseHolds(raw).filter(({ untilMs }) => untilMs > wall());

  async function change(next: (holds: readonly Hold[]) => readonly Hold[]): Promise<void> {
    const raw = await keyValues.read(key);
    const holds = next(inEffect(raw));
    const text = JSON.stringify(holds);
    const keptMs = Math.max(1, ...holds.map(({ untilMs }) => untilMs - wall()));
    const done = await (raw === undefined
      ? keyValues.writeIfAbsent(key, text, keptMs)
      : keyValues.replace(key, raw, text, keptMs));
    if (!done) return change(next); // somebody else changed it meanwhile
    known = holds;
    await pubsub.publish(channel, '').catch(() => {}); // the others read it with their heartbeat besides
  }

  const others = (place: CircuitId) => (hold: Hold) => !isFor(hold, place);

  return {
    of: (place) => known.find((hold) => isFor(hold, place) && hold.untilMs > wall()),
    hold: (hold) => change((holds) => [...holds.filter(others(hold)), hold]),
    release: (place) => change((holds) => holds.filter(others(place))),
    refresh,
  };
}

const isFor = (hold: Hold, { environment, lane }: CircuitId) =>
  hold.environment === environment && hold.lane === lane;

/** What is not ours, or of a later version, is no hold. */
function parseHolds(raw: string | undefined): readonly Hold[] {
  try {
    return z.array(holdShape).safeParse(JSON.parse(raw ?? '[]')).data ?? [];
  } catch {
    return [];
  }
}

// MERGED HEADER (rewrite or remove):
/* How operators hold a circuit open or closed, or let it go as it measures; every use of it is an audit record. */

/** What an operator asks for. */
export interface HoldRequest extends CircuitId {
  readonly who: string;
  readonly hold: Hold['as'] | null;
  /** Stands in the audit log, and in the view of the circuit. */
  readonly reason: string;
  /** How long, in milliseconds. */
  readonly forMs: number;
}

/** @throws GatewayError STATE_UNAVAILABLE; it is not known then whether it was done */
export type HoldCircuit = (order: HoldRequest) => Promise<void>;

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
