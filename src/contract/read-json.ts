/** Reads a JSON body within limits, and reports what `JSON.parse` does not: repeated keys, a byte order mark, depth. */

import { isUtf8 } from 'node:buffer';
import type { DeviationList } from './deviation.ts';

/** Larger bodies are not judged: no valid body is as large. */
export const limits = {
  bytes: 1_048_576,
  depth: 32,
  /** Values, members of objects, and items of arrays. */
  values: 100_000,
  keysPerObject: 256,
  /** Of each array except the payments of a bulk. */
  itemsPerArray: 1_000,
} as const;

export interface JsonBody {
  readonly value: unknown;
  /** Where an object has a key twice: the segments of its path. */
  readonly repeatedKeys: readonly (readonly string[])[];
}

/**
 * Parses a body of JSON.
 *
 * @param root path of the body in the message
 * @returns `undefined` if it cannot be judged by a schema; the list has the reason
 */
export function readJson(body: Buffer, root: string, list: DeviationList): JsonBody | undefined {
  if (body.length > limits.bytes) return void list.add('harmful', 'too-large', root, 'not-judged');
  if (!isUtf8(body)) return void list.add('harmful', 'encoding', root, 'refused');
  const hasMark = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  if (hasMark) list.add('harmful', 'byte-order-mark', root, 'refused');
  const text = body.toString('utf8', hasMark ? 3 : 0);
  if (body.length > maxUnscanned && isTooComplex(body)) {
    return void list.add('harmful', 'too-complex', root, 'not-judged');
  }
  const parsed = parse(text);
  if (!parsed) return void list.add('harmful', 'json', root, 'refused');
  const { value } = parsed;
  const keys = countKeys(value, 1);
  if (keys < 0) return void list.add('harmful', 'too-complex', root, 'not-judged');
  const hasEscapes = text.includes('\\');
  if (hasEscapes && !isWellFormed(value)) list.add('notable', 'lone-surrogate', root, 'may-be-refused');
  return { value, repeatedKeys: hasAllKeys(value, keys, text, hasEscapes) ? none : findRepeatedKeys(text) };
}

/** A larger body may contain so many values that it must not be parsed. */
const maxUnscanned = 64 * 1024;

const none: readonly (readonly string[])[] = [];

const quote = 0x22;
const backslash = 0x5c;

/** Whether the body has too many values, or is too deep, to be parsed. */
function isTooComplex(body: Buffer): boolean {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < body.length; at++) {
    switch (body[at]) {
      case quote:
        for (at++; at < body.length && body[at] !== quote; at++) if (body[at] === backslash) at++;
        break;
      case 0x2c: // ,
        values++;
        break;
      case 0x7b: // {
      case 0x5b: // [
        depth++;
        values++;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
        break;
    }
    if (depth > limits.depth || values > limits.values) return true;
  }
  return false;
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/**
 * Whether no key was lost when the text was parsed. Can be false without a loss if strings contain escape sequences and colons:
 * `findRepeatedKeys` then decides.
 */
function hasAllKeys(value: unknown, keys: number, text: string, hasEscapes: boolean): boolean {
  // The text has a colon for each key, and those in its strings.
  const colons = countColons(text);
  return colons === keys || (!hasEscapes && colons === keys + countColonsInStrings(value));
}

function countColons(text: string): number {
  let count = 0;
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) count++;
  return count;
}

function countColonsInStrings(value: unknown): number {
  if (typeof value === 'string') return countColons(value);
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return value.reduce((sum, item) => sum + countColonsInStrings(item), 0);
  return Object.entries(value).reduce(
    (sum, [key, member]) => sum + countColons(key) + countColonsInStrings(member),
    0,
  );
}

/**
 * The keys of all objects in a value.
 *
 * @param depth 1 for the whole body
 * @returns a negative number if the value is too deep, or an object or an array is too large to be judged
 */
function countKeys(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth > limits.depth) return tooMany;
  if (Array.isArray(value))
    return value.length > limits.itemsPerArray ? tooMany : countKeysInItems(value, depth);
  let keys = 0;
  let inner = 0;
  const record = value as Readonly<Record<string, unknown>>; // any object from JSON.parse
  for (const key in record) {
    if (++keys > limits.keysPerObject) return tooMany;
    const member = record[key];
    const isBulk = depth === 1 && key === 'payments' && Array.isArray(member);
    inner += isBulk ? countKeysInItems(member, depth + 1) : countKeys(member, depth + 1);
  }
  return keys + inner;
}

const tooMany = Number.NEGATIVE_INFINITY;

function countKeysInItems(items: readonly unknown[], depth: number): number {
  let keys = 0;
  for (const item of items) keys += countKeys(item, depth + 1);
  return keys;
}

/** Whether all surrogates in keys and texts are pairs. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member));
}

/** Reads valid JSON token by token, which is slow. */
function findRepeatedKeys(text: string): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  const open: { readonly keys: Set<string> | undefined; segment: string }[] = [];
  let key: string | undefined;
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]/g)) {
    const innermost = open.at(-1);
    switch (token) {
      case '{':
        open.push({ keys: new Set(), segment: '' });
        break;
      case '[':
        open.push({ keys: undefined, segment: '0' });
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case ':':
        if (!innermost?.keys || key === undefined) break;
        if (innermost.keys.has(key)) found.push(open.slice(0, -1).map(({ segment }) => segment));
        innermost.keys.add(key);
        innermost.segment = key;
        break;
      case ',':
        break;
      default:
        key = JSON.parse(token);
    }
    if (found.length === maxRepetitions) break;
  }
  return found;
}

const maxRepetitions = 50;
