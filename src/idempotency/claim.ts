/**
 * One attempt to carry a write out, and what its holder may say of it.
 *
 * What the state does not take now it is told later; until then a repeat is told that the first one is in flight.
 */

import { GatewayError } from '../flow/errors.ts';
import type { PisResponse } from '../flow/messages.ts';
import {
  answered,
  type Claimed,
  type Entry,
  isDoubtful,
  released,
  releasedForMs,
  type Sending,
  written,
} from './entry.ts';
import type { Ledger } from './ledger.ts';

export interface Claim {
  /** Where the first byte may have gone; `undefined` while nothing can have been sent. */
  environment(): string | undefined;
  /**
   * The last step before the first byte.
   *
   * @returns until when that byte may go: milliseconds of `performance.now()`
   * @throws GatewayError DUPLICATE_IN_FLIGHT if another attempt has taken over, STATE_UNAVAILABLE; nothing may be sent then
   */
  pass(environment: string): Promise<number>;
  /** The bank has answered: a repeat gets the same. */
  answered(response: PisResponse): Promise<void>;
  /** Nothing was sent, or the bank did nothing: the next one starts afresh. */
  release(): Promise<void>;
  /** The bank may have carried it out: nobody sends it again before that is known. */
  doubt(why: string): Promise<void>;
}

/** How old the last step may be when the first byte goes: less than any lease, and than any doubt lasts. Milliseconds. */
const passedForMs = 1_000;

interface Terms {
  readonly id: string;
  /** As it was just written. */
  readonly entry: Claimed;
  /** How long an answer is listened for after the last step before the first byte, in milliseconds. */
  readonly listenMs: number;
  /** How long an answer is kept, in milliseconds. */
  readonly windowMs: number;
}

export function createClaim({ records, open, told }: Ledger['parts'], terms: Terms): Claim {
  const { id, entry, listenMs, windowMs } = terms;
  const own = records.of(id, entry);
  let sending: Sending | undefined;

  async function close(): Promise<void> {
    await open.remove(id);
  }

  return {
    environment: () => sending?.environment,
    async pass(environment) {
      const startedAtMs = performance.now();
      const next: Sending = { ...entry, step: 'sending', environment, listenedUntil: Date.now() + listenMs };
      const [isOurs] = await Promise.all([own.replace(next), open.add(id)]);
      if (!isOurs) throw takenOver();
      sending = next;
      return startedAtMs + passedForMs;
    },
  };
}
