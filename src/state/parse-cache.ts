/** Caches the parsed form of stored text, so that text that is read repeatedly is parsed once. */

import { LRUCache } from 'lru-cache';

/** Bound of the cache, in characters of text. */
const maxCharacters = 4 * 1024 * 1024;

/**
 * Wraps a parser with a cache.
 *
 * @param parse a pure function whose results nobody mutates; an error that it throws is not cached
 */
export function createParseCache<Value extends object>(
  parse: (text: string) => Value,
): (text: string) => Value {
  const cache = new LRUCache<string, Value>({
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });
  return (text) => {
    const cached = cache.get(text);
    if (cached) return cached;
    const value = parse(text);
    cache.set(text, value);
    return value;
  };
}
