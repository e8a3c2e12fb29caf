import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { decodeChunk, decodeDictionary, encoderOf } from '../../../src/request-log/record-decoder.ts';
import { createRecordEncoder } from '../../../src/request-log/record-encoder.ts';
import { createNameTable } from '../../../src/telemetry/name-table.ts';
import { createRecordSlots } from '../../../src/telemetry/record-slots.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { failedRecord, paymentEvents, requestRecord } from '../../kit/request-records.ts';

/** Encodes the records in one chunk. @returns what is decoded, and what the slots contain */
function encodeAndDecode(records: readonly RequestRecord[]) {
  const slots = createRecordSlots(records.length, createNameTable(), 1_024);
  const encoder = createRecordEncoder('one');
  for (const [slot, record] of records.entries()) {
    assert.ok(slots.write(slot, record));
    assert.ok(encoder.add(slots, slot, 1_000 + slot, slot === 1) > 0);
  }
  const chunk = encoder.takeChunk();
  const dictionary = decodeDictionary(encoder.dictionary()) ?? assert.fail();
  const decoded = decodeChunk(chunk, dictionary);
  return { chunk, dictionary, encoder, decoded, stored: records.map((_, slot) => slots.read(slot)) };
}

describe('the encoding of records', () => {
  test('keeps everything that the slots contain', () => {
    const records = [
      requestRecord({}, paymentEvents),
      requestRecord({ receivedAtMs: Date.UTC(2026, 0, 31, 11, 59, 30), status: 404 }, paymentEvents),
      failedRecord('CIRCUIT_OPEN', 503),
      requestRecord({ request: undefined, environment: undefined, durationMs: undefined }),
      requestRecord({ requestId: randomUUID().toUpperCase() }),
      requestRecord({}, [...paymentEvents, ...paymentEvents, ...paymentEvents, ...paymentEvents]),
    ];
    const { decoded, stored } = encodeAndDecode(records);
    assert.deepEqual(
      decoded.map(({ number, isChanged, payment, ...record }) => record),
      stored,
    );
    assert.deepEqual(
      decoded.map(({ number }) => number),
      [1_000, 1_001, 1_002, 1_003, 1_004, 1_005],
    );
    assert.deepEqual(
      decoded.map(({ isChanged }) => isChanged),
      [false, true, false, false, false, false],
    );
  });

  test('keeps the hash of the payment in the path, and of the payment that the bank created', () => {
    const { request } = requestRecord();
    const { decoded } = encodeAndDecode([
      requestRecord({ request: request && { ...request, payment: [-5, 2 ** 31 - 1] } }),
      requestRecord({}, [...paymentEvents, { what: 'payment', high: 7, low: -(2 ** 31) }]),
      requestRecord(),
    ]);
    const payments = decoded.map(({ payment }) => payment);
    assert.deepEqual(payments, [[-5, 2 ** 31 - 1], [7, -(2 ** 31)], undefined]);
    assert.ok(decoded.every(({ events }) => events.every(({ event }) => event.what !== 'payment')));
  });

  test('names the encoder in each chunk', () => {
    const { chunk } = encodeAndDecode([requestRecord()]);
    assert.equal(encoderOf(chunk), 'one');
  });

  test('takes fewer than 60 bytes for a payment, and adds nothing to the dictionary for similar ones', () => {
    const records = Array.from({ length: 250 }, (_, index) =>
      requestRecord({ receivedAtMs: Date.UTC(2026, 0, 31, 12) + 4 * index, durationMs: 12 + (index % 50) }, [
        ...paymentEvents,
        { what: 'payment', high: 1_000_000 * index, low: index },
      ]),
    );
    const { chunk, encoder, dictionary } = encodeAndDecode(records);
    assert.ok(chunk.length < 60 * records.length, `${chunk.length / records.length} bytes`);
    assert.equal(dictionary.shapes.length, 1);
    assert.ok(encoder.dictionary().length < 400);
  });

  test('decodes only the records that a filter selects', () => {
    const records = [
      requestRecord({}, paymentEvents),
      failedRecord('CIRCUIT_OPEN', 503),
      requestRecord({}, paymentEvents),
    ];
    const { chunk, dictionary } = encodeAndDecode(records);
    const failed = decodeChunk(chunk, dictionary, ({ error }) => error === 'CIRCUIT_OPEN');
    assert.deepEqual(
      failed.map(({ requestId }) => requestId),
      [records[1]?.requestId],
    );
  });

  test('ignores bytes of another version, and what follows a malformed byte', () => {
    const { chunk, dictionary } = encodeAndDecode([
      requestRecord({}, paymentEvents),
      requestRecord({}, paymentEvents),
    ]);
    assert.equal(decodeChunk(chunk.subarray(0, -3), dictionary).length, 1);
    const other = Buffer.from(chunk);
    other[0] = 1;
    assert.deepEqual(decodeChunk(other, dictionary), []);
    for (const bytes of [other, Buffer.alloc(0), Buffer.from('text')]) {
      assert.equal(encoderOf(bytes), undefined);
      assert.equal(decodeDictionary(bytes), undefined);
    }
  });
});
