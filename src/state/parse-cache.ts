/** Caches the parsed form of stored values, so that a value is parsed once per change, not once per read. */

import { LRUCache } from 'lru-cache';

/** Bound of the cache, in characters of text. */
const maxCharacters = 4 * 1024 * 1024;

interface ParsedValue<Value> {
  readonly text: string;
  readonly value: Value;
}

/**
 * Wraps a parser with a cache of the last text of each key. To compare two texts is cheaper than to hash a text, which a cache
 * by text would have to do at each read.
 *
 * @param parse a pure function whose results nobody mutates; an error that it throws is not cached
 */
export function createParseCache<Value extends object>(
  parse: (text: string) => Value,
): (key: string, text: string) => Value {
  const cache = new LRUCache<string, ParsedValue<Value>>({
    maxSize: maxCharacters,
    sizeCalculation: ({ text }, key) => key.length + text.length + 1,
  });
  return (key, text) => {
    const cached = cache.get(key);
    if (cached?.text === text) return cached.value;
    const value = parse(text);
    cache.set(key, { text, value });
    return value;
  };
}
