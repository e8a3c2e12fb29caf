/** Circuit breakers, one for each environment and lane: stop calls to a failing bank, and resume them after a probe. */

import type { CircuitSettings } from '../../config/schema.ts';
import { type Lane, lanes } from '../../pis/operations.ts';
import { type GatewayError, retryLater } from '../../request/errors.ts';
import { type CallOutcome, classifyError, classifyStatus } from './classify-outcome.ts';
import { createFailureWindow } from './failure-window.ts';
import type { CircuitId, Hold, Holds } from './holds.ts';
import { createRecovery, type Probe } from './recovery.ts';

export interface Circuits {
  /** @throws Error if there is no such environment */
  of(environment: string, lane: Lane): Circuit;
  views(): readonly CircuitView[];
  /** Closes all circuits, for a reload. Holds persist; the circuits of the new configuration start closed. */
  close(): void;
}

export interface Circuit {
  /**
   * Runs a call to the bank, or refuses it immediately.
   *
   * @param call may wait before it sends; it must then call `beforeSending`, which throws if the circuit has opened
   * @throws GatewayError CIRCUIT_OPEN with Retry-After; and whatever `call` throws
   */
  run<Response extends { readonly status: number }>(
    call: (beforeSending: () => void) => Promise<Response>,
  ): Promise<Response>;
  view(): CircuitView;
  /** Stops the timers and reports the last change, to closed. Outcomes of active calls no longer count. */
  close(): void;
}

/** A circuit in the admin API. */
export interface CircuitView extends CircuitId {
  /** The measured state, regardless of a hold. */
  readonly state: CircuitState['kind'];
  readonly hold: Hold['as'] | null;
  /** End of the hold, or time of the next probe, as in RFC 3339. */
  readonly until: string | null;
  /** Reason of the hold, or why the circuit opened. */
  readonly reason: string | null;
}

/** A change of the measured state. */
export interface CircuitChange extends CircuitId {
  readonly from: CircuitState['kind'];
  readonly to: CircuitState['kind'];
  readonly why: string;
}

type CircuitState =
  | { readonly kind: 'closed' }
  | { readonly kind: 'open'; readonly untilMs: number }
  | { readonly kind: 'half-open' }
  /** Writes resume one at a time; `trial` is the active one. */
  | { readonly kind: 'probation'; readonly trial: Admission | undefined };

/** Permission to send one call. */
interface Admission {
  /** How often the circuit had opened before: the outcome of a call from before the last opening does not count. */
  readonly openings: number;
  readonly counts: boolean;
}

interface CircuitsDependencies {
  /** By environment. */
  readonly probes: ReadonlyMap<string, Probe>;
  readonly holds: Pick<Holds, 'of'>;
  readonly onChange: (change: CircuitChange) => void;
}

/** Creates the circuits of one configuration. */
export function createCircuits(
  settings: CircuitSettings,
  { probes, holds, onChange }: CircuitsDependencies,
): Circuits {
  const circuits = new Map(
    [...probes].flatMap(([environment, probe]) =>
      lanes.map((lane) => [
        `${environment} ${lane}`,
        createCircuit({ environment, lane }, settings, { probe, holdOf: holds.of, onChange }),
      ]),
    ),
  );
  return {
    of(environment, lane) {
      const circuit = circuits.get(`${environment} ${lane}`);
      if (!circuit) throw new Error(`there is no environment ${environment}`);
      return circuit;
    },
    views: () => Array.from(circuits.values(), (circuit) => circuit.view()),
    close() {
      for (const circuit of circuits.values()) circuit.close();
    },
  };
}

interface CircuitDependencies {
  readonly probe: Probe;
  readonly holdOf: (id: CircuitId) => Hold | undefined;
  readonly onChange: (change: CircuitChange) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

export function createCircuit(
  id: CircuitId,
  settings: CircuitSettings,
  { probe, holdOf, onChange, now = () => performance.now(), wall = Date.now }: CircuitDependencies,
): Circuit {
  let state: CircuitState = { kind: 'closed' };
  let openings = 0;
  let openedBecause = '';
  let isShutDown = false;

  const failures = createFailureWindow(settings, now, (failed, total) => {
    open(`${failed} of ${total} calls failed`);
  });
  const recovery = createRecovery({
    openForMs: settings.openFor,
    probe: () => probe(id.lane),
    isHeldOpen: () => holdOf(id)?.as === 'open',
    onProbeStart: () => changeState({ kind: 'half-open' }, 'the pause is over'),
    onProbeResult(outcome) {
      if (outcome === 'failure') return open('the probe failed');
      failures.reset();
      const next: CircuitState =
        id.lane === 'write' ? { kind: 'probation', trial: undefined } : { kind: 'closed' };
      changeState(next, 'the probe succeeded');
    },
  });

  function changeState(next: CircuitState, why: string): void {
    reportChange(next.kind, why);
    state = next;
  }

  function reportChange(to: CircuitState['kind'], why: string): void {
    const from = state.kind;
    if (from !== to && !isShutDown) onChange({ ...id, from, to, why });
  }

  function open(why: string): void {
    openings += 1;
    openedBecause = why;
    changeState({ kind: 'open', untilMs: now() + recovery.start() }, why);
  }

  /** @param earlier the admission that the same call received before it waited */
  function admit(earlier?: Admission): Admission {
    const hold = holdOf(id);
    if (hold?.as === 'open') throw heldOpenByOperators(hold.untilMs - wall());
    if (hold?.as === 'closed') return { openings, counts: false };
    switch (state.kind) {
      case 'closed':
        return { openings, counts: true };
      case 'open':
        throw circuitOpen(state.untilMs - now());
      case 'half-open':
        throw circuitOpen(0);
      case 'probation': {
        if (earlier && state.trial === earlier) return earlier;
        if (state.trial) throw trialActive();
        const trial: Admission = { openings, counts: true };
        state = { kind: 'probation', trial };
        return trial;
      }
    }
  }

  function complete(admission: Admission, outcome: CallOutcome): void {
    const isTrial = state.kind === 'probation' && state.trial === admission;
    if (isTrial) state = { kind: 'probation', trial: undefined };
    if (isShutDown || outcome === 'neutral' || !admission.counts || admission.openings !== openings) return;
    if (outcome === 'success') recovery.reset();
    if (state.kind === 'closed') failures.record(outcome);
    if (!isTrial) return;
    if (outcome === 'success') changeState({ kind: 'closed' }, 'the trial call succeeded');
    else open('the trial call failed');
  }

  return {
    async run(call) {
      let admission = admit();
      let outcome: CallOutcome = 'neutral';
      try {
        const response = await call(() => {
          const renewed = admit(admission);
          if (renewed !== admission) complete(admission, 'neutral');
          admission = renewed;
        });
        outcome = classifyStatus(response.status);
        return response;
      } catch (thrown) {
        outcome = classifyError(thrown);
        throw thrown;
      } finally {
        complete(admission, outcome);
      }
    },
    view() {
      const hold = holdOf(id);
      const probeAtMs = state.kind === 'open' ? wall() + Math.max(0, state.untilMs - now()) : undefined;
      const untilMs = hold ? hold.untilMs : probeAtMs;
      return {
        ...id,
        state: state.kind,
        hold: hold?.as ?? null,
        until: untilMs === undefined ? null : new Date(untilMs).toISOString(),
        reason: hold?.reason ?? (state.kind === 'closed' ? null : openedBecause),
      };
    },
    close() {
      recovery.close();
      failures.close();
      reportChange('closed', 'the configuration was reloaded');
      isShutDown = true;
    },
  };
}

const circuitOpen = (waitMs: number): GatewayError =>
  retryLater(waitMs, 'CIRCUIT_OPEN', 'The bank fails at the moment, and is left alone');

const trialActive = (): GatewayError =>
  retryLater(1_000, 'CIRCUIT_OPEN', 'The bank has just come back, and is tried with one call at a time');

const heldOpenByOperators = (waitMs: number): GatewayError =>
  retryLater(
    Math.min(waitMs, maxHoldRetryAfterMs),
    'CIRCUIT_OPEN',
    'Calls of this kind are stopped by the operators of the gateway',
  );

/** Operators may release a hold before it ends. */
const maxHoldRetryAfterMs = 60_000;
