/** The period that the charts show: the last five minutes live, or a longer one from the stored history. */

import { formatTime } from './dom.js';

const liveSeconds = 300;

/** @param now seconds since 1970. @returns the range of the live charts, as `createHistoryRange` */
export const liveRange = (now) => ({
  from: now - liveSeconds,
  to: now,
  fromLabel: '5 min ago',
  toLabel: 'now',
  labelOf: (at) => `${now - at} s ago`,
});

/**
 * @param form with the fields `hours` (0 = live) and `until` (a local time; empty = now)
 * @returns `from` and `to` in seconds since 1970, and the texts of the time axis; `undefined` for the live charts
 */
export function selectedRange(form) {
  const hours = Number(form.elements.hours.value);
  if (hours === 0) return undefined;
  const until = form.elements.until.value;
  const toMs = until === '' ? Date.now() : new Date(until).getTime();
  const fromMs = toMs - hours * 3_600_000;
  return {
    from: Math.floor(fromMs / 1_000),
    to: Math.floor(toMs / 1_000),
    fromLabel: formatTime(fromMs),
    toLabel: until === '' ? 'now' : formatTime(toMs),
    labelOf: (at) => formatTime(at * 1_000),
  };
}
