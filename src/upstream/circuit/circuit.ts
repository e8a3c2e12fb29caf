/** The circuit of one environment and lane: stops calling a bank that fails, and finds out when it is back. */

import type { CircuitSettings } from '../../config/schema.ts';
import { type Lane, lanes } from '../../pis/operations.ts';
import { type GatewayError, retryLater } from '../../request/errors.ts';
import { type CallOutcome, classifyError, classifyStatus } from './classify-outcome.ts';
import { createFailureWindow } from './failure-window.ts';
import type { CircuitId, Hold, Holds } from './holds.ts';
import { createRecovery, type Probe } from './recovery.ts';

export interface Circuit {
  /**
   * Makes an attempt to call the bank, or refuses it at once.
   *
   * @param attempt may wait before it sends; it then calls `goOn` just before, which throws if the circuit has opened
   * @throws GatewayError CIRCUIT_OPEN with the seconds to wait; and whatever `attempt` throws
   */
  run<Answer extends { readonly status: number }>(
    attempt: (beforeSending: () => void) => Promise<Answer>,
  ): Promise<Answer>;
  view(): CircuitView;
  /** Ends its timers, and tells for the last time: the one that follows begins closed. Calls under way are not counted. */
  close(): void;
}

interface CircuitDependencies {
  readonly probe: Probe;
  readonly holdOf: (place: CircuitId) => Hold | undefined;
  readonly onChange?: (change: CircuitChange) => void;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

/** Closed, with nothing counted yet. */
export function createCircuit(
  id: CircuitId,
  settings: CircuitSettings,
  dependencies: CircuitDependencies,
): Circuit {
  const { probe, holdOf, onChange = () => {}, now = () => performance.now(), wall = Date.now } = dependencies;
  let state: CircuitState = { kind: 'closed' };
  let openings = 0;
  let why = '';
  let isClosed = false;

  const failures = createFailureWindow(settings, now, (failures, calls) => {
    open(`${failures} of ${calls} calls failed`);
  });
  const recovery = createRecovery({
    openForMs: settings.openFor,
    probe: () => probe(id.lane),
    isHeldOpen: () => holdOf(id)?.as === 'open',
    onProbeStart: () => changeState({ kind: 'half-open' }, 'the pause is over'),
    onProbeResult(verdict) {
      if (verdict === 'failing') return open('the bank does not answer as it should yet');
      failures.reset();
      const next: CircuitState =
        id.lane === 'write' ? { kind: 'probation', trial: undefined } : { kind: 'closed' };
      changeState(next, 'the bank answers again');
    },
  });

  function changeState(next: CircuitState, because: string): void {
    notifyChange(next.kind, because);
    state = next;
  }

  function notifyChange(to: CircuitState['kind'], because: string): void {
    const from = state.kind;
    if (from !== to && !isClosed) onChange({ ...id, from, to, why: because });
  }

  function open(because: string): void {
    openings += 1;
    why = because;
    changeState({ kind: 'open', untilMs: now() + recovery.start() }, because);
  }

  /** @param before what the call was let through with earlier */
  function admit(before?: Admission): Admission {
    const hold = holdOf(id);
    if (hold?.as === 'open') throw heldOpenByOperators(hold.untilMs - wall());
    if (hold?.as === 'closed') return { openings, counts: 'no' };
    switch (state.kind) {
      case 'closed':
        return { openings, counts: 'yes' };
      case 'open':
        throw circuitOpen(state.untilMs - now());
      case 'half-open':
        throw circuitOpen(0);
      case 'probation': {
        if (before && state.trial === before) return before;
        if (state.trial) throw probationBusy();
        const trial: Admission = { openings, counts: 'yes' };
        state = { kind: 'probation', trial };
        return trial;
      }
    }
  }

  function complete(pass: Admission, verdict: CallOutcome): void {
    const isTrial = state.kind === 'probation' && state.trial === pass;
    if (isTrial) state = { kind: 'probation', trial: undefined };
    if (isClosed || verdict === 'nothing' || pass.counts === 'no' || pass.openings !== openings) return;
    if (verdict === 'well') recovery.reset();
    if (state.kind === 'closed') failures.record(verdict);
    if (!isTrial) return;
    if (verdict === 'well') changeState({ kind: 'closed' }, 'a call succeeded');
    else open('the first call after the bank came back failed');
  }

  return {
    async run(attempt) {
      let pass = admit();
      let verdict: CallOutcome = 'nothing';
      try {
        const answer = await attempt(() => {
          const next = admit(pass);
          if (next !== pass) complete(pass, 'nothing');
          pass = next;
        });
        verdict = classifyStatus(answer.status);
        return answer;
      } catch (thrown) {
        verdict = classifyError(thrown);
        throw thrown;
      } finally {
        complete(pass, verdict);
      }
    },
    view() {
      const untilMs = state.kind === 'open' ? wall() + Math.max(0, state.untilMs - now()) : undefined;
      return circuitView(id, state, holdOf(id), { why, untilMs });
    },
    close() {
      recovery.close();
      failures.close();
      notifyChange('closed', 'what was measured is given up');
      isClosed = true;
    },
  };
}

// MERGED HEADER (rewrite or remove):
/* The states of a circuit, and what is told of them. */

/** As measured. */
export type CircuitState =
  | { readonly kind: 'closed' }
  | { readonly kind: 'open'; readonly untilMs: number }
  | { readonly kind: 'half-open' }
  /** The trial is the one call that may be under way. */
  | { readonly kind: 'probation'; readonly trial: Admission | undefined };

/** What a call was let through with. */
export interface Admission {
  /** How often the circuit had opened before: what was sent before it opened says nothing about now. */
  readonly openings: number;
  readonly counts: 'yes' | 'no';
}

/** A circuit as operators see it. */
export interface CircuitView extends CircuitId {
  /** As measured, whatever is held. */
  readonly state: CircuitState['kind'];
  readonly hold: Hold['as'] | null;
  /** When the hold ends, else when the bank is asked again: as in RFC 3339. */
  readonly until: string | null;
  /** Why it is held, else why it opened. */
  readonly reason: string | null;
}

/** A change that was measured, for the log and whoever counts. */
export interface CircuitChange extends CircuitId {
  readonly from: CircuitState['kind'];
  readonly to: CircuitState['kind'];
  readonly why: string;
}

/** @param why why it opened last @param untilMs when the bank is asked again, in milliseconds since 1970 */
function circuitView(
  place: CircuitId,
  { kind }: CircuitState,
  hold: Hold | undefined,
  opened: { readonly why: string; readonly untilMs: number | undefined },
): CircuitView {
  const untilMs = hold ? hold.untilMs : opened.untilMs;
  return {
    ...place,
    state: kind,
    hold: hold?.as ?? null,
    until: untilMs === undefined ? null : new Date(untilMs).toISOString(),
    reason: hold?.reason ?? (kind === 'closed' ? null : opened.why),
  };
}

// MERGED HEADER (rewrite or remove):
/* Why a circuit lets a call not pass, as an error that names the seconds to wait. */

/** The bank failed, and is left alone for a while. */
const circuitOpen = (waitMs: number): GatewayError =>
  retryLater(waitMs, 'CIRCUIT_OPEN', 'The bank fails at the moment, and is left alone');

/** It has just come back: one call at a time finds out whether it does what it is asked for. */
const probationBusy = (): GatewayError =>
  retryLater(1_000, 'CIRCUIT_OPEN', 'The bank has just come back, and is tried with one call at a time');

/** Operators may let go at any time: nobody is sent away for the whole of it. */
const maxRetryAfterMs = 60_000;

/** Operators hold the circuit open. */
const heldOpenByOperators = (waitMs: number): GatewayError =>
  retryLater(
    Math.min(waitMs, maxRetryAfterMs),
    'CIRCUIT_OPEN',
    'Calls of this kind are stopped by the operators of the gateway',
  );

// MERGED HEADER (rewrite or remove):
/* The circuits of one configuration: one for each environment and lane. */

export interface Circuits {
  /** @throws Error if there is no such environment */
  of(environment: string, lane: Lane): Circuit;
  views(): readonly CircuitView[];
  /** For a reload: holds stay, what was measured begins anew in the circuits that follow. */
  close(): void;
}

interface CircuitsDependencies {
  /** How each environment is asked whether it is back. */
  readonly probes: ReadonlyMap<string, Probe>;
  readonly holds: Pick<Holds, 'of'>;
  readonly onChange: (change: CircuitChange) => void;
}

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
