/** Decodes what record-encoder.ts has encoded. */

import type { HashWords } from '../request/payment-hash.ts';
import type { StoredRecord } from '../telemetry/record-slots.ts';
import { ByteReader } from './byte-writer.ts';
import { fieldKinds, formatVersion, recordFlags, type shapeHead } from './record-encoder.ts';

/** A record of a chunk. */
export interface DecodedRecord extends StoredRecord {
  /** Identifies the record on its instance. A later version of the record has the same number. */
  readonly number: number;
  readonly isChanged: boolean;
  readonly payment: HashWords | undefined;
}

/** A record without its events. */
export type RecordHead = Omit<DecodedRecord, 'events'>;

/** The texts and shapes of one encoder. */
export interface Dictionary {
  readonly texts: readonly string[];
  readonly shapes: readonly Shape[];
}

interface Shape extends Readonly<Record<Exclude<(typeof shapeHead)[number], 'status'>, string>> {
  readonly status: number;
  /** For each event its fields; those of kind `milliseconds` have no value here. */
  readonly events: readonly (readonly Field[])[];
  /** How many values a record of this shape has. */
  readonly valueCount: number;
}

interface Field {
  readonly name: string;
  readonly value: string | number | undefined;
}

/** @returns `undefined` if the bytes are not a dictionary of this version */
export function decodeDictionary(bytes: Buffer): Dictionary | undefined {
  return unlessMalformed(() => {
    const reader = new ByteReader(bytes);
    if (reader.integer() !== formatVersion) return undefined;
    const texts = [''];
    for (let rest = reader.integer(); rest > 0; rest--) texts.push(reader.text());
    const shapes: Shape[] = [];
    for (let rest = reader.integer(); rest > 0; rest--) shapes.push(readShape(reader, texts));
    return { texts, shapes };
  });
}

function readShape(reader: ByteReader, texts: readonly string[]): Shape {
  let rest = reader.integer();
  const next = () => {
    rest -= 1;
    return reader.signed();
  };
  const nextText = () => texts[next()] ?? '';
  const [operation, environment, servedFrom] = [nextText(), nextText(), nextText()];
  const [error, why] = [nextText(), nextText()];
  const status = next();
  const events: Field[][] = [];
  while (rest > 0) {
    const fields: Field[] = [];
    for (let count = next(); count > 0; count--) {
      const nameAndKind = next();
      const name = texts[nameAndKind >> 2] ?? '';
      fields.push({ name, value: readValue(nameAndKind & 3) });
    }
    events.push(fields);
  }
  const valueCount = events.flat().filter(({ value }) => value === undefined).length + events.length;
  return { operation, environment, servedFrom, error, why, status, events, valueCount };

  function readValue(kind: number): Field['value'] {
    if (kind === fieldKinds.text) return nextText();
    return kind === fieldKinds.number ? next() : undefined;
  }
}

/** The name of the encoder of a chunk; `undefined` if the bytes are not a chunk of this version. */
export const encoderOf = (chunk: Buffer): string | undefined =>
  unlessMalformed(() => readEncoder(new ByteReader(chunk)));

const readEncoder = (reader: ByteReader): string | undefined =>
  reader.integer() === formatVersion ? reader.text() : undefined;

/** The records of a chunk that the filter selects; those in front of the first malformed byte, if it has one. */
export function decodeChunk(
  chunk: Buffer,
  { texts, shapes }: Dictionary,
  isWanted: (record: RecordHead) => boolean = () => true,
): readonly DecodedRecord[] {
  const records: DecodedRecord[] = [];
  unlessMalformed(() => {
    const reader = new ByteReader(chunk);
    if (readEncoder(reader) === undefined) return;
    let receivedAtMs = reader.double();
    let number = reader.double();
    while (!reader.isAtEnd) {
      const flags = reader.integer();
      const requestId = flags & recordFlags.isText ? reader.text() : reader.uuid();
      receivedAtMs += reader.signed();
      number += reader.signed();
      const shape = shapes[reader.integer()];
      if (!shape) return;
      const [client = '', tenant = ''] = [texts[reader.integer()], texts[reader.integer()]];
      const durationMs = flags & recordFlags.hasDuration ? reader.integer() / 10 : undefined;
      const payment: HashWords | undefined =
        flags & recordFlags.hasPayment ? [reader.word(), reader.word()] : undefined;
      const { operation, environment, servedFrom, error, why, status } = shape;
      const isChanged = (flags & recordFlags.isChanged) > 0;
      const head: RecordHead = {
        number,
        isChanged,
        payment,
        receivedAtMs,
        requestId,
        operation,
        client,
        tenant,
        environment,
        status,
        servedFrom,
        error,
        why,
        durationMs,
      };
      if (isWanted(head))
        records.push({ ...head, events: shape.events.map((fields) => readEvent(reader, fields)) });
      else for (let values = shape.valueCount; values > 0; values--) reader.integer();
    }
  });
  return records;
}

function readEvent(reader: ByteReader, fields: readonly Field[]): StoredRecord['events'][number] {
  const event: Record<string, string | number> = {};
  const afterMs = reader.integer() / 10;
  for (const { name, value } of fields) event[name] = value ?? reader.integer() / 10;
  return { afterMs, event };
}

function unlessMalformed<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}
