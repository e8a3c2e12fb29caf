/**
 * One value for each combination of labels, found by one Map lookup per label. prom-client concatenates the labels into a
 * key for each count, which costs more than all other telemetry of a request.
 */

/** A value for each label name. */
export type Labels = Readonly<Record<string, string>>;

export interface LabelledValues<Value> {
  /** The value of a combination; the same object at each call. */
  of(labels: Labels): Value;
  all(): readonly { readonly labels: Labels; readonly value: Value }[];
}

interface Branch<Value> {
  readonly children: Map<string, Branch<Value>>;
  value?: Value;
}

export function createLabelledValues<Value>(
  labelNames: readonly string[],
  createValue: () => Value,
): LabelledValues<Value> {
  const root: Branch<Value> = { children: new Map() };
  const entries: { readonly labels: Labels; readonly value: Value }[] = [];
  return {
    of(labels) {
      let branch = root;
      for (const name of labelNames) {
        const label = labels[name] ?? '';
        let child = branch.children.get(label);
        if (!child) {
          child = { children: new Map() };
          branch.children.set(label, child);
        }
        branch = child;
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
