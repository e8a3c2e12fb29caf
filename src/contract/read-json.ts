/** Reads a JSON body within limits, and reports what `JSON.parse` does not: repeated keys, a byte order mark, depth. */

import { isUtf8 } from 'node:buffer';
import type { DeviationList } from './deviation.ts';
import { fieldOf } from './payment-rules.ts';

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
  const shape = scan(body);
  if (shape.isTooComplex) return void list.add('harmful', 'too-complex', root, 'not-judged');
  if (!isUtf8(body)) return void list.add('harmful', 'encoding', root, 'refused');
  const hasMark = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  if (hasMark) list.add('harmful', 'byte-order-mark', root, 'refused');
  const text = body.toString('utf8', hasMark ? 3 : 0);
  const parsed = parse(text);
  if (!parsed) return void list.add('harmful', 'json', root, 'refused');
  const members = countMembers(parsed.value, true);
  if (members < 0) return void list.add('harmful', 'too-complex', root, 'not-judged');
  if (shape.hasSurrogate && !isWellFormed(parsed.value)) {
    list.add('notable', 'lone-surrogate', root, 'may-be-refused');
  }
  return {
    value: parsed.value,
    repeatedKeys: members === shape.members ? noRepetitions : findRepeatedKeys(text),
  };
}

const noRepetitions: readonly (readonly string[])[] = [];

interface Shape {
  readonly members: number;
  readonly isTooComplex: boolean;
  /** Whether an escape sequence has half of a surrogate pair. */
  readonly hasSurrogate: boolean;
}

const quote = 0x22;
const backslash = 0x5c;

/** Counts colons, commas and brackets outside of strings, without parsing the body. */
function scan(body: Buffer): Shape {
  let members = 0;
  let values = 1;
  let depth = 0;
  let hasSurrogate = false;
  for (let at = 0; at < body.length; at++) {
    switch (body[at]) {
      case quote:
        for (at++; at < body.length && body[at] !== quote; at++) {
          if (body[at] !== backslash) continue;
          at++;
          if (body[at] === 0x75 && ((body[at + 1] ?? 0) | 0x20) === 0x64) hasSurrogate = true; // \ud
        }
        break;
      case 0x3a: // :
        members++;
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
    if (depth > limits.depth || values > limits.values) return { members, isTooComplex: true, hasSurrogate };
  }
  return { members, isTooComplex: false, hasSurrogate };
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/** The members of all objects; negative if an object or an array is too large to be judged. */
function countMembers(value: unknown, isRoot: boolean): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return value.length > limits.itemsPerArray ? tooMany : countInItems(value);
  const keys = Object.keys(value);
  if (keys.length > limits.keysPerObject) return tooMany;
  let members = keys.length;
  for (const key of keys) {
    const member = fieldOf(value, key);
    if (typeof member !== 'object') continue;
    const isBulk = isRoot && key === 'payments' && Array.isArray(member);
    members += isBulk ? countInItems(member) : countMembers(member, false);
  }
  return members;
}

const tooMany = Number.NEGATIVE_INFINITY;

function countInItems(items: readonly unknown[]): number {
  let members = 0;
  for (const item of items) members += countMembers(item, false);
  return members;
}

/** Whether all surrogates in keys and texts are pairs. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member));
}

/** Reads valid JSON token by token. Called only if a key is repeated. */
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
