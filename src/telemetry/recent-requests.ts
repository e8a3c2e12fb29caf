/** The most recent requests of this instance, which answer "why was my call refused?". In memory and bounded. */

import { createRecordSlots, type StoredRecord } from './record-slots.ts';
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

export interface RecentRequests extends Required<RequestObserver> {
  /** Reports all stored requests with this id, newest first. @param xRequestId in any letter case */
  of(xRequestId: string): readonly RequestReport[];
}

/** Records per ring: about a megabyte. */
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
      rings[record.request?.lane ?? 'refused'].add(record, sequence++);
    },
    onLateEvent(_event, record) {
      rings[record.request?.lane ?? 'refused'].replace(record);
    },
    of(xRequestId) {
      return Object.values(rings)
        .flatMap((ring) => ring.find(xRequestId.toLowerCase()))
        .toSorted((one, other) => other.sequence - one.sequence)
        .map(({ record }) => reportOf(record));
    },
  };
}

interface FoundRecord {
  readonly sequence: number;
  readonly record: RequestRecord | StoredRecord;
}

interface Ring {
  add(record: RequestRecord, sequence: number): void;
  /** Stores a record again after an event was added to it. */
  replace(record: RequestRecord): void;
  /** @param id in lower case */
  find(id: string): readonly FoundRecord[];
}

/** Nearly all records are stored in slots; the others, such as those with an error, as they are. */
function createRing(maxRecords: number): Ring {
  const slots = createRecordSlots(maxRecords);
  const sequences = new Float64Array(maxRecords);
  const unusual: (RequestRecord | undefined)[] = Array.from({ length: maxRecords }, () => undefined);
  let size = 0;
  let next = 0;

  const recordIn = (slot: number) => unusual[slot] ?? slots.read(slot);

  return {
    add(record, sequence) {
      const isWritten = slots.write(next, record);
      if (!isWritten || unusual[next]) unusual[next] = isWritten ? undefined : record;
      sequences[next] = sequence;
      next = (next + 1) % maxRecords;
      size = Math.min(size + 1, maxRecords);
    },
    replace(record) {
      if (unusual.includes(record)) return; // the same object, which contains the event already
      // Many calls may end late at the same time, when the bank recovers: so only the records that may be this one are read.
      for (let slot = 0; slot < size; slot++) {
        const receivedAtMs = unusual[slot]?.receivedAtMs ?? slots.receivedAtMs(slot);
        if (receivedAtMs !== record.receivedAtMs) continue;
        if (recordIn(slot).requestId === record.requestId) unusual[slot] = record;
      }
    },
    find(id) {
      const found: FoundRecord[] = [];
      for (let slot = 0; slot < size; slot++) {
        const record = recordIn(slot);
        if (record.requestId?.toLowerCase() === id) found.push({ sequence: sequences[slot] ?? 0, record });
      }
      return found;
    },
  };
}

function reportOf(record: RequestRecord | StoredRecord): RequestReport {
  const { receivedAtMs, requestId = '', environment, status, servedFrom, durationMs, events } = record;
  const { operation, client, tenant } = 'operation' in record ? record : (record.request ?? unknownRequest);
  const error = 'error' in record ? record.error : undefined;
  return {
    at: new Date(receivedAtMs).toISOString(),
    xRequestId: requestId,
    operation,
    client,
    tenant,
    environment: environment ?? null,
    status,
    ...(error && { error: error.code, why: error.why }),
    ...(servedFrom && { servedFrom }),
    durationMs: durationMs === undefined ? null : roundMs(durationMs),
    steps: events.map(({ afterMs, event }) => ({ afterMs: roundMs(afterMs), ...withRoundTimes(event) })),
  };
}

const unknownRequest = { operation: null, client: null, tenant: null };

const withRoundTimes = (event: object) =>
  Object.fromEntries(
    Object.entries(event).map(([name, value]) => [name, name.endsWith('Ms') ? roundMs(value) : value]),
  );

const roundMs = (ms: number) => Math.round(ms * 10) / 10;
