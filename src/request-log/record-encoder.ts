/**
 * Encodes the records of one instance and one slice. What is the same in many records (the events, their texts, the status) is a
 * shape, which is written once; a record refers to it, and adds its id, its times and its payment. A record takes about 45 bytes.
 *
 * A chunk contains records. The dictionary contains the shapes and texts of all chunks of the slice; it only grows.
 */

import type { NameTable } from '../telemetry/name-table.ts';
import { idLength, position, type RecordSlots } from '../telemetry/record-slots.ts';
import { ByteWriter } from './byte-writer.ts';

/** The first byte of a chunk and of a dictionary. */
export const formatVersion = 2;

/** Bits of the first number of a record. */
export const recordFlags = { hasPayment: 1, isText: 2, hasDuration: 4, isChanged: 8 } as const;

/** The first numbers of a shape; the fields of each event follow. */
export const shapeHead = ['operation', 'environment', 'servedFrom', 'error', 'why', 'status'] as const;

/** The kinds of the value of a field: a text and a number are part of the shape, milliseconds are part of the record. */
export const fieldKinds = { text: 0, number: 1, milliseconds: 2 } as const;

export interface RecordEncoder {
  /** Adds a record to the chunk. @returns its size in bytes; 0 if the dictionary is full, and nothing was added */
  add(slots: RecordSlots, slot: number, number: number, isChanged: boolean): number;
  /** The chunk, which is then empty. */
  takeChunk(): Buffer;
  dictionary(): Buffer;
  /** Grows with the dictionary. */
  dictionarySize(): number;
}

interface Shape {
  readonly id: number;
  readonly numbers: Int32Array;
  /** Another shape with the same hash. */
  readonly next: Shape | undefined;
}

/** A slice never has so many in practice. Beyond that, records with other shapes or texts are not stored. */
const maxShapes = 4_096;
const maxTexts = 16_384;

/**
 * The name under which the chunks of an encoder find their dictionary. If the clock was set back, the instance may have written to
 * a slice before, with another dictionary, which must not be replaced.
 *
 * @param setBack how often the clock was set back
 */
export const encoderName = (instance: string, setBack: number): string =>
  setBack === 0 ? instance : `${instance}~${setBack}`;

/** The inverse of `encoderName`: the names of instances contain no tilde. */
export const instanceOfEncoder = (name: string): string => name.replace(/~\d+$/, '');

/** @param name that of `encoderName`, which is in each chunk */
export function createRecordEncoder(name: string): RecordEncoder {
  const chunk = new ByteWriter();
  const texts: string[] = [];
  const textIds = new Map<string, number>();
  const shapes = new Map<number, Shape>();
  const shapeBytes = new ByteWriter();
  let shapeCount = 0;
  /** The id of each name in the dictionary, by its id in a table. */
  const idsByTable = new Map<NameTable, Int32Array>();
  let previousAtMs = Number.NaN;
  let previousNumber = 0;

  /** The shape of the current record, with its hash, and the times of the record. They are reused for all records. */
  let numbers = new Int32Array(1_024);
  let count = 0;
  let hash = 0;
  let values = new Int32Array(1_024);
  let valueCount = 0;

  function push(number: number): void {
    numbers[count++] = number;
    hash = Math.imul(hash ^ number, 0x01000193);
  }

  function addText(text: string): number {
    const known = textIds.get(text);
    if (known !== undefined) return known;
    const id = texts.push(text);
    textIds.set(text, id);
    return id;
  }

  function idsOf(names: NameTable): Int32Array {
    const known = idsByTable.get(names);
    const length = names.size();
    if (known && known.length >= length) return known;
    const ids = new Int32Array(2 * length);
    if (known) ids.set(known);
    idsByTable.set(names, ids);
    return ids;
  }

  /** The id in the dictionary of a name of the table; 0 if the name is unknown. */
  function textId(names: NameTable, ids: Int32Array, name: number): number {
    if (name === 0) return 0;
    const known = ids[name] ?? 0;
    if (known > 0) return known;
    const id = addText(names.nameOf(name));
    ids[name] = id;
    return id;
  }

  function readShape({ numbers: stored, names, size }: RecordSlots, start: number, ids: Int32Array): void {
    const numberAt = (at: number) => stored[at] ?? 0;
    if (numbers.length < 2 * size) {
      numbers = new Int32Array(2 * size);
      values = new Int32Array(2 * size);
    }
    count = 0;
    valueCount = 0;
    hash = 0;
    push(textId(names, ids, numberAt(start + position.operation)));
    push(textId(names, ids, numberAt(start + position.environment)));
    push(textId(names, ids, numberAt(start + position.servedFrom)));
    push(textId(names, ids, numberAt(start + position.error)));
    push(textId(names, ids, numberAt(start + position.why)));
    push(numberAt(start + position.status));
    const end = numberAt(start + position.eventsEnd);
    for (let at = start + position.events; at < end; ) {
      const eventEnd = numberAt(at + 1);
      values[valueCount++] = numberAt(at);
      push((eventEnd - at - 2) / 2);
      for (let field = at + 2; field < eventEnd; field += 2) {
        const name = numberAt(field);
        const value = numberAt(field + 1);
        if (name < 0) {
          push((textId(names, ids, -name) << 2) | fieldKinds.text);
          push(textId(names, ids, value));
        } else if (names.isTime(name)) {
          push((textId(names, ids, name) << 2) | fieldKinds.milliseconds);
          values[valueCount++] = value;
        } else {
          push((textId(names, ids, name) << 2) | fieldKinds.number);
          push(value);
        }
      }
      at = eventEnd;
    }
  }

  /** @returns the id of the shape that was read last; `undefined` if the dictionary is full */
  function shapeId(): number | undefined {
    const first = shapes.get(hash);
    for (let shape = first; shape; shape = shape.next) if (isCurrent(shape.numbers)) return shape.id;
    if (shapeCount >= maxShapes || texts.length >= maxTexts) return undefined;
    const shape = { id: shapeCount++, numbers: numbers.slice(0, count), next: first };
    shapes.set(hash, shape);
    shapeBytes.integer(count);
    for (const number of shape.numbers) shapeBytes.signed(number);
    return shape.id;
  }

  function isCurrent(shape: Int32Array): boolean {
    if (shape.length !== count) return false;
    for (let at = 0; at < count; at++) if (shape[at] !== numbers[at]) return false;
    return true;
  }

  return {
    add(slots, slot, number, isChanged) {
      const start = slot * slots.size;
      const ids = idsOf(slots.names);
      readShape(slots, start, ids);
      const shape = shapeId();
      if (shape === undefined) return 0;
      const numberAt = (at: number) => slots.numbers[start + at] ?? 0;
      const before = chunk.length;
      const atMs = Math.floor(slots.receivedAtMs(slot));
      if (before === 0) {
        chunk.integer(formatVersion);
        chunk.text(name);
        chunk.double(atMs);
        chunk.double(number);
        previousAtMs = atMs;
        previousNumber = number;
      }
      const [high, low] = [numberAt(position.payment), numberAt(position.payment + 1)];
      const duration = numberAt(position.duration);
      const idStart = (start + position.requestId) * 4;
      const flagsAt = chunk.length;
      let flags = 0;
      if (high !== 0 || low !== 0) flags |= recordFlags.hasPayment;
      if (duration >= 0) flags |= recordFlags.hasDuration;
      if (isChanged) flags |= recordFlags.isChanged;
      chunk.integer(flags);
      if (!chunk.uuid(slots.bytes, idStart)) {
        chunk.truncate(flagsAt);
        chunk.integer(flags | recordFlags.isText);
        chunk.bytes(slots.bytes.subarray(idStart, idStart + idLength));
      }
      chunk.signed(atMs - previousAtMs);
      chunk.signed(number - previousNumber);
      chunk.integer(shape);
      chunk.integer(textId(slots.names, ids, numberAt(position.client)));
      chunk.integer(textId(slots.names, ids, numberAt(position.tenant)));
      if (duration >= 0) chunk.integer(duration);
      if (high !== 0 || low !== 0) {
        chunk.word(high);
        chunk.word(low);
      }
      for (let at = 0; at < valueCount; at++) chunk.integer(values[at] ?? 0);
      previousAtMs = atMs;
      previousNumber = number;
      return chunk.length - before;
    },
    takeChunk() {
      const taken = chunk.copy();
      chunk.truncate(0);
      return taken;
    },
    dictionary() {
      const bytes = new ByteWriter();
      bytes.integer(formatVersion);
      bytes.integer(texts.length);
      for (const text of texts) bytes.text(text);
      bytes.integer(shapeCount);
      bytes.append(shapeBytes.copy());
      return bytes.copy();
    },
    dictionarySize: () => texts.length + shapeCount,
  };
}
