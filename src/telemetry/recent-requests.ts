/** The most recent requests of this instance, which answer "why was my call refused?". In memory and bounded. */

import type { Lane } from '../pis/operations.ts';
import { createNameTable, type NameTable } from './name-table.ts';
import { createRecordSlots, type RecordSlots, type StoredRecord } from './record-slots.ts';
import { type RequestObserver, type RequestRecord, roundMs } from './request-record.ts';

/** One request. Times in milliseconds. The tenant is its identity here, and its name in the admin API. */
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
  find(xRequestId: string): readonly NumberedReport[];
  /**
   * Passes the records that were added or changed since the last call, the oldest of each lane first.
   *
   * @returns how many records were evicted before they were passed
   */
  takeNew(take: TakeRecord): number;
  /** @param listener called when so many records were added since the last `takeNew`; replaces the former listener */
  onBatch(records: number, listener: () => void): void;
}

/** A report with the number that identifies its record on this instance. */
export interface NumberedReport {
  readonly number: number;
  readonly report: RequestReport;
}

/** @param entry the record is in this slot, or is this object if it does not fit into a slot */
export type TakeRecord = (lane: RecordLane, number: number, isChanged: boolean, entry: RecordEntry) => void;

export type RecordEntry =
  | { readonly slots: RecordSlots; readonly slot: number; readonly record?: never }
  | { readonly slots?: never; readonly record: RequestRecord };

/** `refused`: before the operation was known. */
export type RecordLane = Lane | 'refused';

/** Records per ring: about a megabyte. */
const recordsPerRing = 2_000;

/** One ring for each lane and one for refused requests, so that no flood of polls or refusals evicts payments. */
export function createRecentRequests(maxRecords = recordsPerRing): RecentRequests {
  const names = createNameTable();
  const rings = {
    write: createRing(maxRecords, names),
    read: createRing(maxRecords, names),
    status: createRing(maxRecords, names),
    refused: createRing(maxRecords, names),
  };
  const lanes = ['write', 'read', 'status', 'refused'] as const;
  let sequence = 0;
  let added = 0;
  let batch = { records: Number.POSITIVE_INFINITY, listener: () => {} };
  return {
    onRequestEnd(record) {
      if (record.requestId === undefined) return; // it could never be found
      rings[record.request?.lane ?? 'refused'].add(record, sequence++);
      added += 1;
      if (added === batch.records) batch.listener();
    },
    onLateEvent(_event, record) {
      rings[record.request?.lane ?? 'refused'].replace(record);
    },
    find(xRequestId) {
      return Object.values(rings)
        .flatMap((ring) => ring.find(xRequestId.toLowerCase()))
        .toSorted((one, other) => other.number - one.number);
    },
    takeNew(take) {
      added = 0;
      let evicted = 0;
      for (const lane of lanes)
        evicted += rings[lane].takeNew((number, isChanged, entry) => take(lane, number, isChanged, entry));
      return evicted;
    },
    onBatch(records, listener) {
      batch = { records, listener };
    },
  };
}

interface Ring {
  add(record: RequestRecord, number: number): void;
  /** Stores a record again after an event was added to it. */
  replace(record: RequestRecord): void;
  /** @param id in lower case */
  find(id: string): readonly NumberedReport[];
  takeNew(take: (number: number, isChanged: boolean, entry: RecordEntry) => void): number;
}

/** Nearly all records are stored in slots; those that do not fit, as they are. */
function createRing(maxRecords: number, names: NameTable): Ring {
  const slots = createRecordSlots(maxRecords, names);
  const numbers = new Float64Array(maxRecords);
  const unusual: (RequestRecord | undefined)[] = Array.from({ length: maxRecords }, () => undefined);
  /** The slots of records that have changed since they were taken. */
  const changed = new Set<number>();
  let size = 0;
  let next = 0;
  /** How many of the newest records have not been taken. */
  let untaken = 0;
  let evicted = 0;

  const isTaken = (slot: number) => (next - 1 - slot + maxRecords) % maxRecords >= untaken;
  const isRecord = (slot: number, { requestId, receivedAtMs }: RequestRecord, idBytes: Buffer) => {
    const stored = unusual[slot];
    if (stored) return stored.requestId === requestId && stored.receivedAtMs === receivedAtMs;
    return slots.receivedAtMs(slot) === receivedAtMs && slots.hasId(slot, idBytes);
  };

  return {
    add(record, number) {
      const isWritten = slots.write(next, record);
      if (!isWritten || unusual[next]) unusual[next] = isWritten ? undefined : record;
      if (changed.size > 0) changed.delete(next);
      numbers[next] = number;
      next = (next + 1) % maxRecords;
      size = Math.min(size + 1, maxRecords);
      if (untaken < maxRecords) untaken += 1;
      else evicted += 1;
    },
    // Compares without reading the records: when the bank recovers, many calls may end late at the same time.
    replace(record) {
      const idBytes = bytesOf(record.requestId?.toLowerCase());
      for (let slot = 0; slot < size; slot++) {
        if (!isRecord(slot, record, idBytes)) continue;
        if (unusual[slot] || !slots.write(slot, record)) unusual[slot] = record;
        if (isTaken(slot)) changed.add(slot);
        return;
      }
    },
    find(id) {
      const found: NumberedReport[] = [];
      const idBytes = bytesOf(id);
      for (let slot = 0; slot < size; slot++) {
        const record = unusual[slot];
        const isFound = record ? record.requestId?.toLowerCase() === id : slots.hasId(slot, idBytes);
        if (isFound)
          found.push({
            number: numbers[slot] ?? 0,
            report: record ? reportOfRecord(record) : reportOf(slots.read(slot)),
          });
      }
      return found;
    },
    takeNew(take) {
      const entryIn = (slot: number): RecordEntry => {
        const record = unusual[slot];
        return record ? { record } : { slots, slot };
      };
      for (let count = untaken; count > 0; count--) {
        const slot = (next - count + maxRecords) % maxRecords;
        take(numbers[slot] ?? 0, false, entryIn(slot));
      }
      for (const slot of changed) take(numbers[slot] ?? 0, true, entryIn(slot));
      changed.clear();
      untaken = 0;
      const count = evicted;
      evicted = 0;
      return count;
    },
  };
}

const bytesOf = (id = '') => Buffer.from(id, 'latin1');

const reportOfRecord = ({
  request,
  refusedClient,
  requestId = '',
  environment = '',
  servedFrom,
  error,
  ...rest
}: RequestRecord) =>
  reportOf({
    ...rest,
    requestId,
    operation: request?.operation ?? '',
    client: request?.client ?? refusedClient?.name ?? '',
    tenant: request?.tenantId ?? refusedClient?.tenantId ?? '',
    environment,
    servedFrom: servedFrom ?? '',
    error: error?.code ?? '',
    why: error?.why ?? '',
  });

export function reportOf(record: StoredRecord): RequestReport {
  const { receivedAtMs, requestId, status, servedFrom, durationMs, events, error, why } = record;
  return {
    at: new Date(receivedAtMs).toISOString(),
    xRequestId: requestId,
    operation: record.operation || null,
    client: record.client || null,
    tenant: record.tenant || null,
    environment: record.environment || null,
    status,
    ...(error && { error, why }),
    ...(servedFrom && { servedFrom }),
    durationMs: durationMs === undefined ? null : roundMs(durationMs),
    steps: events.flatMap(({ afterMs, event }) =>
      event.what === 'payment' ? [] : [{ afterMs: roundMs(afterMs), ...withRoundTimes(event) }],
    ),
  };
}

const withRoundTimes = (event: object) =>
  Object.fromEntries(
    Object.entries(event).map(([name, value]) => [name, name.endsWith('Ms') ? roundMs(value) : value]),
  );
