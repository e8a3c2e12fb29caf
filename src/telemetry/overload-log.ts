/** Says when there is more to do than can be done: a line when it begins and ends, never one for each request. */

import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

/** While connections are refused, how often that is said at most. Milliseconds. */
const logIntervalMs = 60_000;

/** What can be shed. */
const sheddings = ['nothing', 'status-reads', 'everything'] as const;

/** What is refused: nothing, status reads, every request. Health and the operators' door have no part in it. */
export type Shedding = (typeof sheddings)[number];

interface OverloadLog {
  /** What is shed from now on, and how late and full the process is. */
  readonly onSheddingChanged: (
    what: Shedding,
    reading: { readonly delayMs: number; readonly heap: number },
  ) => void;
  /** A connection was closed because there are too many. */
  readonly onConnectionRefused: () => void;
}

/** For the log and the metrics. */
export function createOverloadLog(log: Log, metrics: Metrics): OverloadLog {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  return {
    onSheddingChanged(what, { delayMs, heap }) {
      for (const each of sheddings) metrics.set('penstock_shedding', { what: each }, Number(each === what));
      const fields = { shed: what, delayMs: Math.round(delayMs), heapPercent: Math.round(heap * 100) };
      if (what === 'nothing') log('info', 'the gateway keeps up again', fields);
      else log('warn', 'the gateway does not keep up, and refuses a part of what comes', fields);
    },
    onConnectionRefused() {
      metrics.count('penstock_connections_refused_total', {});
      if (performance.now() - loggedAtMs < logIntervalMs) return;
      loggedAtMs = performance.now();
      log('warn', 'connections are refused: there are too many, and none of them rests');
    },
  };
}
