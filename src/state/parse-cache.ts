/** What stands in the state, parsed once as long as it is read again and again. */

import { LRUCache } from 'lru-cache';

/** How much text is kept with what it says, in characters. */
const maxCharacters = 4 * 1024 * 1024;

/** @param parse of equal texts makes equal values, which nobody changes; what it throws is thrown each time */
export function createParseCache<Value extends object>(
  parse: (text: string) => Value,
): (text: string) => Value {
  const kept = new LRUCache<string, Value>({
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });
  return (text) => {
    const known = kept.get(text);
    if (known) return known;
    const value = parse(text);
    kept.set(text, value);
    return value;
  };
}
