/** The states of a circuit, and what is told of them. */

import type { CircuitPlace, Hold } from './holds.ts';

/** As measured. */
export type CircuitState =
  | { readonly kind: 'closed' }
  | { readonly kind: 'open'; readonly untilMs: number }
  | { readonly kind: 'half-open' }
  /** The trial is the one call that may be under way. */
  | { readonly kind: 'probation'; readonly trial: Pass | undefined };

/** What a call was let through with. */
export interface Pass {
  /** How often the circuit had opened before: what was sent before it opened says nothing about now. */
  readonly openings: number;
  readonly counts: 'yes' | 'no';
}

/** A circuit as operators see it. */
export interface CircuitView extends CircuitPlace {
  /** As measured, whatever is held. */
  readonly state: CircuitState['kind'];
  readonly hold: Hold['as'] | null;
  /** When the hold ends, else when the bank is asked again: as in RFC 3339. */
  readonly until: string | null;
  /** Why it is held, else why it opened. */
  readonly reason: string | null;
}

/** A change that was measured, for the log and whoever counts. */
export interface CircuitChange extends CircuitPlace {
  readonly from: CircuitState['kind'];
  readonly to: CircuitState['kind'];
  readonly why: string;
}

/** @param why why it opened last @param untilMs when the bank is asked again, in milliseconds since 1970 */
export function viewOf(
  place: CircuitPlace,
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
