/**
 * How much of the records each tenant may use, so that a flood of one tenant displaces neither records of others nor its own payments. All
 * instances together count the bytes of a tenant in each period of ten minutes.
 */

import type { RecordLane } from '../telemetry/unstored-requests.ts';

interface ShareRow {
  readonly period: number;
  readonly tenant: string;
  readonly bytes: number;
  readonly not_stored: number;
}

export interface ShareSettings {
  /** Of one tenant, in all periods together. */
  readonly maxStoredPerTenant: number;
  /** Milliseconds. */
  readonly keepFor: number;
}

/** The length of a period: milliseconds. */
export const sharePeriodMs = 600_000;

/** The number of a period since 1970. @param atMs milliseconds since 1970 */
export const sharePeriodOf = (atMs: number): number => Math.floor(atMs / sharePeriodMs);

/** The part of its share that a tenant may use: payments come first, then reads, then polls and refused requests. */
const laneShares: Readonly<Record<RecordLane, number>> = { write: 1, refused: 0.5, read: 0.75, status: 0.5 };

/** Such a part of the share is available at the beginning of a period, and the rest gradually; for payments, all of it. */
const initialPart = 0.1;

/** What a tenant uses in a period. */
interface Usage {
  readonly period: number;
  readonly tenant: string;
  /** By this instance. */
  bytes: number;
  notStored: number;
  /** By the other instances, as far as this one knows. */
  bytesOfOthers: number;
}

/** @param now milliseconds since 1970 */
export function createTenantShares(settings: () => ShareSettings, now: () => number = Date.now) {
  /** Of the current period, by tenant. */
  const usages = new Map<string, Usage>();
  let period = sharePeriodOf(now());
  /** Of any period. */
  const changed = new Set<Usage>();

  function usageOf(tenant: string): Usage {
    const current = sharePeriodOf(now());
    if (current !== period) {
      usages.clear();
      period = current;
    }
    const known = usages.get(tenant);
    if (known) return known;
    const usage = { period, tenant, bytes: 0, notStored: 0, bytesOfOthers: 0 };
    usages.set(tenant, usage);
    return usage;
  }

  function addNotStored(usage: Usage, records: number): void {
    usage.notStored += records;
    changed.add(usage);
  }

  function limitOf(lane: RecordLane): number {
    const { maxStoredPerTenant, keepFor } = settings();
    const share = (maxStoredPerTenant * sharePeriodMs) / Math.max(keepFor, sharePeriodMs);
    if (lane === 'write') return share;
    const elapsed = (now() % sharePeriodMs) / sharePeriodMs;
    return share * laneShares[lane] * Math.min(1, elapsed + initialPart);
  }

  return {
    /**
     * Whether a record may be stored. If not, it is counted.
     *
     * @param tenant empty if it is unknown
     */
    admit(tenant: string, lane: RecordLane): boolean {
      const usage = usageOf(tenant);
      const isAdmitted = usage.bytes + usage.bytesOfOthers < limitOf(lane);
      if (!isAdmitted) addNotStored(usage, 1);
      return isAdmitted;
    },
    /** Counts a record that is stored. */
    add(tenant: string, bytes: number): void {
      const usage = usageOf(tenant);
      usage.bytes += bytes;
      changed.add(usage);
    },
    /** Counts records that cannot be stored for another reason. */
    addNotStored(tenant: string, records: number): void {
      addNotStored(usageOf(tenant), records);
    },
    /** What has changed since the last call, as totals of this instance: writing one again has no effect. */
    takeChanged(): readonly ShareRow[] {
      const rows: ShareRow[] = [];
      for (const { period: of, tenant, bytes, notStored } of changed)
        rows.push({ period: of, tenant, bytes, not_stored: notStored });
      changed.clear();
      return rows;
    },
    /** @param bytes of a tenant in a period, of the other instances */
    setBytesOfOthers(of: number, tenant: string, bytes: number): void {
      const usage = usages.get(tenant);
      if (usage?.period === of) usage.bytesOfOthers = bytes;
    },
  };
}
