/**
 * How much of the request log each tenant may use, so that a flood of one tenant displaces neither records of others nor its own
 * payments. All instances together count the bytes of a tenant in each slice.
 */

import type { RecordLane } from '../telemetry/recent-requests.ts';
import { sliceMs, sliceOf } from './slices.ts';

export interface TenantShares {
  /**
   * Whether a record may be stored. If not, it is counted.
   *
   * @param tenant empty if it is unknown
   * @param nowMs  milliseconds since 1970
   */
  admit(tenant: string, lane: RecordLane, nowMs: number): boolean;
  /** Counts a record that waits to be written. */
  add(tenant: string, bytes: number): void;
  /** Counts a record that cannot be stored for another reason. */
  addNotStored(tenant: string): void;
  /** How many records of each tenant were not stored since the last call. */
  takeNotStored(): ReadonlyMap<string, number>;
  /** Bytes have been written. @param total those of all instances in this slice */
  onWritten(slice: number, tenant: string, bytes: number, total: number): void;
}

export interface ShareSettings {
  /** Of one tenant, in all slices together. */
  readonly maxStoredPerTenant: number;
  /** Milliseconds. */
  readonly keepFor: number;
}

/** The part of its share that a tenant may use: payments come first, then reads, then polls and refused requests. */
const laneShares: Readonly<Record<RecordLane, number>> = { write: 1, refused: 0.5, read: 0.75, status: 0.5 };

/**
 * Records that wait for the shared state, of all tenants. Any tenant may use the first half, because many tenants have only a few
 * records each; of the second half, each one has an equal part. Bytes.
 */
const maxWaitingBytes = 4 * 1024 * 1024;
/** Such a part of the share is available at the beginning of a slice, and the rest gradually; for payments, all of it. */
const initialPart = 0.1;

interface Usage {
  /** Written to the current slice, by all instances. */
  stored: number;
  waiting: number;
  notStored: number;
}

/**
 * @param tenants how many there are
 * @param nowMs   milliseconds since 1970
 */
export function createTenantShares(
  settings: () => ShareSettings,
  tenants: () => number,
  nowMs: number,
): TenantShares {
  const usages = new Map<string, Usage>();
  let slice = sliceOf(nowMs);
  let allWaiting = 0;

  function usageOf(tenant: string): Usage {
    const known = usages.get(tenant);
    if (known) return known;
    const usage = { stored: 0, waiting: 0, notStored: 0 };
    usages.set(tenant, usage);
    return usage;
  }

  function beginSlice(current: number): void {
    slice = current;
    for (const [tenant, usage] of usages) {
      if (usage.waiting === 0 && usage.notStored === 0) usages.delete(tenant);
      usage.stored = 0;
    }
  }

  function limitOf(lane: RecordLane, nowMs: number): number {
    const { maxStoredPerTenant, keepFor } = settings();
    const share = (maxStoredPerTenant * sliceMs) / Math.max(keepFor, sliceMs);
    if (lane === 'write') return share;
    const elapsed = (nowMs % sliceMs) / sliceMs;
    return share * laneShares[lane] * Math.min(1, elapsed + initialPart);
  }

  return {
    admit(tenant, lane, nowMs) {
      if (sliceOf(nowMs) !== slice) beginSlice(sliceOf(nowMs));
      const usage = usageOf(tenant);
      const isAdmitted =
        usage.stored + usage.waiting < limitOf(lane, nowMs) &&
        (allWaiting < maxWaitingBytes / 2 || usage.waiting < maxWaitingBytes / 2 / (tenants() + 1));
      if (!isAdmitted) usage.notStored += 1;
      return isAdmitted;
    },
    add(tenant, bytes) {
      usageOf(tenant).waiting += bytes;
      allWaiting += bytes;
    },
    addNotStored(tenant) {
      usageOf(tenant).notStored += 1;
    },
    takeNotStored() {
      const counts = new Map<string, number>();
      for (const [tenant, usage] of usages) {
        if (usage.notStored > 0) counts.set(tenant, usage.notStored);
        usage.notStored = 0;
      }
      return counts;
    },
    onWritten(written, tenant, bytes, total) {
      const usage = usageOf(tenant);
      usage.waiting -= bytes;
      allWaiting -= bytes;
      if (written === slice) usage.stored = total;
    },
  };
}
