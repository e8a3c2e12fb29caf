/** What the shared state has not taken yet, under names: only the newest counts, and it is told again until it is taken. */

export interface Owed<Debt> {
  /** Owes this, in place of what is owed under the name. */
  add(name: string, debt: Debt): void;
  /** Owes this, and pays it at once if that can be. Never fails. */
  now(name: string, debt: Debt): Promise<void>;
  of(name: string): Debt | undefined;
  size(): number;
  /** Pays what is owed under the name, if anything is. @throws what `pay` throws; it stays owed then */
  settleOf(name: string): Promise<void>;
  /** Pays one after the other, up to the first that fails; the next call begins behind that. @throws what it throws */
  settle(): Promise<void>;
}

/** Emptied when it is paid: the map's old tables would keep it for long (flow/roll.ts). */
interface Box<Debt> {
  debt: Debt | undefined;
}

/** Nothing is owed yet. @param pay tells the state; it may be called again for what it has told already */
export function createOwed<Debt extends object | null>(
  pay: (debt: Debt, name: string) => Promise<void>,
): Owed<Debt> {
  const debts = new Map<string, Box<Debt>>();
  const add = (name: string, debt: Debt) => void debts.set(name, { debt });

  async function settleOf(name: string): Promise<void> {
    const owed = debts.get(name);
    if (owed?.debt === undefined) return;
    debts.delete(name);
    debts.set(name, owed); // at the end: one that cannot be paid does not keep the others from it next time
    await pay(owed.debt, name);
    if (debts.get(name) === owed) debts.delete(name); // what was added meanwhile stays
    owed.debt = undefined;
  }

  return {
    add,
    async now(name, debt) {
      add(name, debt);
      await settleOf(name).catch(() => {}); // it stays owed
    },
    of: (name) => debts.get(name)?.debt,
    size: () => debts.size,
    settleOf,
    async settle() {
      for (const name of [...debts.keys()]) await settleOf(name); // as it is when its turn comes
    },
  };
}
