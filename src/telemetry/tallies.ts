/**
 * What is counted for each combination of labels. A combination is found by a step for each label: a text of all of them,
 * as prom-client makes for every count, costs more than everything else that is told of a request.
 */

/** A value for each label. */
export type Labels = Readonly<Record<string, string>>;

export interface Tallies<Tally> {
  /** The tally of a combination; the same one each time. */
  of(labels: Labels): Tally;
  /** Of every combination that there was. */
  all(): readonly { readonly labels: Labels; readonly tally: Tally }[];
}

interface Branch<Tally> {
  readonly further: Map<string, Branch<Tally>>;
  tally?: Tally;
}

/** @param names of the labels @param begin makes the tally of a combination that was not there before */
export function createTallies<Tally>(names: readonly string[], begin: () => Tally): Tallies<Tally> {
  const root: Branch<Tally> = { further: new Map() };
  const kept: { readonly labels: Labels; readonly tally: Tally }[] = [];
  return {
    of(labels) {
      let branch = root;
      for (const name of names) {
        const value = labels[name] ?? '';
        const next = branch.further.get(value) ?? { further: new Map() };
        branch.further.set(value, next);
        branch = next;
      }
      if (branch.tally !== undefined) return branch.tally;
      const tally = begin();
      branch.tally = tally;
      kept.push({ labels, tally });
      return tally;
    },
    all: () => kept,
  };
}
