/** What the state has not taken yet, and is told again until it does. */

export interface Owed {
  /** Does it now, or later if that fails; what is owed under this name already is replaced. Never fails. */
  now(name: string, act: () => Promise<void>): Promise<void>;
  /** Does what is owed; what fails stays owed. */
  settle(): Promise<void>;
}

export function createOwed(): Owed {
  const acts = new Map<string, () => Promise<void>>();

  async function perform(name: string): Promise<void> {
    const act = acts.get(name);
    await act?.();
    if (acts.get(name) === act) acts.delete(name);
  }

  return {
    async now(name, act) {
      acts.set(name, act);
      await perform(name).catch(() => {}); // it stays owed
    },
    async settle() {
      for (const name of [...acts.keys()]) await perform(name).catch(() => {}); // as it is when its turn comes
    },
  };
}
