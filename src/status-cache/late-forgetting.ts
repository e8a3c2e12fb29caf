/** What could not be forgotten when it should have been, because the shared state was out of reach: it is forgotten later. */

export interface LateForgetting {
  /** @param forget makes the instances forget the payment of this key; rejects if that cannot be done yet */
  add(key: string, forget: () => Promise<void>): void;
  /** Tries again; stops at the first that fails. */
  settle(): Promise<void>;
}

/** Nothing is owed yet. */
export function createLateForgetting(): LateForgetting {
  const owed = new Map<string, () => Promise<void>>();
  return {
    add: (key, forget) => void owed.set(key, forget),
    async settle() {
      for (const [key, forget] of owed) {
        await forget();
        owed.delete(key);
      }
    },
  };
}
