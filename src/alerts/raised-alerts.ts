/** The alerts of this instance: raised when their condition has lasted, and kept for a moment after its end, so that they do not flap. */

import { alertRow, type Severity, severities } from './alert-table.ts';
import { clockTime, type Finding, keyOf } from './finding.ts';

/** A finding that has lasted as long as its alert requires. */
export interface RaisedAlert extends Finding {
  readonly key: string;
  readonly sinceMs: number;
  /** When the condition has ended, if the alert is only kept: milliseconds since 1970. */
  readonly overAtMs: number | undefined;
}

interface State {
  finding: Finding;
  firstAtMs: number;
  lastAtMs: number;
  isRaised: boolean;
  /** With the severity that is shown, and when that was found last. */
  shown: Finding;
  shownAtMs: number;
}

/** A condition or a severity that comes back within this time is the same one. Milliseconds. */
const keptMs = 20_000;
/** A condition that must last may be missing in between for so long. Milliseconds. */
const gapMs = 2_000;

const order: readonly string[] = severities;
const isMilder = (one: Severity, other: Severity) => order.indexOf(one) > order.indexOf(other);

/** Whether it is not over, but concerns only a part from now on, such as a product, or the whole: subjects of different parts differ. */
function isContinued(former: Finding, { group, environment, subject = '' }: Finding): boolean {
  const isOfWhole = subject === '' || (former.subject ?? '') === '';
  return group !== undefined && group === former.group && environment === former.environment && isOfWhole;
}

export function createRaisedAlerts() {
  const states = new Map<string, State>();

  const isOver = ({ finding, isRaised, lastAtMs }: State, nowMs: number) =>
    nowMs - lastAtMs >= (isRaised ? (alertRow(finding.id).endsAtOnce ? 0 : keptMs) : gapMs);

  function note(key: string, finding: Finding, nowMs: number): void {
    const state = states.get(key) ?? {
      ...{ finding, shown: finding, isRaised: false },
      ...{ firstAtMs: nowMs, lastAtMs: nowMs, shownAtMs: nowMs },
    };
    states.set(key, Object.assign(state, { finding, lastAtMs: nowMs }));
    const { afterMs = 0, endsAtOnce = false, isMilderAtOnce = endsAtOnce } = alertRow(finding.id);
    state.isRaised ||= nowMs - state.firstAtMs >= afterMs;
    const isMilderThanShown = isMilder(finding.severity, state.shown.severity);
    const isKept = isMilderThanShown && !isMilderAtOnce && nowMs - state.shownAtMs < keptMs;
    if (!isKept) Object.assign(state, { shown: finding, shownAtMs: nowMs });
  }

  function inherit(key: string, former: State): void {
    const state = states.get(key);
    if (state && former.isRaised) state.firstAtMs = Math.min(state.firstAtMs, former.firstAtMs);
  }

  return {
    /** @param findings of one evaluation @param nowMs of a clock that is not set back, and milliseconds since 1970 */
    update(findings: readonly Finding[], nowMs: number): readonly RaisedAlert[] {
      const found = new Map(findings.map((finding) => [keyOf(finding), finding]));
      for (const [key, finding] of found) note(key, finding, nowMs);
      for (const [key, state] of states) {
        if (found.has(key)) continue;
        const next = [...found].filter(([, finding]) => isContinued(state.finding, finding));
        for (const [nextKey] of next) inherit(nextKey, state);
        if (next.length > 0 || isOver(state, nowMs)) states.delete(key);
      }
      return [...states].flatMap(([key, { finding, shown, firstAtMs, lastAtMs, isRaised }]) => {
        if (!isRaised) return [];
        const overAtMs = found.has(key) ? undefined : lastAtMs;
        const text = overAtMs === undefined ? shown.text : `${shown.text} Over since ${clockTime(overAtMs)}.`;
        return [{ ...shown, text, key, sinceMs: finding.sinceMs ?? firstAtMs, overAtMs }];
      });
    },
  };
}
