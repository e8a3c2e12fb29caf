import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createUnstoredRequests } from '../../../src/telemetry/unstored-requests.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

const poll = (overrides: Partial<RequestRecord> = {}): RequestRecord => {
  const { request, ...record } = requestRecord(overrides);
  return { ...record, request: request && { ...request, operation: 'getPaymentStatus', lane: 'status' } };
};

describe('requests that are not stored', () => {
  test('are taken once, payments first, and a request with a late event once more', () => {
    const unstored = createUnstoredRequests();
    const [first, payment] = [poll(), requestRecord()];
    unstored.onRequestEnd(first);
    unstored.onRequestEnd(payment);
    assert.deepEqual(unstored.take(10), [payment, first]);
    assert.deepEqual(unstored.take(10), []);
    unstored.onLateEvent({ what: 'late-answer', status: 201 }, payment);
    assert.deepEqual(unstored.take(10), [payment]);
  });

  test('are taken up to a number, so that those that come meanwhile wait', () => {
    const unstored = createUnstoredRequests();
    const records = Array.from({ length: 3 }, () => poll());
    for (const record of records) unstored.onRequestEnd(record);
    const newest = unstored.newest();
    const payment = requestRecord();
    unstored.onRequestEnd(payment);
    assert.deepEqual(unstored.take(2, newest), records.slice(0, 2));
    assert.deepEqual(unstored.take(2, newest), records.slice(2));
    assert.deepEqual(unstored.take(2, newest), []);
    assert.deepEqual(unstored.take(2), [payment]);
  });

  test('a flood of polls or refusals removes the oldest of its kind, and no payment', () => {
    const unstored = createUnstoredRequests(3);
    const payment = requestRecord();
    unstored.onRequestEnd(payment);
    const polls = Array.from({ length: 5 }, () => poll());
    for (const one of polls) unstored.onRequestEnd(one);
    for (let refusals = 0; refusals < 4; refusals++)
      unstored.onRequestEnd({ ...failedRecord('PATH_UNKNOWN', 404), request: undefined });
    assert.deepEqual([...unstored.takeEvicted().values()], [2, 1], 'polls of a tenant, and a refusal');
    assert.equal(unstored.takeEvicted().size, 0);
    assert.deepEqual(unstored.take(4), [payment, ...polls.slice(2)]);
  });

  test('are found by their id in any letter case, the newest first, also after they were put back', () => {
    const unstored = createUnstoredRequests();
    const requestId = 'AAAAAAAA-0000-4000-8000-00000000000A';
    const [one, two] = [requestRecord({ requestId }), poll({ requestId: requestId.toLowerCase() })];
    for (const record of [one, requestRecord(), two]) unstored.onRequestEnd(record);
    assert.deepEqual(unstored.waiting(requestId), [two, one]);
    const taken = unstored.take(10);
    assert.deepEqual(unstored.waiting(requestId), []);
    unstored.putBack(taken);
    assert.deepEqual(unstored.waiting(requestId), [two, one]);
  });

  test('stay in their order when they are put back, so that the oldest ones are removed first', () => {
    const unstored = createUnstoredRequests(3);
    const records = Array.from({ length: 4 }, () => requestRecord());
    for (const record of records.slice(0, 2)) unstored.onRequestEnd(record);
    const taken = unstored.take(2);
    for (const record of records.slice(2)) unstored.onRequestEnd(record);
    unstored.putBack(taken);
    assert.deepEqual(unstored.take(10), records.slice(1));
  });

  test('without an id are not kept, because nobody could find them', () => {
    const unstored = createUnstoredRequests();
    unstored.onRequestEnd({ ...failedRecord('PATH_UNKNOWN', 404), requestId: undefined });
    assert.deepEqual(unstored.take(10), []);
  });

  test('report when enough of them wait', () => {
    const unstored = createUnstoredRequests();
    let reports = 0;
    unstored.onBatch(2, () => {
      reports += 1;
    });
    unstored.onRequestEnd(poll());
    assert.equal(reports, 0);
    unstored.onRequestEnd(requestRecord());
    assert.equal(reports, 1);
  });
});
