/** What could not be forgotten when it should have been, because the shared state was out of reach: it is forgotten later. */

export interface LateForgetting {
  /** @param key of a payment that the instances have to forget */
  add(key: string): void;
  /** Forgets this payment now, if that is owed; rejects if it cannot be done yet. */
  settleOf(key: string): Promise<void>;
  /** Forgets all that is owed; stops at the first that fails. */
  settle(): Promise<void>;
}

interface Forgetting {
  /** Makes the instances forget one payment. */
  readonly forget: (key: string) => Promise<void>;
  /** Makes them forget every one. */
  readonly forgetEverything: () => Promise<void>;
}

/** With more than these, everything is owed: about 100 bytes each. */
const mostOwed = 10_000;
const everything = '*';

/** Nothing is owed yet. */
export function createLateForgetting({ forget, forgetEverything }: Forgetting): LateForgetting {
  /** By key; what is added while it is being settled is another debt, and stays. */
  const owed = new Map<string, symbol>();

  async function settleOne(key: string): Promise<void> {
    const debt = owed.get(key);
    if (debt === undefined) return;
    await (key === everything ? forgetEverything() : forget(key));
    if (owed.get(key) === debt) owed.delete(key);
  }

  return {
    add: (key) => void owed.set(owed.size < mostOwed ? key : everything, Symbol()),
    async settleOf(key) {
      await settleOne(everything);
      await settleOne(key);
    },
    async settle() {
      await settleOne(everything);
      for (const key of [...owed.keys()]) await settleOne(key);
    },
  };
}
