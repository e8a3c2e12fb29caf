/**
 * Stores records of requests as numbers, in memory that is allocated once.
 *
 * V8 would promote thousands of objects to the old generation of its heap, where they would become garbage. Its collection would
 * cost more than the rest of a request's telemetry (ADR 88). The encoder of the request log reads the same numbers.
 */

import type { TimedEvent } from '../request/request-events.ts';
import type { NameTable } from './name-table.ts';
import type { RequestRecord } from './request-record.ts';

/** What is stored of a record, with times rounded to tenths of a millisecond. A text that is unknown is empty. */
export interface StoredRecord {
  readonly receivedAtMs: number;
  readonly requestId: string;
  readonly operation: string;
  readonly client: string;
  /** Its identity: see `recordedTenantOf`. */
  readonly tenant: string;
  readonly environment: string;
  readonly status: number;
  readonly servedFrom: string;
  /** Code and message of an error that the gateway generated. */
  readonly error: string;
  readonly why: string;
  readonly durationMs: number | undefined;
  readonly events: readonly { readonly afterMs: number; readonly event: EventFields }[];
}

type EventFields = Readonly<Record<string, string | number | undefined>>;

export interface RecordSlots {
  /** @returns false if the record cannot be stored: it has an id that is no UUID, too many events, or texts beyond the table */
  write(slot: number, record: RequestRecord): boolean;
  /** @param slot one whose last `write` succeeded (here and below) */
  read(slot: number): StoredRecord;
  /** @param id in lower case, in latin1 */
  hasId(slot: number, id: Buffer): boolean;
  receivedAtMs(slot: number): number;
  /** A slot begins at its number times `size`; `position` says where its parts are. */
  readonly size: number;
  readonly numbers: Int32Array;
  readonly bytes: Buffer;
  readonly names: NameTable;
}

/** The positions in a slot, counted in numbers of 32 bits. Names are numbers of a table; 0 is an unknown one. */
export const position = {
  receivedAt: 0, // two of them: a number of 64 bits
  duration: 2, // -1 if it is unknown
  status: 3,
  operation: 4,
  client: 5,
  tenant: 6,
  environment: 7,
  servedFrom: 8,
  error: 9,
  why: 10,
  eventsEnd: 11,
  payment: 12, // two of them: a hash; 0 if there is none
  requestId: 14, // nine of them: the 36 characters of a UUID
  events: 23,
} as const;
/** The characters of a UUID. */
export const idLength = 36;
/** Numbers of 32 bits: enough for a payment that was sent twice. Even, because a slot begins with a number of 64 bits. */
const usualSize = 116;

/** @param size numbers of 32 bits in a slot; even */
export function createRecordSlots(count: number, names: NameTable, size = usualSize): RecordSlots {
  const numbers = new Int32Array(count * size);
  const times = new Float64Array(numbers.buffer);
  const bytes = Buffer.from(numbers.buffer);
  const numberAt = (at: number) => numbers[at] ?? 0;
  const receivedAtMs = (slot: number) => times[(slot * size) / 2] ?? 0;

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
    size,
    numbers,
    bytes,
    names,
    write(slot, record) {
      const { requestId, request, refusedClient, durationMs, events, error } = record;
      if (requestId?.length !== idLength || names.isFull()) return false;
      const start = slot * size;
      const limit = start + size;
      let end = start + position.events;
      let [high, low] = request?.payment ?? noPayment;
      for (const event of events) {
        if (event.event.what === 'payment') {
          high = event.event.high;
          low = event.event.low;
          continue;
        }
        end = writeEvent(end, limit, event);
        if (end > limit) return false;
      }
      times[start / 2] = record.receivedAtMs;
      numbers[start + position.duration] = durationMs === undefined ? -1 : tenthsOf(durationMs);
      numbers[start + position.status] = record.status;
      numbers[start + position.operation] = names.idOf(request?.operation);
      numbers[start + position.client] = names.idOf(request?.client ?? refusedClient?.name);
      numbers[start + position.tenant] = names.idOf(request?.tenantId ?? refusedClient?.tenantId);
      numbers[start + position.environment] = names.idOf(record.environment);
      numbers[start + position.servedFrom] = names.idOf(record.servedFrom);
      numbers[start + position.error] = names.idOf(error?.code);
      numbers[start + position.why] = names.idOf(error?.why);
      numbers[start + position.eventsEnd] = end;
      numbers[start + position.payment] = high;
      numbers[start + position.payment + 1] = low;
      bytes.write(requestId, (start + position.requestId) * 4, 'latin1');
      return true;
    },
    read(slot) {
      const start = slot * size;
      const nameAt = (name: NamePosition) => names.nameOf(numberAt(start + position[name]));
      const idStart = (start + position.requestId) * 4;
      const duration = numberAt(start + position.duration);
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
        error: nameAt('error'),
        why: nameAt('why'),
        durationMs: duration < 0 ? undefined : duration / 10,
        events,
      };
    },
    hasId(slot, id) {
      const start = (slot * size + position.requestId) * 4;
      if (id.length !== idLength) return false;
      for (let at = 0; at < idLength; at++)
        if (((bytes[start + at] ?? 0) | lowerCaseBit) !== id[at]) return false;
      return true;
    },
    receivedAtMs,
  };
}

type NamePosition = 'operation' | 'client' | 'tenant' | 'environment' | 'servedFrom' | 'error' | 'why';

const noPayment = [0, 0] as const;

/** In ASCII, this bit makes letters lower-case; digits and hyphens have it already. */
export const lowerCaseBit = 0x20;

const tenthsOf = (ms: number) => Math.round(ms * 10);
