/** Checks that no TPP reads an older status than one that it has seen, in random histories where statuses only advance. */

import assert from 'node:assert/strict';

/** The code of the n-th status, which no list contains: `0000`, `0001`, ... */
export const statusCode = (count: number): string => count.toString(36).toUpperCase().padStart(4, '0');

/** The number of a status code. */
export const statusNumber = (code: string): number => Number.parseInt(code, 36);

export interface StatusOrderChecker {
  /** The highest status number that a TPP has seen of a payment. */
  lastSeen(tpp: string, payment: string): number;
  /** Asserts that a read returned no older status. @param seenBefore `lastSeen` at the time of the request */
  onRead(tpp: string, payment: string, seenBefore: number, status: number): void;
  /** Records that a write of this TPP returned, which the bank had carried out under this number. */
  onWrite(tpp: string, payment: string, status: number): void;
}

export function createStatusOrderChecker(): StatusOrderChecker {
  const seen = new Map<string, number>();
  const keyOf = (tpp: string, payment: string) => `${tpp} ${payment}`;
  const lastSeen = (tpp: string, payment: string) => seen.get(keyOf(tpp, payment)) ?? 0;
  const record = (tpp: string, payment: string, status: number) =>
    void seen.set(keyOf(tpp, payment), Math.max(lastSeen(tpp, payment), status));
  return {
    lastSeen,
    onWrite: record,
    onRead(tpp, payment, seenBefore, status) {
      const message = `${tpp} read status ${status} of ${payment} after it had seen ${seenBefore}`;
      assert.ok(status >= seenBefore, message);
      record(tpp, payment, status);
    },
  };
}
