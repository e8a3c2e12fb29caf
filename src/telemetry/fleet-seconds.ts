/** The statistics of each second of the last five minutes, of all instances together. */

import { type InitiationCount, sumInitiations } from './initiations.ts';
import {
  emptySecond,
  maxSeconds,
  type SecondCounts,
  type SecondStats,
  statsOfCounts,
  sumOfCounts,
} from './live-stats.ts';

export interface FleetSeconds {
  /**
   * Adds seconds with requests that an instance has counted.
   *
   * @param counted the first and the last second that it has counted, if that is known
   */
  add(
    instance: string,
    counted: { readonly from: number; readonly through: number } | undefined,
    seconds: readonly SecondCounts[],
  ): void;
  /**
   * At most 300 seconds, oldest first, without gaps: those that each of these instances has reported. A later report of a second
   * replaces its object.
   */
  recent(instances: readonly string[]): readonly SecondStats[];
  /** Of all instances, in the last so many seconds that have ended. */
  initiations(lastSeconds: number): readonly InitiationCount[];
}

/** Of all instances together. */
interface ComputedSecond {
  readonly stats: SecondStats;
  readonly initiations: readonly InitiationCount[];
}

interface InstanceSeconds {
  from: number;
  through: number;
  /** Those with requests, by their time. */
  readonly counts: Map<number, SecondCounts>;
}

/** For so long, the statistics wait for an instance that is late. Seconds. */
const maxWait = 4;
/** How far the clock of another instance may be ahead. Seconds. */
const maxAhead = 5;

/** @param now milliseconds since 1970 */
export function createFleetSeconds(now: () => number = Date.now): FleetSeconds {
  const byInstance = new Map<string, InstanceSeconds>();
  const computed = new Map<number, ComputedSecond>();

  const currentSecond = () => Math.floor(now() / 1_000);

  function secondAt(at: number): ComputedSecond {
    const known = computed.get(at);
    if (known) return known;
    const counts = Array.from(byInstance.values(), (one) => one.counts.get(at) ?? emptySecond(at));
    const sum = sumOfCounts(at, counts);
    const second = { stats: statsOfCounts(sum), initiations: sum.initiations };
    computed.set(at, second);
    return second;
  }

  function removeBefore(oldest: number): void {
    for (const at of computed.keys()) if (at < oldest) computed.delete(at);
    for (const [instance, { through, counts }] of byInstance) {
      for (const at of counts.keys()) if (at < oldest) counts.delete(at);
      if (through < oldest) byInstance.delete(instance);
    }
  }

  return {
    add(instance, counted, seconds) {
      const current = currentSecond();
      const accepted = seconds.filter(({ at }) => at > current - maxSeconds && at <= current + maxAhead);
      const known = byInstance.get(instance) ?? { from: current, through: current, counts: new Map() };
      if (counted) Object.assign(known, { from: counted.from, through: counted.through });
      for (const second of accepted) {
        if (known.counts.has(second.at)) continue; // a finished second never changes
        known.counts.set(second.at, second);
        computed.delete(second.at);
      }
      byInstance.set(instance, known);
    },
    initiations(lastSeconds) {
      const first = currentSecond() - lastSeconds;
      const seconds = Array.from({ length: lastSeconds + maxAhead + 1 }, (_, index) =>
        secondAt(first + index),
      );
      return sumInitiations(seconds.flatMap(({ initiations }) => initiations));
    },
    recent(instances) {
      const current = currentSecond();
      const ends = instances.flatMap((instance) => byInstance.get(instance)?.through ?? []);
      const last = Math.min(current - 1, Math.max(current - 1 - maxWait, Math.min(...ends)));
      removeBefore(last - maxSeconds + 1);
      const starts = Array.from(byInstance.values(), ({ from }) => from);
      const first = Math.max(last - maxSeconds + 1, Math.min(...starts));
      return Array.from(
        { length: Math.max(0, last - first + 1) },
        (_, index) => secondAt(first + index).stats,
      );
    },
  };
}
