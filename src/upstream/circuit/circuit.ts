/**
 * The circuit breaker of one tenant in one environment and lane: stops calls while they fail, and resumes them after a
 * probe. tenant-circuits.ts decides when the failures of one tenant open the circuits of the others.
 */

import type { CircuitSettings } from '../../config/schema.ts';
import { type GatewayError, retryLater } from '../../request/errors.ts';
import type { CallOutcome, ProbeOutcome } from './classify-outcome.ts';
import { createFailureWindow, type WindowCounts } from './failure-window.ts';
import { type CircuitCause, createFirstFailure, type FailedCall } from './first-failure.ts';
import type { CircuitId, Hold } from './holds.ts';
import { createRecovery } from './recovery.ts';

export interface Circuit {
  /**
   * Admits a call, or refuses it immediately. Each admitted call must be completed, once.
   *
   * @throws GatewayError CIRCUIT_OPEN with Retry-After
   */
  admit(): Admission;
  /**
   * Checks again before a call is sent, because the circuit may have opened while the call waited.
   *
   * @returns the admission that replaces the earlier one
   * @throws GatewayError CIRCUIT_OPEN; the earlier admission must still be completed
   */
  renew(earlier: Admission): Admission;
  /** Ends a call, and counts its outcome. @param failed what operators should know of a call that failed */
  complete(admission: Admission, outcome: CallOutcome, failed?: FailedCall): void;
  /** The measured state, regardless of a hold. */
  view(): MeasuredState;
  /** The measured state, unless a hold replaces it: a circuit that is held closed is `closed`. */
  effectiveState(): MeasuredState['state'] | 'held open';
  isClosed(): boolean;
  /** Whether it is closed, without active calls and without calls in the window. */
  isIdle(): boolean;
  counts(): WindowCounts;
  /** Opens a closed circuit because of calls of other tenants. */
  open(why: string, cause: CircuitCause | undefined): void;
  /** Puts a closed circuit on probation: one call at a time until one succeeds. */
  startProbation(why: string, cause: CircuitCause | undefined): void;
  /** Stops the timers, and reports a change to closed if it is not closed. Outcomes of active calls no longer count. */
  close(): void;
}

export interface MeasuredState {
  readonly state: CircuitState['kind'];
  /** Time of the next probe, as in RFC 3339. */
  readonly until: string | null;
  /** Why the circuit opened. */
  readonly reason: string | null;
  /** Why it opened first, since it was closed. */
  readonly cause: CircuitCause | null;
}

/** A change of the measured state. */
export interface StateChange {
  readonly from: CircuitState['kind'];
  readonly to: CircuitState['kind'];
  readonly why: string;
  /** As in `MeasuredState`; `null` if the circuit is closed now. */
  readonly cause: CircuitCause | null;
}

type CircuitState =
  | { readonly kind: 'closed' }
  | { readonly kind: 'open'; readonly untilMs: number }
  | { readonly kind: 'half-open' }
  /** Writes resume one at a time; `trial` is the active one. */
  | { readonly kind: 'probation'; readonly trial: Admission | undefined };

/** Permission to send a call. On probation, each one is a separate object. */
export interface Admission {
  /** How often the circuit had opened before. The outcome of a call that was admitted before the last opening does not count. */
  readonly openings: number;
  /** False while operators hold the circuit closed. */
  readonly isCounted: boolean;
}

interface CircuitDependencies {
  readonly probe: () => Promise<ProbeOutcome>;
  readonly holdOf: (id: CircuitId) => Hold | undefined;
  /** Whether the bank works for another tenant at the moment. */
  readonly worksForOther: () => boolean;
  readonly events: CircuitEvents;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wall: () => number;
}

export interface CircuitEvents {
  readonly onChange: (change: StateChange) => void;
  /** A call failed while the circuit was closed; it is counted next. */
  readonly onFailedCall: (failed: FailedCall) => void;
  /** A call was counted while the circuit was closed. */
  readonly onOutcome: (outcome: CountedOutcome) => void;
  /** A failure is in the window; the circuit has not decided yet whether to open. */
  readonly onFailure: () => void;
  /** The circuit opened because of its own calls. */
  readonly onOpened: () => void;
}

export type CountedOutcome = Exclude<CallOutcome, 'neutral'>;

export function createCircuit(
  id: CircuitId,
  settings: CircuitSettings,
  { probe, holdOf, worksForOther, events, now, wall }: CircuitDependencies,
): Circuit {
  let state: CircuitState = { kind: 'closed' };
  let openings = 0;
  let whileClosed: Admission = { openings, isCounted: true };
  let openedBecause = '';
  let cause: CircuitCause | undefined;
  let activeCalls = 0;
  let isShutDown = false;

  const failures = createFailureWindow(settings, now, {
    onFailure: events.onFailure,
    onThreshold(failed, total) {
      if (state.kind !== 'closed') return; // the circuits of all tenants have just opened
      open(`${failed} of ${total} calls failed`, firstFailure.causeOf(failed, total));
      events.onOpened();
    },
  });
  const firstFailure = createFirstFailure(settings.window, now, wall);
  const recovery = createRecovery({
    openForMs: settings.openFor,
    probe,
    isHeldOpen: () => holdOf(id)?.as === 'open',
    onProbeStart: () => changeState({ kind: 'half-open' }, 'circuit.openFor has elapsed'),
    onProbeResult(outcome) {
      if (outcome === 'failure') return open('the probe failed');
      failures.reset();
      firstFailure.reset();
      const next: CircuitState =
        id.lane === 'write' ? { kind: 'probation', trial: undefined } : { kind: 'closed' };
      changeState(next, 'the probe succeeded');
    },
  });

  function changeState(next: CircuitState, why: string): void {
    if (next.kind === 'closed') cause = undefined;
    reportChange(next.kind, why);
    state = next;
  }

  function reportChange(to: CircuitState['kind'], why: string): void {
    const from = state.kind;
    if (from !== to && !isShutDown) events.onChange({ from, to, why, cause: cause ?? null });
  }

  /** @param newCause counts only if the circuit is closed: the first cause stays */
  function open(why: string, newCause?: CircuitCause): void {
    if (state.kind === 'closed') cause = newCause;
    openings += 1;
    whileClosed = { openings, isCounted: true };
    openedBecause = why;
    changeState({ kind: 'open', untilMs: now() + recovery.start() }, why);
  }

  /** @param earlier the admission that the same call received before it waited */
  function check(earlier?: Admission): Admission {
    const hold = holdOf(id);
    if (hold?.as === 'open') throw heldOpenByOperators(hold.untilMs - wall());
    if (hold?.as === 'closed') return uncounted;
    switch (state.kind) {
      case 'closed':
        return whileClosed;
      case 'open':
        throw circuitOpen(state.untilMs - now(), worksForOther());
      case 'half-open':
        throw circuitOpen(0, worksForOther());
      case 'probation': {
        if (earlier && state.trial === earlier) return earlier;
        if (state.trial) throw trialActive(worksForOther());
        const trial: Admission = { openings, isCounted: true };
        state = { kind: 'probation', trial };
        return trial;
      }
    }
  }

  function count(admission: Admission, outcome: CallOutcome, failed?: FailedCall): void {
    const isTrial = state.kind === 'probation' && state.trial === admission;
    if (isTrial) state = { kind: 'probation', trial: undefined };
    if (isShutDown || outcome === 'neutral' || !admission.isCounted || admission.openings !== openings)
      return;
    if (outcome === 'success') recovery.reset();
    if (state.kind === 'closed') {
      if (failed) {
        firstFailure.record(failed);
        events.onFailedCall(failed);
      }
      failures.record(outcome === 'success' ? 'success' : 'failure');
      events.onOutcome(outcome);
    }
    if (!isTrial) return;
    if (outcome === 'success') changeState({ kind: 'closed' }, 'the trial call succeeded');
    else open('the trial call failed');
  }

  return {
    admit() {
      const admission = check();
      activeCalls += 1;
      return admission;
    },
    renew(earlier) {
      const renewed = check(earlier);
      if (renewed !== earlier) count(earlier, 'neutral');
      return renewed;
    },
    complete(admission, outcome, failed) {
      activeCalls -= 1;
      count(admission, outcome, failed);
    },
    view() {
      const untilMs = state.kind === 'open' ? wall() + Math.max(0, state.untilMs - now()) : undefined;
      return {
        state: state.kind,
        until: untilMs === undefined ? null : new Date(untilMs).toISOString(),
        reason: state.kind === 'closed' ? null : openedBecause,
        cause: cause ?? null,
      };
    },
    effectiveState() {
      const hold = holdOf(id);
      if (!hold) return state.kind;
      return hold.as === 'open' ? 'held open' : 'closed';
    },
    isClosed: () => state.kind === 'closed',
    isIdle: () => state.kind === 'closed' && activeCalls === 0 && failures.counts().calls === 0,
    counts: failures.counts,
    open,
    startProbation(why, newCause) {
      openedBecause = why;
      cause = newCause;
      changeState({ kind: 'probation', trial: undefined }, why);
    },
    close() {
      recovery.close();
      failures.close();
      cause = undefined;
      reportChange('closed', 'the configuration was reloaded');
      isShutDown = true;
    },
  };
}

/** The admission of all calls while operators hold the circuit closed. */
const uncounted: Admission = { openings: 0, isCounted: false };

const circuitOpen = (waitMs: number, isOfTenant: boolean): GatewayError =>
  retryLater(waitMs, 'CIRCUIT_OPEN', 'The circuit is open because calls to the bank failed', { isOfTenant });

const trialActive = (isOfTenant: boolean): GatewayError =>
  retryLater(
    1_000,
    'CIRCUIT_OPEN',
    'Calls to the bank have failed, and the circuit admits one trial call at a time',
    { isOfTenant },
  );

const heldOpenByOperators = (waitMs: number): GatewayError =>
  retryLater(
    Math.min(waitMs, maxHoldRetryAfterMs),
    'CIRCUIT_OPEN',
    'The operators of the gateway hold the circuit open',
  );

/** Operators may release a hold before it ends. */
const maxHoldRetryAfterMs = 60_000;
