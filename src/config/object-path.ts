/** Reads and changes plain objects and arrays, as YAML and JSON produce them, by path. Changes return a copy. */

/** The path of a setting: names, and indexes of list entries. */
export type SettingPath = readonly (string | number)[];

type PlainObject = Readonly<Record<string, unknown>>;

export const isMapping = (value: unknown): value is PlainObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value at a path, or `undefined`. */
export function valueAt(tree: unknown, path: SettingPath): unknown {
  return path.reduce<unknown>((parent, key) => {
    if (Array.isArray(parent)) return parent[Number(key)];
    return isMapping(parent) && Object.hasOwn(parent, key) ? parent[key] : undefined;
  }, tree);
}

/** The tree with a value at a path of names; a parent that is not a mapping is replaced by one. */
export function withValue(tree: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const mapping = isMapping(tree) ? tree : {};
  return { ...mapping, [name]: withValue(mapping[name], rest, value) };
}

/**
 * What to remove from the tree if the value at this path is invalid: the longest existing prefix of the path that ends
 * with a name. A list entry is removed together with its list, so that the indexes of the other entries stay valid.
 */
export function removablePath(tree: unknown, path: SettingPath): SettingPath {
  if (path.length === 0) return path;
  if (typeof path.at(-1) === 'string' && valueAt(tree, path) !== undefined) return path;
  return removablePath(tree, path.slice(0, -1));
}

/** The tree without the value at a path that `removablePath` returned. */
export function withoutValue(tree: unknown, path: SettingPath): unknown {
  const name = path.at(-1);
  if (name === undefined) return {};
  return changeMapping(tree, path.slice(0, -1), (mapping) =>
    Object.fromEntries(Object.entries(mapping).filter(([key]) => key !== name)),
  );
}

/** Whether `path` is `ancestor` itself or a path below it. */
export const isWithin = (path: SettingPath, ancestor: SettingPath): boolean =>
  ancestor.every((key, index) => key === path[index]);

/** Whether one of the paths contains the other. */
export const pathsOverlap = (one: SettingPath, other: SettingPath): boolean =>
  isWithin(one, other) || isWithin(other, one);

function changeMapping(
  tree: unknown,
  [key, ...rest]: SettingPath,
  change: (mapping: PlainObject) => PlainObject,
): unknown {
  if (key === undefined) return isMapping(tree) ? change(tree) : tree;
  if (Array.isArray(tree))
    return tree.map((item, index) => (index === Number(key) ? changeMapping(item, rest, change) : item));
  return isMapping(tree) ? { ...tree, [key]: changeMapping(tree[key], rest, change) } : tree;
}
