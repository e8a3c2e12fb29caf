/** Rewrites the links of a JSON body and keeps every other byte. */

import { isUtf8 } from 'node:buffer';
import type { ToPublicUrl } from './url-mapper.ts';

/**
 * Replaces the `href` of every link that `toPublicUrl` maps to another URL.
 *
 * A link is a member of an object called `_links`, at any depth, or an element of such a member. The links `scaRedirect`
 * and `scaOAuth` lead the payer to the bank's own pages and are never changed.
 *
 * @param onParsed called with the parsed body if a link changes
 * @returns the same Buffer if no link changes, or if the body is not JSON in UTF-8 (RFC 8259 section 8.1)
 */
export function rewriteLinks(
  json: Buffer,
  toPublicUrl: ToPublicUrl,
  onParsed?: (body: unknown) => void,
): Buffer {
  if (!mayHoldLinks(json) || !isUtf8(json)) return json;
  const text = json.toString();
  const parsed = parse(text);
  if (parsed === undefined) return json;

  const pieces: string[] = [];
  let copied = 0;
  for (const { start, end } of linkTokens(text)) {
    const url = decoded(text, { start, end });
    const rewritten = toPublicUrl(url);
    if (rewritten === undefined || rewritten === url) continue;
    pieces.push(text.slice(copied, start), JSON.stringify(rewritten));
    copied = end;
  }
  if (copied === 0) return json;
  onParsed?.(parsed);
  return Buffer.from(pieces.join('') + text.slice(copied));
}

/** Most bodies have no link and need not be parsed. `href` may be written with escapes. */
const mayHoldLinks = (json: Buffer) => json.includes(hrefName) || json.includes(escapeStart);
const hrefName = Buffer.from('"href"');
const escapeStart = Buffer.from('\\u');

/** `JSON.parse` is not recursive: nesting of any depth is safe. @returns `undefined` if the text is not JSON */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The position of a string in the text, quotation marks included. */
interface Token {
  readonly start: number;
  readonly end: number;
}

/** What an object, or each element of an array, is: a map of links, one link, a link for the payer, or something else. */
type Role = 'plain' | 'links' | 'link' | 'payer';

interface Container {
  readonly isObject: boolean;
  readonly role: Role;
}

/** One object for each kind: a body has dozens of containers. */
const containersOf = (isObject: boolean): Readonly<Record<Role, Container>> => ({
  plain: { isObject, role: 'plain' },
  links: { isObject, role: 'links' },
  link: { isObject, role: 'link' },
  payer: { isObject, role: 'payer' },
});
const objects = containersOf(true);
const arrays = containersOf(false);

/** Character codes. */
const [quote, comma, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

/** The strings that are the `href` of a link, in a text known to be JSON. One pass, no recursion. */
function linkTokens(text: string): readonly Token[] {
  const found: Token[] = [];
  const enclosing: Container[] = [];
  let container = arrays.plain;
  /** Of the key of the current member, if the container is an object; otherwise -1. */
  let keyStart = -1;
  let keyEnd = -1;

  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    switch (code) {
      case openBrace:
      case openBracket: {
        const role = keyStart < 0 ? container.role : roleOf(container.role, text, keyStart, keyEnd);
        enclosing.push(container);
        container = (code === openBrace ? objects : arrays)[role];
        keyStart = -1;
        break;
      }
      case closeBrace:
      case closeBracket:
        container = enclosing.pop() ?? container;
        break;
      case comma:
        keyStart = -1;
        break;
      case quote: {
        const end = endOfString(text, at);
        if (container.isObject && keyStart < 0) {
          keyStart = at;
          keyEnd = end;
        } else if (container.role === 'link' && keyStart >= 0 && isText(text, keyStart, keyEnd, 'href')) {
          found.push({ start: at, end });
        }
        at = end - 1;
      }
    }
  }
  return found;
}

/** The role of a member's value. @param start @param end the position of the member's key */
function roleOf(parent: Role, text: string, start: number, end: number): Role {
  if (parent === 'payer') return 'payer';
  if (parent === 'links') {
    const isPayers = isText(text, start, end, 'scaRedirect') || isText(text, start, end, 'scaOAuth');
    return isPayers ? 'payer' : 'link';
  }
  return isText(text, start, end, '_links') ? 'links' : 'plain';
}

/** Whether the string at this position, quotation marks included, has this value. It may be written with escapes. */
const isText = (text: string, start: number, end: number, value: string): boolean =>
  end - start === value.length + 2
    ? text.startsWith(value, start + 1)
    : decoded(text, { start, end }) === value;

/** The index after a string's closing quotation mark, which is the next one that an even number of backslashes precedes. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === backslash) backslashes++;
  return backslashes % 2 === 1;
}

const backslash = 0x5c;

function decoded(text: string, { start, end }: Token): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
}
