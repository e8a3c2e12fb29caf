/** The statistics of each second of the last five minutes, and the initiations of 30 minutes, of all instances together. */

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
  /** Of all instances, in the last so many seconds that have ended: at most 1,800. */
  initiations(lastSeconds: number): readonly InitiationCount[];
  /** For how many seconds no initiation of the environment has ended; infinite if there is none in the last 1,800. */
  quietSeconds(environment: string): number;
}

interface InstanceSeconds {
  from: number;
  through: number;
  /** Those with requests, by their time. */
  readonly counts: Map<number, SecondCounts>;
}

/** How long initiations are kept: alerts look at the 15 minutes before the last one, which may be 15 minutes ago. Seconds. */
const keptSeconds = 1_800;
/** Initiations are added up for so many seconds at a time, so that a long window needs few additions. Each is a multiple of the next one. */
const blockSizes = [30, 5];
const longestBlock = Math.max(...blockSizes);
/** For so long, the statistics wait for an instance that is late. Seconds. */
const maxWait = 4;
/** How far the clock of another instance may be ahead. Seconds. */
const maxAhead = 5;

/** @param now milliseconds since 1970 */
export function createFleetSeconds(now: () => number = Date.now): FleetSeconds {
  const byInstance = new Map<string, InstanceSeconds>();
  /** Of all instances together. */
  const computed = new Map<number, SecondStats>();
  /** The sums of the blocks of each size, by their first second. */
  const blocksOf = blockSizes.map((size) => ({ size, sums: new Map<number, readonly InitiationCount[]>() }));
  /** The second of the last initiation of each environment. */
  const lastInitiations = new Map<string, number>();

  const currentSecond = () => Math.floor(now() / 1_000);

  function statsAt(at: number): SecondStats {
    const known = computed.get(at);
    if (known) return known;
    const counts = Array.from(byInstance.values(), (one) => one.counts.get(at) ?? emptySecond(at));
    const stats = statsOfCounts(sumOfCounts(at, counts));
    computed.set(at, stats);
    return stats;
  }

  /** From `first` to the one before `end`, in blocks as long as possible. */
  function initiationsIn(first: number, end: number, level = 0): readonly InitiationCount[] {
    const blocks = blocksOf[level];
    if (!blocks) return initiationsOfSeconds(first, end);
    const { size, sums } = blocks;
    const found: InitiationCount[] = [];
    const firstBlock = Math.min(end, Math.ceil(first / size) * size);
    const lastBlock = Math.max(firstBlock, end - (end % size));
    if (first < firstBlock) found.push(...initiationsIn(first, firstBlock, level + 1));
    for (let start = firstBlock; start < lastBlock; start += size) {
      const sum = sums.get(start) ?? sumInitiations(initiationsIn(start, start + size, level + 1));
      sums.set(start, sum);
      found.push(...sum);
    }
    if (lastBlock < end) found.push(...initiationsIn(lastBlock, end, level + 1));
    return found;
  }

  function initiationsOfSeconds(first: number, end: number): readonly InitiationCount[] {
    const found: InitiationCount[] = [];
    for (const { counts } of byInstance.values())
      for (let at = first; at < end; at++) found.push(...(counts.get(at)?.initiations ?? []));
    return found;
  }

  function removeBefore(oldest: number): void {
    for (const all of [computed, ...blocksOf.map(({ sums }) => sums)])
      for (const at of all.keys()) if (at < oldest) all.delete(at);
    for (const [instance, { through, counts }] of byInstance) {
      for (const at of counts.keys()) if (at < oldest) counts.delete(at);
      if (through < oldest) byInstance.delete(instance);
    }
    for (const [environment, at] of lastInitiations) if (at < oldest) lastInitiations.delete(environment);
  }

  return {
    add(instance, counted, seconds) {
      const current = currentSecond();
      const accepted = seconds.filter(({ at }) => at > current - keptSeconds && at <= current + maxAhead);
      const known = byInstance.get(instance) ?? { from: current, through: current, counts: new Map() };
      if (counted) Object.assign(known, { from: counted.from, through: counted.through });
      for (const second of accepted) {
        if (known.counts.has(second.at)) continue; // a finished second never changes
        known.counts.set(second.at, second);
        computed.delete(second.at);
        for (const { size, sums } of blocksOf) sums.delete(second.at - (second.at % size));
        for (const { environment } of second.initiations)
          lastInitiations.set(environment, Math.max(second.at, lastInitiations.get(environment) ?? 0));
      }
      byInstance.set(instance, known);
    },
    initiations(lastSeconds) {
      const current = currentSecond();
      return sumInitiations(initiationsIn(current - lastSeconds, current + maxAhead + 1));
    },
    quietSeconds(environment) {
      const last = lastInitiations.get(environment) ?? Number.NEGATIVE_INFINITY;
      return Math.max(0, currentSecond() - 1 - last);
    },
    recent(instances) {
      const current = currentSecond();
      const ends = instances.flatMap((instance) => byInstance.get(instance)?.through ?? []);
      const last = Math.min(current - 1, Math.max(current - 1 - maxWait, Math.min(...ends)));
      const oldest = last - keptSeconds;
      removeBefore(oldest - (oldest % longestBlock));
      const starts = Array.from(byInstance.values(), ({ from }) => from);
      const first = Math.max(last - maxSeconds + 1, Math.min(...starts));
      return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => statsAt(first + index));
    },
  };
}
