/** The most recent requests of this instance, which answer "why was my call refused?". In memory and bounded. */

import type { RequestObserver, RequestRecord } from './request-record.ts';

/** One request as the admin API reports it. Times in milliseconds. */
export interface RequestReport {
  /** When it was received: RFC 3339. */
  readonly at: string;
  readonly xRequestId: string;
  /** These three are `null` if the request was refused before they were known. */
  readonly operation: string | null;
  readonly client: string | null;
  readonly tenant: string | null;
  readonly environment: string | null;
  readonly status: number;
  readonly error?: string;
  readonly why?: string;
  readonly servedFrom?: string;
  readonly durationMs: number | null;
  /** The events of the request in order, each with `what` and its own fields. */
  readonly steps: readonly Readonly<Record<string, string | number>>[];
}

export interface RecentRequests extends RequestObserver {
  /** Reports all stored requests with this id, newest first. @param xRequestId in any letter case */
  of(xRequestId: string): readonly RequestReport[];
}

/** Records per ring: about two megabytes. */
const recordsPerRing = 2_000;

/** One ring for each lane and one for refused requests, so that no flood of polls or refusals evicts payments. */
export function createRecentRequests(maxRecords = recordsPerRing): RecentRequests {
  const rings = {
    write: createRing(maxRecords),
    read: createRing(maxRecords),
    status: createRing(maxRecords),
    refused: createRing(maxRecords),
  };
  let sequence = 0;
  return {
    onRequestEnd(record) {
      if (record.requestId === undefined) return; // it could never be found
      rings[record.request?.lane ?? 'refused'].add({ sequence: sequence++, record });
    },
    of(xRequestId) {
      const id = xRequestId.toLowerCase();
      return Object.values(rings)
        .flatMap((ring) => ring.all())
        .filter(({ record }) => record.requestId?.toLowerCase() === id)
        .toSorted((one, other) => other.sequence - one.sequence)
        .map(({ record }) => reportOf(record));
    },
  };
}

interface StoredRecord {
  readonly sequence: number;
  readonly record: RequestRecord;
}

function createRing(maxRecords: number) {
  const records: StoredRecord[] = [];
  let next = 0;
  return {
    add(stored: StoredRecord): void {
      records[next] = stored;
      next = (next + 1) % maxRecords;
    },
    all: (): readonly StoredRecord[] => records,
  };
}

function reportOf(record: RequestRecord): RequestReport {
  const { receivedAtMs, requestId = '', request, environment, status, servedFrom } = record;
  const { durationMs, error, events } = record;
  return {
    at: new Date(receivedAtMs).toISOString(),
    xRequestId: requestId,
    operation: request?.operation ?? null,
    client: request?.client ?? null,
    tenant: request?.tenant ?? null,
    environment: environment ?? null,
    status,
    ...(error && { error: error.code, why: error.why }),
    ...(servedFrom && { servedFrom }),
    durationMs: durationMs === undefined ? null : roundMs(durationMs),
    steps: events.map(({ afterMs, event }) => ({ afterMs: roundMs(afterMs), ...withRoundTimes(event) })),
  };
}

const withRoundTimes = (event: object) =>
  Object.fromEntries(
    Object.entries(event).map(([name, value]) => [name, name.endsWith('Ms') ? roundMs(value) : value]),
  );

const roundMs = (ms: number) => Math.round(ms * 10) / 10;
