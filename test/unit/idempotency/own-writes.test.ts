import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  answeredEntry,
  type ClaimedEntry,
  claimedEntry,
  type SendingEntry,
  serialized,
} from '../../../src/idempotency/ledger-entry.ts';
import { createOwnWrites } from '../../../src/idempotency/own-writes.ts';
import { bankResponse, useFakeTime, windowMs } from './instance.ts';
import { identityOf, initiation } from './requests.ts';

const claimed: ClaimedEntry = claimedEntry(initiation(), identityOf(initiation()).fingerprints, {
  attempt: 'attempt',
  holder: 'holder',
});
const sending: SendingEntry = { ...claimed, step: 'sending', environment: 'sandbox', listenedUntil: 1 };
const inDoubt = { ...sending, step: 'in-doubt', why: 'no answer' } as const;
const answered = (body: string) => answeredEntry(serialized(sending), bankResponse(201, body)).entry;

describe('the own writes of an instance', () => {
  test('are remembered in every step, as they were stored', (t) => {
    useFakeTime(t);
    const writes = createOwnWrites(1_000_000);
    for (const entry of [claimed, sending, inDoubt, answered('{"paymentId":"ü-1"}')]) {
      writes.set('a', serialized(entry), { ttlMs: windowMs });
      assert.deepEqual(writes.entryOf('a'), entry);
    }
  });

  test('are forgotten when the state may forget them', (t) => {
    const time = useFakeTime(t);
    const writes = createOwnWrites(1_000_000);
    writes.set('a', serialized(answered('')), { ttlMs: windowMs });
    time.skip(windowMs - 1);
    assert.equal(writes.entryOf('a')?.step, 'answered');
    time.skip(1);
    assert.equal(writes.entryOf('a'), undefined);
  });

  test('are unresolved from the time when they are in doubt until their outcome is known or they are deleted', () => {
    const writes = createOwnWrites(1_000_000);
    for (const id of ['a', 'b', 'c']) {
      writes.set(id, serialized(sending));
      assert.deepEqual(writes.unresolvedIds().includes(id), false);
      writes.set(id, serialized(inDoubt));
    }
    assert.deepEqual(writes.unresolvedIds(), ['a', 'b', 'c']);
    writes.set('a', serialized(answered('')), { ttlMs: windowMs });
    writes.delete('b');
    assert.deepEqual(writes.unresolvedIds(), ['c']);
  });

  test('are dropped beyond the limit, oldest first, and are incomplete until the dropped ones have expired', (t) => {
    const time = useFakeTime(t);
    const writes = createOwnWrites(10_000);
    for (let index = 0; index < 10; index++)
      writes.set(String(index), serialized(answered('x'.repeat(1_000))), { ttlMs: windowMs });
    assert.equal(writes.entryOf('0'), undefined);
    assert.deepEqual(writes.entryOf('9'), answered('x'.repeat(1_000)));
    assert.equal(writes.isComplete(), false);
    time.skip(windowMs);
    assert.equal(writes.isComplete(), true);
  });

  test('keep their entries while others are replaced, dropped and deleted', () => {
    const writes = createOwnWrites(100_000);
    const set = (id: string, body: string) => writes.set(id, serialized(answered(body)), { ttlMs: windowMs });
    for (let index = 0; index < 200; index++) {
      set(String(index), `first answer to ${index}`);
      set(String(index), `answer to ${index}`);
      if (index % 3 === 0) writes.delete(String(index));
    }
    const remembered = [...writes.all()].map(({ id }) => id);
    assert.ok(remembered.length > 30 && remembered.length < 130, `${remembered.length} fit`);
    for (const id of remembered) assert.deepEqual(writes.entryOf(id), answered(`answer to ${id}`));
  });

  test('get the sequence number of a new epoch, and keep their entry', () => {
    const writes = createOwnWrites(1_000_000);
    writes.set('a', serialized(answered('{}')), { sequence: 7, ttlMs: windowMs });
    writes.set('b', serialized(sending), { sequence: 8 });
    writes.setSequences((id) => (id === 'a' ? 17 : undefined));
    assert.deepEqual([...writes.all()].map(({ id, sequence }) => [id, sequence]).toSorted(), [
      ['a', 17],
      ['b', 8],
    ]);
    assert.deepEqual(writes.entryOf('a'), answered('{}'));
  });

  test('contain only the outcome if the response is long', () => {
    const writes = createOwnWrites(1_000_000);
    writes.set('a', serialized({ ...answered('x'.repeat(5_000)), paymentId: 'a-payment' }), {
      ttlMs: windowMs,
    });
    assert.equal(writes.entryOf('a')?.step, 'happened');
  });

  test('are in doubt if the response is long and does not say that the bank has executed the request', () => {
    const padding = 'x'.repeat(5_000);
    const initiated: SendingEntry = { ...sending, operation: 'initiatePayment' };
    const cancelled: SendingEntry = { ...sending, operation: 'cancelPayment' };
    const refusal = { tppMessages: [{ category: 'ERROR', code: 'CANCELLATION_INVALID' }], padding };
    for (const [entry, status, body, expected] of [
      [initiated, 201, { paymentId: 'p-1', padding }, 'happened'],
      [initiated, 400, { padding }, 'in-doubt'],
      [cancelled, 200, { padding }, 'happened'],
      [cancelled, 200, refusal, 'in-doubt'],
      [cancelled, 200, { transactionStatus: 'RJCT', padding }, 'in-doubt'],
      [cancelled, 404, refusal, 'in-doubt'],
      [initiated, 500, { paymentId: 'p-1', padding }, 'in-doubt'],
    ] as const) {
      const writes = createOwnWrites(1_000_000);
      const response = bankResponse(status, JSON.stringify(body));
      writes.set('a', answeredEntry(serialized(entry), response), { ttlMs: windowMs });
      assert.equal(writes.entryOf('a')?.step, expected, `${entry.operation}: ${status}`);
    }
  });
});
