/**
 * Stores records of requests as numbers, in memory that is allocated once.
 *
 * V8 would promote thousands of objects to the old generation of its heap, where they would become garbage. Its collection would
 * cost more than the rest of a request's telemetry (ADR 88).
 */

import type { TimedEvent } from '../request/request-events.ts';
import type { RequestRecord } from './request-record.ts';

/** What is stored of a record, with times rounded to tenths of a millisecond. */
export interface StoredRecord {
  readonly receivedAtMs: number;
  readonly requestId: string;
  readonly operation: string;
  readonly client: string;
  readonly tenant: string;
  readonly environment: string;
  readonly status: number;
  readonly servedFrom: string;
  readonly durationMs: number;
  readonly events: readonly { readonly afterMs: number; readonly event: EventFields }[];
}

type EventFields = Readonly<Record<string, string | number | undefined>>;

export interface RecordSlots {
  /** @returns false if the record cannot be stored: it has an error, an id that is no UUID, or more events than fit */
  write(slot: number, record: RequestRecord): boolean;
  /** @param slot one whose last `write` succeeded */
  read(slot: number): StoredRecord;
  /** `receivedAtMs` of the record in a slot, which costs much less than `read`. @param slot as in `read` */
  receivedAtMs(slot: number): number;
}

/** The positions in a slot, counted in numbers of 32 bits. */
const position = {
  receivedAt: 0, // two of them: a number of 64 bits
  duration: 2,
  status: 3,
  operation: 4,
  client: 5,
  tenant: 6,
  environment: 7,
  servedFrom: 8,
  eventsEnd: 9,
  requestId: 10, // nine of them: the 36 characters of a UUID
  events: 19,
} as const;
const idLength = 36;
/** Numbers of 32 bits: enough for a payment that was sent twice. Even, because a slot begins with a number of 64 bits. */
const slotSize = 112;

export function createRecordSlots(count: number): RecordSlots {
  const names = createNameTable();
  const numbers = new Int32Array(count * slotSize);
  const times = new Float64Array(numbers.buffer);
  const bytes = Buffer.from(numbers.buffer);
  const numberAt = (at: number) => numbers[at] ?? 0;
  const receivedAtMs = (slot: number) => times[(slot * slotSize) / 2] ?? 0;

  /**
   * Writes the time and the end of the event, and two numbers for each field: its name, negative if the value is a text, and the
   * value.
   *
   * @returns the end; beyond `limit` if the event does not fit
   */
  function writeEvent(start: number, limit: number, { afterMs, event }: TimedEvent): number {
    const fields: EventFields = event;
    let at = start + 2;
    for (const name in fields) {
      const value = fields[name];
      if (value === undefined) continue;
      if (at + 2 > limit) return limit + 1;
      const id = names.idOf(name);
      if (typeof value === 'string') {
        numbers[at] = -id;
        numbers[at + 1] = names.idOf(value);
      } else {
        numbers[at] = id;
        numbers[at + 1] = names.isTime(id) ? tenthsOf(value) : value;
      }
      at += 2;
    }
    numbers[start] = tenthsOf(afterMs);
    numbers[start + 1] = at;
    return at;
  }

  function readEvent(start: number): StoredRecord['events'][number] {
    const event: Record<string, string | number> = {};
    const end = numberAt(start + 1);
    for (let at = start + 2; at < end; at += 2) {
      const id = numberAt(at);
      const value = numberAt(at + 1);
      if (id < 0) event[names.nameOf(-id)] = names.nameOf(value);
      else event[names.nameOf(id)] = names.isTime(id) ? value / 10 : value;
    }
    return { afterMs: numberAt(start) / 10, event };
  }

  return {
    write(slot, record) {
      const { requestId, request, environment, servedFrom, durationMs, events } = record;
      if (record.error || !request || environment === undefined || servedFrom === undefined) return false;
      if (durationMs === undefined || requestId?.length !== idLength) return false;
      const start = slot * slotSize;
      let end = start + position.events;
      for (const event of events) {
        end = writeEvent(end, start + slotSize, event);
        if (end > start + slotSize) return false;
      }
      times[start / 2] = record.receivedAtMs;
      numbers[start + position.duration] = tenthsOf(durationMs);
      numbers[start + position.status] = record.status;
      numbers[start + position.operation] = names.idOf(request.operation);
      numbers[start + position.client] = names.idOf(request.client);
      numbers[start + position.tenant] = names.idOf(request.tenant);
      numbers[start + position.environment] = names.idOf(environment);
      numbers[start + position.servedFrom] = names.idOf(servedFrom);
      numbers[start + position.eventsEnd] = end;
      bytes.write(requestId, (start + position.requestId) * 4, 'latin1');
      return true;
    },
    read(slot) {
      const start = slot * slotSize;
      const nameAt = (name: 'operation' | 'client' | 'tenant' | 'environment' | 'servedFrom') =>
        names.nameOf(numberAt(start + position[name]));
      const idStart = (start + position.requestId) * 4;
      const events: StoredRecord['events'][number][] = [];
      const end = numberAt(start + position.eventsEnd);
      for (let at = start + position.events; at < end; at = numberAt(at + 1)) events.push(readEvent(at));
      return {
        receivedAtMs: receivedAtMs(slot),
        requestId: bytes.toString('latin1', idStart, idStart + idLength),
        operation: nameAt('operation'),
        client: nameAt('client'),
        tenant: nameAt('tenant'),
        environment: nameAt('environment'),
        status: numberAt(start + position.status),
        servedFrom: nameAt('servedFrom'),
        durationMs: numberAt(start + position.duration) / 10,
        events,
      };
    },
    receivedAtMs,
  };
}

const tenthsOf = (ms: number) => Math.round(ms * 10);

interface NameTable {
  /** At least 1. */
  idOf(name: string): number;
  nameOf(id: number): string;
  /** Whether values of this name are milliseconds. */
  isTime(id: number): boolean;
}

/** Numbers for texts. All of them are names of this program or of its configuration, so that the table stays small. */
function createNameTable(): NameTable {
  const ids = new Map<string, number>();
  const names = [''];
  const areTimes = [false];
  return {
    idOf(name) {
      const known = ids.get(name);
      if (known !== undefined) return known;
      const id = names.push(name) - 1;
      ids.set(name, id);
      areTimes[id] = name.endsWith('Ms');
      return id;
    },
    nameOf: (id) => names[id] ?? '',
    isTime: (id) => areTimes[id] === true,
  };
}
