/** What the shared state has not taken yet, under names: only the newest counts, and it is told again until it is taken. */

export interface PendingWrites<Debt> {
  /** Owes this, in place of what is owed under the name. */
  add(name: string, debt: Debt): void;
  /** Owes this, and pays it at once if that can be. Never fails. */
  addAndFlush(name: string, debt: Debt): Promise<void>;
  get(name: string): Debt | undefined;
  size(): number;
  /** Pays what is owed under the name, if anything is. @throws what `pay` throws; it stays owed then */
  flushKey(name: string): Promise<void>;
  /** Pays one after the other, up to the first that fails; the next call begins behind that. @throws what it throws */
  flush(): Promise<void>;
}

/** Emptied when it is paid: the map's old tables would keep it for long (flow/roll.ts). */
interface Slot<Debt> {
  value: Debt | undefined;
}

/** Nothing is owed yet. @param write tells the state; it may be called again for what it has told already */
export function createPendingWrites<Debt extends object | null>(
  write: (debt: Debt, name: string) => Promise<void>,
): PendingWrites<Debt> {
  const slots = new Map<string, Slot<Debt>>();
  const add = (name: string, debt: Debt) => void slots.set(name, { value: debt });

  async function settleOf(name: string): Promise<void> {
    const owed = slots.get(name);
    if (owed?.value === undefined) return;
    slots.delete(name);
    slots.set(name, owed); // at the end: one that cannot be paid does not keep the others from it next time
    await write(owed.value, name);
    if (slots.get(name) === owed) slots.delete(name); // what was added meanwhile stays
    owed.value = undefined;
  }

  return {
    add,
    async addAndFlush(name, debt) {
      add(name, debt);
      await settleOf(name).catch(() => {}); // it stays owed
    },
    get: (name) => slots.get(name)?.value,
    size: () => slots.size,
    flushKey: settleOf,
    async flush() {
      for (const name of [...slots.keys()]) await settleOf(name); // as it is when its turn comes
    },
  };
}
