/**
 * The circuits of all tenants in one environment and lane.
 *
 * A tenant whose requests make the bank fail opens only its own circuit. The failures concern the bank, and open the circuits
 * of all tenants, if no connection can be made, or if every tenant with calls in the window fails (ADR 75).
 */

import type { CircuitSettings } from '../../config/schema.ts';
import { type Lane, lanes } from '../../pis/operations.ts';
import {
  type Circuit,
  type CountedOutcome,
  createCircuit,
  type MeasuredState,
  type StateChange,
} from './circuit.ts';
import type { ProbeOutcome } from './classify-outcome.ts';
import { createFailureWindow } from './failure-window.ts';
import { type CircuitCause, causeOfLane, createFirstFailure } from './first-failure.ts';
import type { CircuitId, Hold, Holds } from './holds.ts';
import type { CircuitProbe } from './recovery.ts';

export interface Circuits {
  /** @throws Error if there is no such environment */
  of(environment: string, lane: Lane): TenantCircuits;
  views(): readonly CircuitView[];
  /** Closes all circuits, for a reload. Holds persist; the circuits of the new configuration start closed. */
  close(): void;
}

export interface TenantCircuits {
  of(tenant: string): Circuit;
  view(): CircuitView;
  close(): void;
}

/** The circuits of one environment and lane in the admin API. */
export interface CircuitView extends CircuitId {
  /** The measured state, regardless of a hold, of the tenant whose circuit admits most calls. */
  readonly state: MeasuredState['state'];
  readonly hold: Hold['as'] | null;
  /** End of the hold, or time of the next probe, as in RFC 3339. */
  readonly until: string | null;
  /** Reason of the hold, or why the circuit opened. */
  readonly reason: string | null;
  /** Why the circuits opened first; `null` if the measured state is closed. */
  readonly cause: CircuitCause | null;
  /** The tenants whose circuit is not closed. */
  readonly tenants: readonly TenantCircuitView[];
}

interface TenantCircuitView extends MeasuredState {
  readonly tenant: string;
}

/** The state in effect: that of the hold if there is one, otherwise the measured state. */
export const stateInEffect = ({ hold, state }: Pick<CircuitView, 'hold' | 'state'>): MeasuredState['state'] =>
  hold ?? state;

/** A change of the measured state for one tenant. */
export interface CircuitChange extends CircuitId, StateChange {
  readonly tenant: string;
}

interface CircuitsDependencies {
  /** By environment. */
  readonly probes: ReadonlyMap<string, CircuitProbe>;
  readonly holds: Pick<Holds, 'of'>;
  readonly onChange: (change: CircuitChange) => void;
}

/** Creates the circuits of one configuration. */
export function createCircuits(
  settings: CircuitSettings,
  { probes, holds, onChange }: CircuitsDependencies,
): Circuits {
  const circuits = new Map(
    Array.from(probes, ([environment, probe]) => {
      const create = (lane: Lane) =>
        createTenantCircuits({ environment, lane }, settings, { probe, holdOf: holds.of, onChange });
      return [environment, { write: create('write'), read: create('read'), status: create('status') }];
    }),
  );
  const all = () => [...circuits.values()].flatMap((byLane) => lanes.map((lane) => byLane[lane]));
  return {
    of(environment, lane) {
      const byLane = circuits.get(environment);
      if (!byLane) throw new Error(`there is no environment ${environment}`);
      return byLane[lane];
    },
    views: () => all().map((each) => each.view()),
    close() {
      for (const each of all()) each.close();
    },
  };
}

interface TenantCircuitsDependencies {
  readonly probe: CircuitProbe;
  readonly holdOf: (id: CircuitId) => Hold | undefined;
  readonly onChange: (change: CircuitChange) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

export function createTenantCircuits(
  id: CircuitId,
  settings: CircuitSettings,
  { probe, holdOf, onChange, now = () => performance.now(), wall = Date.now }: TenantCircuitsDependencies,
): TenantCircuits {
  /** By tenant. */
  const circuits = new Map<string, Circuit>();
  let removeIdleAtSize = minRemoveIdleSize;
  /** The result of the last search. It is checked first, so that most failures need no search. */
  let healthyCircuit: Circuit | undefined;
  let isShutDown = false;

  /** Counts the calls of all tenants for which no connection was made. */
  const connections = createFailureWindow(settings, now, {
    onThreshold: (failures, calls) =>
      openAll(`${failures} of ${calls} calls could not connect`, firstFailure.causeOf(failures, calls)),
  });
  /** Of all tenants. */
  const firstFailure = createFirstFailure(settings.window, now, wall);
  const sharedProbe = shareProbe(() => probe(id.lane), {
    reusableMs: settings.openFor / 2,
    onSuccess() {
      connections.reset();
      firstFailure.reset();
    },
    now,
  });

  function create(tenant: string): Circuit {
    if (circuits.size >= removeIdleAtSize) {
      removeIdle();
      removeIdleAtSize = Math.max(minRemoveIdleSize, 2 * circuits.size);
    }
    const circuit = createCircuit(id, settings, {
      probe: sharedProbe,
      holdOf,
      worksForOther,
      events: {
        onChange: (change) => onChange({ ...id, tenant, ...change }),
        onFailedCall: firstFailure.record,
        onOutcome: recordConnection,
        onFailure: openAllIfAllFail,
        onOpened: removeIdle,
      },
      now,
      wall,
    });
    if (isShutDown) circuit.close();
    else if (connections.isOpen() || (circuits.size > 0 && !anyClosed()))
      startWithoutCalls(circuit, laneCause());
    circuits.set(tenant, circuit);
    return circuit;
  }

  /** For a tenant without calls in the window, while the circuits of the others are not closed. */
  function startWithoutCalls(circuit: Circuit, cause: CircuitCause | undefined): void {
    if (connections.isOpen()) circuit.open('connections to the bank fail', cause);
    else circuit.startProbation('open for every other tenant', cause);
  }

  function recordConnection(outcome: CountedOutcome): void {
    if (!connections.isOpen()) connections.record(outcome === 'unreachable' ? 'failure' : 'success');
  }

  /** Whether the bank works for a tenant. */
  function worksForOther(): boolean {
    if (!healthyCircuit || !isHealthy(healthyCircuit))
      healthyCircuit = [...circuits.values()].find(isHealthy);
    return healthyCircuit !== undefined;
  }

  function openAllIfAllFail(): void {
    if (worksForOther()) return;
    const closed = [...circuits.values()].filter((circuit) => circuit.isClosed());
    const counts = closed.map((circuit) => circuit.counts()).filter(({ calls }) => calls > 0);
    const sum = (name: 'failures' | 'calls') => counts.reduce((total, each) => total + each[name], 0);
    if (counts.length < 2 || sum('calls') < settings.minimumCalls) return; // a single circuit opens by itself
    const [failed, total] = [sum('failures'), sum('calls')];
    openAll(
      `${failed} of ${total} calls of ${counts.length} tenants failed`,
      firstFailure.causeOf(failed, total),
    );
  }

  /** Opens the circuits of all tenants. Removes idle ones instead: `create` decides how the next call of such a tenant starts. */
  function openAll(why: string, cause: CircuitCause | undefined): void {
    removeIdle();
    const closed = [...circuits.values()].filter((circuit) => circuit.isClosed());
    for (const circuit of closed) {
      if (circuit.counts().calls > 0) circuit.open(why, cause);
      else startWithoutCalls(circuit, cause); // its first calls are in progress
    }
  }

  function removeIdle(): void {
    for (const [tenant, circuit] of circuits) {
      if (!circuit.isIdle()) continue;
      circuits.delete(tenant);
      circuit.close();
    }
  }

  const laneCause = (views = [...circuits.values()].map((circuit) => circuit.view())) =>
    causeOfLane(
      views.flatMap(({ cause }) => cause ?? []),
      settings.window,
    );

  const anyClosed = () => [...circuits.values()].some((circuit) => circuit.isClosed());

  return {
    of: (tenant) => circuits.get(tenant) ?? create(tenant),
    view() {
      const views = Array.from(circuits, ([tenant, circuit]) => ({ tenant, ...circuit.view() }));
      const measured = views.toSorted(byState)[0] ?? closedState;
      const hold = holdOf(id);
      return {
        ...id,
        state: measured.state,
        hold: hold?.as ?? null,
        until: hold ? new Date(hold.untilMs).toISOString() : measured.until,
        reason: hold?.reason ?? measured.reason,
        cause: (measured.state !== 'closed' && laneCause(views)) || null,
        tenants: views.filter(({ state }) => state !== 'closed'),
      };
    },
    close() {
      isShutDown = true;
      for (const circuit of circuits.values()) circuit.close();
      connections.close();
    },
  };
}

/** Below this number, idle circuits are kept. Each takes 10 KB of memory. */
const minRemoveIdleSize = 64;

/** Whether the bank works for this tenant at the moment. */
function isHealthy(circuit: Circuit): boolean {
  if (!circuit.isClosed()) return false;
  const { calls, isFailing } = circuit.counts();
  return calls > 0 && !isFailing;
}

const closedState: MeasuredState = { state: 'closed', until: null, reason: null, cause: null };

const stateOrder = ['closed', 'probation', 'half-open', 'open'] as const;

/** The state that admits most calls first, then the earliest probe. */
const byState = (one: MeasuredState, other: MeasuredState): number =>
  stateOrder.indexOf(one.state) - stateOrder.indexOf(other.state) ||
  (one.until ?? '').localeCompare(other.until ?? '');

interface SharedProbeOptions {
  /** For how long no other probe is sent after a result. */
  readonly reusableMs: number;
  readonly onSuccess: () => void;
  readonly now: () => number;
}

/** One probe for the circuits of all tenants: the number of probes does not grow with the number of tenants. */
function shareProbe(
  probe: () => Promise<ProbeOutcome>,
  { reusableMs, onSuccess, now }: SharedProbeOptions,
): () => Promise<ProbeOutcome> {
  let active: Promise<ProbeOutcome> | undefined;
  let last: { readonly outcome: ProbeOutcome; readonly atMs: number } | undefined;

  async function start(): Promise<ProbeOutcome> {
    const outcome = await probe();
    active = undefined;
    if (outcome !== 'neutral') last = { outcome, atMs: now() };
    if (outcome === 'success') onSuccess();
    return outcome;
  }

  return async () => {
    if (active) return active;
    // A failure is reported to one circuit only, because it doubles the pause. `neutral` makes the others ask again.
    if (last && now() - last.atMs < reusableMs) return last.outcome === 'success' ? 'success' : 'neutral';
    active = start();
    return active;
  };
}
