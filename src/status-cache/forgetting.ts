/**
 * Makes every instance forget what is kept of a payment: now, or as soon as the shared state takes it. Until then it is
 * owed, and this instance serves nothing that is kept of the payment.
 */

import type { Changes } from '../state/changes.ts';
import { createOwed } from '../state/owed.ts';
import type { KeyValues } from '../state/ports.ts';
import { forgotten, written } from './document.ts';

/** Payments are named by the key of their document. */
export interface Forgetting {
  /** @throws GatewayError STATE_UNAVAILABLE if that cannot be done; it is not owed then */
  now(key: string): Promise<void>;
  /** Owes it. */
  later(key: string): void;
  /** Does it now, or owes it if that fails. Never fails. */
  nowOrLater(key: string): Promise<void>;
  /** Forgets this payment now, if that is owed. @throws GatewayError STATE_UNAVAILABLE if it cannot be done yet */
  settleOf(key: string): Promise<void>;
  /** Forgets all that is owed, up to the first that fails. @throws GatewayError STATE_UNAVAILABLE if one does */
  settle(): Promise<void>;
}

interface Parts {
  /** Makes the instances forget one payment. */
  readonly forget: (key: string) => Promise<void>;
  /** Makes them forget every one. */
  readonly forgetEverything: () => Promise<void>;
}

/** Longer than any call can take: a read that began before a payment was forgotten must find that it was. Milliseconds. */
export const longestCallMs = 15 * 60_000;
/** With more than these, everything is owed: about 100 bytes each. */
const mostOwed = 10_000;
const everything = '*';

/** Puts another generation in place of what is kept: what was read before can be kept no more. */
export function createForget(keyValues: KeyValues, changes: Changes): Parts['forget'] {
  return async (key) => {
    await keyValues.write(key, written(forgotten()), longestCallMs);
    changes.tell(key);
  };
}

/** Nothing is owed yet. */
export function createForgetting({ forget, forgetEverything }: Parts): Forgetting {
  const owed = createOwed<null>((_, key) => (key === everything ? forgetEverything() : forget(key)));
  const later = (key: string) => owed.add(owed.size() < mostOwed ? key : everything, null);

  return {
    now: forget,
    later,
    nowOrLater: (key) => forget(key).catch(() => later(key)),
    async settleOf(key) {
      await owed.settleOf(everything);
      await owed.settleOf(key);
    },
    async settle() {
      await owed.settleOf(everything);
      await owed.settle();
    },
  };
}
