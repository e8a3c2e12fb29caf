/** The last decisions of this instance, for "why was my call refused": in memory, bounded, gone with the process. */

import type { RequestObserver, RequestRecord } from './request-record.ts';

/** One request, as operators are told of it. Times in milliseconds. */
export interface RequestReport {
  /** When it came in: RFC 3339. */
  readonly at: string;
  readonly xRequestId: string;
  /** `null` in these three: refused at the door, before it was known. */
  readonly operation: string | null;
  readonly client: string | null;
  readonly tenant: string | null;
  readonly environment: string | null;
  readonly status: number;
  readonly error?: string;
  readonly why?: string;
  readonly servedFrom?: string;
  readonly durationMs: number | null;
  /** What was decided and happened, in order: each with `what`, and what belongs to it. */
  readonly steps: readonly Readonly<Record<string, string | number>>[];
}

export interface RecentRequests extends RequestObserver {
  /** Every request with this id that is remembered, the newest first. @param xRequestId in any letter case */
  of(xRequestId: string): readonly RequestReport[];
}

/** How many requests are remembered of each kind: some two megabytes each. */
const defaultMaxPerRing = 2_000;

/** Each lane has a place of its own, and so has the door: no flood of polls or refusals drives payments out. */
export function createRecentRequests(maxPerRing = defaultMaxPerRing): RecentRequests {
  const rings = {
    write: createRing(maxPerRing),
    read: createRing(maxPerRing),
    status: createRing(maxPerRing),
  };
  const refusals = createRing(maxPerRing);
  let count = 0;
  return {
    onRequestEnd(decision) {
      if (decision.requestId === undefined) return; // nobody can ask for it
      const ring = decision.asked ? rings[decision.asked.lane] : refusals;
      ring.add({ sequence: count++, record: decision });
    },
    of(xRequestId) {
      const id = xRequestId.toLowerCase();
      return [...Object.values(rings), refusals]
        .flatMap((ring) => ring.all())
        .filter(({ record }) => record.requestId?.toLowerCase() === id)
        .toSorted((one, other) => other.sequence - one.sequence)
        .map(({ record }) => reportOf(record));
    },
  };
}

interface StoredRecord {
  /** Later ones have higher ones. */
  readonly sequence: number;
  readonly record: RequestRecord;
}

function createRing(maxRecords: number) {
  const records: StoredRecord[] = [];
  let next = 0;
  return {
    add(one: StoredRecord): void {
      records[next] = one;
      next = (next + 1) % maxRecords;
    },
    all: (): readonly StoredRecord[] => records,
  };
}

function reportOf(decision: RequestRecord): RequestReport {
  const {
    receivedAtMs,
    requestId = '',
    asked,
    environment,
    status,
    servedFrom,
    durationMs,
    error,
    steps,
  } = decision;
  return {
    at: new Date(receivedAtMs).toISOString(),
    xRequestId: requestId,
    operation: asked?.operation ?? null,
    client: asked?.client ?? null,
    tenant: asked?.tenant ?? null,
    environment: environment ?? null,
    status,
    ...(error && { error: error.code, why: error.why }),
    ...(servedFrom && { servedFrom }),
    durationMs: durationMs === undefined ? null : roundMs(durationMs),
    steps: steps.map(({ afterMs, event }) => ({ afterMs: roundMs(afterMs), ...withRoundTimes(event) })),
  };
}

const withRoundTimes = (fact: object) =>
  Object.fromEntries(
    Object.entries(fact).map(([name, value]) => [name, name.endsWith('Ms') ? roundMs(value) : value]),
  );

const roundMs = (ms: number) => Math.round(ms * 10) / 10;
