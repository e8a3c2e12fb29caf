/** A cache for short texts that repeat often, such as the names of header fields. */

const maxNames = 500;
const maxNameLength = 64;

/**
 * Remembers what `compute` returns for at most twice 500 names. A name in use stays cached, however many others are received: if
 * the cache is full, only the names since used again are kept.
 */
export function cacheByName<Value extends object | string>(
  compute: (name: string) => Value,
): (name: string) => Value {
  let names = new Map<string, Value>();
  let earlierNames: ReadonlyMap<string, Value> = names;
  return (name) => {
    const known = names.get(name);
    if (known !== undefined) return known;
    const value = earlierNames.get(name) ?? compute(name);
    if (name.length > maxNameLength) return value;
    if (names.size >= maxNames) {
      earlierNames = names;
      names = new Map();
    }
    names.set(name, value);
    return value;
  };
}
