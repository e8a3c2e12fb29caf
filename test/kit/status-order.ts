/** What the TPPs of a random history have seen of payments whose status only ever moves on. */

import assert from 'node:assert/strict';

/** The status with this number, as a code that no list knows: `0000`, `0001`, ... */
export const statusCode = (count: number): string => count.toString(36).toUpperCase().padStart(4, '0');

/** The number of a status. */
export const statusNumber = (code: string): number => Number.parseInt(code, 36);

export interface StatusOrderChecker {
  /** What a TPP knows to be so at least, when it asks. */
  lastSeen(tpp: string, payment: string): number;
  /** It was shown a status, having known another when it asked. */
  onRead(tpp: string, payment: string, knownBefore: number, status: number): void;
  /** Its own write has returned, which the bank had carried out under this number. */
  onWrite(tpp: string, payment: string, status: number): void;
}

/** Nobody has seen anything yet. */
export function createStatusOrderChecker(): StatusOrderChecker {
  const seen = new Map<string, number>();
  const nameOf = (tpp: string, payment: string) => `${tpp} ${payment}`;
  const known = (tpp: string, payment: string) => seen.get(nameOf(tpp, payment)) ?? 0;
  const note = (tpp: string, payment: string, status: number) =>
    void seen.set(nameOf(tpp, payment), Math.max(known(tpp, payment), status));
  return {
    lastSeen: known,
    onWrite: note,
    onRead(tpp, payment, knownBefore, status) {
      const story = `${tpp} was shown ${status} of ${payment}, and had known ${knownBefore} when it asked`;
      assert.ok(status >= knownBefore, story);
      note(tpp, payment, status);
    },
  };
}
