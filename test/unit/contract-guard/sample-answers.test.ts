import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSampleAnswers } from '../../../src/contract-guard/sample-answers.ts';
import type { OperationName } from '../../../src/pis/operations.ts';

describe('the sample of answers', () => {
  test('has the first answer of each operation, and another one when a second has passed', () => {
    const isSampled = createSampleAnswers(0.1, () => 0.5);
    const times = [0, 1, 999, 1_000, 1_999, 2_001, 90_000];
    assert.deepEqual(
      times.map((atMs) => isSampled('initiatePayment', atMs)),
      [true, false, false, true, false, true, true],
    );
    assert.equal(isSampled('getPaymentStatus', 90_001), true);
  });

  test('has the configured part of further answers', () => {
    let random = 0;
    const isSampled = createSampleAnswers(0.1, () => random);
    isSampled('initiatePayment', 0);
    random = 0.099;
    assert.equal(isSampled('initiatePayment', 1), true);
    random = 0.1;
    assert.equal(isSampled('initiatePayment', 2), false);
    const all = createSampleAnswers(1, () => 0.999);
    assert.deepEqual([all('initiatePayment', 0), all('initiatePayment', 1)], [true, true]);
  });

  test('has at most fifty answers of an operation in a second, unless all answers are checked', () => {
    const countOf = (share: number, operations: readonly OperationName[], seconds: number) => {
      const isSampled = createSampleAnswers(share, () => 0);
      const times = Array.from({ length: seconds * 1_000 }, (_, atMs) => atMs);
      return operations.flatMap((operation) => times.filter((atMs) => isSampled(operation, atMs))).length;
    };
    assert.equal(countOf(0.99, ['initiatePayment'], 1), 50);
    assert.equal(countOf(0.99, ['initiatePayment', 'getPayment'], 2), 200);
    assert.equal(countOf(1, ['initiatePayment'], 1), 1_000);
  });
});
