/**
 * How much of the records each tenant may use, so that a flood of one tenant displaces neither records of others nor its own payments. All
 * instances together count the bytes of a tenant in each slice.
 */

import type { RecordLane } from '../telemetry/unstored-requests.ts';
import { sliceMs, sliceOf } from './slices.ts';

export interface TenantShares {
  /**
   * Whether a record may be stored. If not, it is counted.
   *
   * @param tenant empty if it is unknown
   */
  admit(tenant: string, lane: RecordLane): boolean;
  /** Counts a record that is stored. */
  add(tenant: string, bytes: number): void;
  /** Counts records that cannot be stored for another reason. */
  addNotStored(tenant: string, records: number): void;
  /** What was counted since the last call, to be added to that of the other instances. */
  takeNew(): readonly ShareRow[];
  /** For what could not be added. */
  putBack(rows: readonly ShareRow[]): void;
  /** @param bytes of a tenant in a slice, of all instances */
  onTotal(slice: number, tenant: string, bytes: number): void;
}

export interface ShareRow {
  readonly slice: number;
  readonly tenant: string;
  readonly bytes: number;
  readonly not_stored: number;
}

export interface ShareSettings {
  /** Of one tenant, in all slices together. */
  readonly maxStoredPerTenant: number;
  /** Milliseconds. */
  readonly keepFor: number;
}

/** The part of its share that a tenant may use: payments come first, then reads, then polls and refused requests. */
const laneShares: Readonly<Record<RecordLane, number>> = { write: 1, refused: 0.5, read: 0.75, status: 0.5 };

/** Such a part of the share is available at the beginning of a slice, and the rest gradually; for payments, all of it. */
const initialPart = 0.1;

interface Usage {
  /** By all instances, as far as this one knows. */
  stored: number;
  /** By this instance: what the others do not know yet. */
  new: { bytes: number; notStored: number };
}

/** @param now milliseconds since 1970 */
export function createTenantShares(
  settings: () => ShareSettings,
  now: () => number = Date.now,
): TenantShares {
  /** Of the current slice. */
  let usages = new Map<string, Usage>();
  let slice = sliceOf(now());
  /** Of former slices. */
  let unwritten: readonly ShareRow[] = [];

  function usageOf(tenant: string): Usage {
    const current = sliceOf(now());
    if (current !== slice) {
      unwritten = [...unwritten, ...takeUsages()];
      usages = new Map();
      slice = current;
    }
    const known = usages.get(tenant);
    if (known) return known;
    const usage = { stored: 0, new: { bytes: 0, notStored: 0 } };
    usages.set(tenant, usage);
    return usage;
  }

  function takeUsages(): readonly ShareRow[] {
    const rows: ShareRow[] = [];
    for (const [tenant, usage] of usages) {
      const { bytes, notStored } = usage.new;
      if (bytes > 0 || notStored > 0) rows.push({ slice, tenant, bytes, not_stored: notStored });
      usage.new = { bytes: 0, notStored: 0 };
    }
    return rows;
  }

  function limitOf(lane: RecordLane): number {
    const { maxStoredPerTenant, keepFor } = settings();
    const share = (maxStoredPerTenant * sliceMs) / Math.max(keepFor, sliceMs);
    if (lane === 'write') return share;
    const elapsed = (now() % sliceMs) / sliceMs;
    return share * laneShares[lane] * Math.min(1, elapsed + initialPart);
  }

  return {
    admit(tenant, lane) {
      const usage = usageOf(tenant);
      const isAdmitted = usage.stored < limitOf(lane);
      if (!isAdmitted) usage.new.notStored += 1;
      return isAdmitted;
    },
    add(tenant, bytes) {
      const usage = usageOf(tenant);
      usage.stored += bytes;
      usage.new.bytes += bytes;
    },
    addNotStored(tenant, records) {
      usageOf(tenant).new.notStored += records;
    },
    takeNew() {
      const rows = [...unwritten, ...takeUsages()];
      unwritten = [];
      return rows;
    },
    putBack(rows) {
      unwritten = [...unwritten, ...rows];
    },
    onTotal(written, tenant, bytes) {
      const usage = usages.get(tenant);
      if (written === slice && usage) usage.stored = bytes + usage.new.bytes;
    },
  };
}
