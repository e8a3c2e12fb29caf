/** Numbers for texts that occur in many records: names of this program and of its configuration, and texts of errors. */

export interface NameTable {
  /** At least 1; 0 for `undefined` and for the empty text. */
  idOf(name: string | undefined): number;
  nameOf(id: number): string;
  /** Whether values of this name are milliseconds. */
  isTime(id: number): boolean;
  /** All ids are smaller. */
  size(): number;
  /** Whether no more texts should be added; the table itself refuses none. */
  isFull(): boolean;
}

/** @param maxNames the number of texts from which on the table is full */
export function createNameTable(maxNames = 20_000): NameTable {
  const ids = new Map<string, number>();
  const names = [''];
  const areTimes = [false];
  return {
    idOf(name) {
      if (name === undefined || name === '') return 0;
      const known = ids.get(name);
      if (known !== undefined) return known;
      const id = names.push(name) - 1;
      ids.set(name, id);
      areTimes[id] = name.endsWith('Ms');
      return id;
    },
    nameOf: (id) => names[id] ?? '',
    isTime: (id) => areTimes[id] === true,
    size: () => names.length,
    isFull: () => names.length >= maxNames,
  };
}
