/** The circuit of one environment and lane: stops calling a bank that fails, and finds out when it is back. */

import type { CircuitSettings } from '../../config/schema.ts';
import { heldOpen, leftAlone, onProbation } from './circuit-refusals.ts';
import {
  type CircuitChange,
  type CircuitState,
  type CircuitView,
  type Pass,
  viewOf,
} from './circuit-state.ts';
import { createEvidence } from './evidence.ts';
import type { CircuitPlace, Hold } from './holds.ts';
import type { Probe } from './probe.ts';
import { createRecovery } from './recovery.ts';
import { type Verdict, verdictOfFailure, verdictOfStatus } from './verdict.ts';

export interface Circuit {
  /**
   * Makes an attempt to call the bank, or refuses it at once.
   *
   * @param attempt may wait before it sends; it then calls `goOn` just before, which throws if the circuit has opened
   * @throws GatewayError CIRCUIT_OPEN with the seconds to wait; and whatever `attempt` throws
   */
  run<Answer extends { readonly status: number }>(
    attempt: (goOn: () => void) => Promise<Answer>,
  ): Promise<Answer>;
  view(): CircuitView;
  /** Ends its timers, and tells for the last time: the one that follows begins closed. Calls under way are not counted. */
  close(): void;
}

interface Parts {
  readonly probe: Probe;
  readonly holdOn: (place: CircuitPlace) => Hold | undefined;
  readonly changed?: (change: CircuitChange) => void;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

/** Closed, with nothing counted yet. */
export function createCircuit(place: CircuitPlace, settings: CircuitSettings, given: Parts): Circuit {
  const { probe, holdOn, changed = () => {}, now = () => performance.now(), wall = Date.now } = given;
  let state: CircuitState = { kind: 'closed' };
  let openings = 0;
  let why = '';
  let isOver = false;

  const evidence = createEvidence(settings, now, (failures, calls) => {
    open(`${failures} of ${calls} calls failed`);
  });
  const recovery = createRecovery({
    openForMs: settings.openFor,
    probe: () => probe(place.lane),
    isHeld: () => holdOn(place)?.as === 'open',
    asking: () => become({ kind: 'half-open' }, 'the pause is over'),
    answered(verdict) {
      if (verdict === 'failing') return open('the bank does not answer as it should yet');
      evidence.forget();
      const next: CircuitState =
        place.lane === 'write' ? { kind: 'probation', trial: undefined } : { kind: 'closed' };
      become(next, 'the bank answers again');
    },
  });

  function become(next: CircuitState, because: string): void {
    tell(next.kind, because);
    state = next;
  }

  function tell(to: CircuitState['kind'], because: string): void {
    const from = state.kind;
    if (from !== to && !isOver) changed({ ...place, from, to, why: because });
  }

  function open(because: string): void {
    openings += 1;
    why = because;
    become({ kind: 'open', untilMs: now() + recovery.begin() }, because);
  }

  /** @param before what the call was let through with earlier */
  function admit(before?: Pass): Pass {
    const hold = holdOn(place);
    if (hold?.as === 'open') throw heldOpen(hold.untilMs - wall());
    if (hold?.as === 'closed') return { openings, counts: 'no' };
    switch (state.kind) {
      case 'closed':
        return { openings, counts: 'yes' };
      case 'open':
        throw leftAlone(state.untilMs - now());
      case 'half-open':
        throw leftAlone(0);
      case 'probation': {
        if (before && state.trial === before) return before;
        if (state.trial) throw onProbation();
        const trial: Pass = { openings, counts: 'yes' };
        state = { kind: 'probation', trial };
        return trial;
      }
    }
  }

  function settle(pass: Pass, verdict: Verdict): void {
    const isTrial = state.kind === 'probation' && state.trial === pass;
    if (isTrial) state = { kind: 'probation', trial: undefined };
    if (isOver || verdict === 'nothing' || pass.counts === 'no' || pass.openings !== openings) return;
    if (verdict === 'well') recovery.succeeded();
    if (state.kind === 'closed') evidence.count(verdict);
    if (!isTrial) return;
    if (verdict === 'well') become({ kind: 'closed' }, 'a call succeeded');
    else open('the first call after the bank came back failed');
  }

  return {
    async run(attempt) {
      let pass = admit();
      let verdict: Verdict = 'nothing';
      try {
        const answer = await attempt(() => {
          const next = admit(pass);
          if (next !== pass) settle(pass, 'nothing');
          pass = next;
        });
        verdict = verdictOfStatus(answer.status);
        return answer;
      } catch (thrown) {
        verdict = verdictOfFailure(thrown);
        throw thrown;
      } finally {
        settle(pass, verdict);
      }
    },
    view() {
      const untilMs = state.kind === 'open' ? wall() + Math.max(0, state.untilMs - now()) : undefined;
      return viewOf(place, state, holdOn(place), { why, untilMs });
    },
    close() {
      recovery.close();
      evidence.close();
      tell('closed', 'what was measured is given up');
      isOver = true;
    },
  };
}
