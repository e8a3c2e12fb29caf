/** How settings are addressed. */

/** Where a setting stands: names, and the index of an entry in a list. */
export type SettingPath = readonly (string | number)[];

// MERGED HEADER (rewrite or remove):
/* Plain trees of mappings and lists, as YAML and JSON give them: reading and changing them by path, by copy. */

export type Mapping = Readonly<Record<string, unknown>>;

export const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What stands at a path, or `undefined`. */
export function valueAt(tree: unknown, path: SettingPath): unknown {
  return path.reduce<unknown>((at, key) => {
    if (Array.isArray(at)) return at[Number(key)];
    return isMapping(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }, tree);
}

/** The tree with a value at a path of names; whatever is no mapping on the way becomes one. */
export function withValue(tree: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const mapping = isMapping(tree) ? tree : {};
  return { ...mapping, [name]: withValue(mapping[name], rest, value) };
}

/**
 * The longest beginning of a path that exists and is named: what to leave out if something is wrong at the path.
 *
 * An entry of a list goes with its whole list, so that no other entry changes its index.
 */
export function removablePath(tree: unknown, path: SettingPath): SettingPath {
  if (path.length === 0) return path;
  if (typeof path.at(-1) === 'string' && valueAt(tree, path) !== undefined) return path;
  return removablePath(tree, path.slice(0, -1));
}

/** The tree without what stands at a path that `removable` gave. */
export function withoutValue(tree: unknown, path: SettingPath): unknown {
  const name = path.at(-1);
  if (name === undefined) return {};
  return withMapping(tree, path.slice(0, -1), (mapping) =>
    Object.fromEntries(Object.entries(mapping).filter(([key]) => key !== name)),
  );
}

/** Does the path lead to what stands at the outer one, or to something in it? */
export const isWithin = (path: SettingPath, outer: SettingPath): boolean =>
  outer.every((key, index) => key === path[index]);

/** Is one of these paths the other one, or around it? */
export const pathsOverlap = (one: SettingPath, other: SettingPath): boolean =>
  isWithin(one, other) || isWithin(other, one);

function withMapping(
  tree: unknown,
  [key, ...rest]: SettingPath,
  change: (mapping: Mapping) => Mapping,
): unknown {
  if (key === undefined) return isMapping(tree) ? change(tree) : tree;
  if (Array.isArray(tree))
    return tree.map((item, at) => (at === Number(key) ? withMapping(item, rest, change) : item));
  return isMapping(tree) ? { ...tree, [key]: withMapping(tree[key], rest, change) } : tree;
}
