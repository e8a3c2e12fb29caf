/**
 * What is counted for each combination of labels. A combination is found by a step for each label: a text of all of them,
 * as prom-client makes for every count, costs more than everything else that is told of a request.
 */

/** A value for each label. */
export type Labels = Readonly<Record<string, string>>;

export interface LabelledValues<Value> {
  /** The tally of a combination; the same one each time. */
  of(labels: Labels): Value;
  /** Of every combination that there was. */
  all(): readonly { readonly labels: Labels; readonly value: Value }[];
}

interface Branch<Value> {
  readonly children: Map<string, Branch<Value>>;
  value?: Value;
}

/** @param names of the labels @param createValue makes the tally of a combination that was not there before */
export function createLabelledValues<Value>(
  names: readonly string[],
  createValue: () => Value,
): LabelledValues<Value> {
  const root: Branch<Value> = { children: new Map() };
  const entries: { readonly labels: Labels; readonly value: Value }[] = [];
  return {
    of(labels) {
      let branch = root;
      for (const name of names) {
        const value = labels[name] ?? '';
        const next = branch.children.get(value) ?? { children: new Map() };
        branch.children.set(value, next);
        branch = next;
      }
      if (branch.value !== undefined) return branch.value;
      const value = createValue();
      branch.value = value;
      entries.push({ labels, value });
      return value;
    },
    all: () => entries,
  };
}
