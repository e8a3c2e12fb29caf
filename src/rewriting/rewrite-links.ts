/** Rewrites the links of a JSON body and leaves every other byte as it stands. */

import { isUtf8 } from 'node:buffer';
import type { ToPublicUrl } from './url-mapper.ts';

/**
 * The body with the `href` of every link changed that `toPublic` gives another address for; the very same
 * Buffer if there is none, or if the body is not JSON in UTF-8 (RFC 8259 section 8.1).
 *
 * A link is a member of an object called `_links`, at any depth, or an element of such a member. The links
 * `scaRedirect` and `scaOAuth` lead the payer to the bank's own pages and are never touched.
 */
export function rewriteLinks(json: Buffer, toPublic: ToPublicUrl): Buffer {
  if (!isUtf8(json)) return json;
  const text = json.toString();
  if (!mayHoldLinks(text) || !isJson(text)) return json;

  const pieces: string[] = [];
  let copied = 0;
  for (const { start, end } of linkTokens(text)) {
    const address: unknown = JSON.parse(text.slice(start, end));
    const rewritten = typeof address === 'string' ? toPublic(address) : undefined;
    if (rewritten === undefined || rewritten === address) continue;
    pieces.push(text.slice(copied, start), JSON.stringify(rewritten));
    copied = end;
  }
  return copied === 0 ? json : Buffer.from(pieces.join('') + text.slice(copied));
}

/** Most answers hold no link: they need not be parsed. The word may be written with escapes. */
const mayHoldLinks = (text: string) => text.includes('"href"') || text.includes('\\u');

/** The platform's parser keeps no call stack, so depth does not hurt it. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Where a string stands in the text, quotation marks included. */
interface Token {
  readonly start: number;
  readonly end: number;
}

/** What an object, or every element of an array, is: a map of links, one link, a link of the payer's, or neither. */
type Role = 'plain' | 'links' | 'link' | 'payer';

interface Container {
  readonly isObject: boolean;
  readonly role: Role;
}

/** The strings that are the `href` of a link, in a text known to be JSON. One pass, no recursion. */
function linkTokens(text: string): readonly Token[] {
  const found: Token[] = [];
  const enclosing: Container[] = [];
  let here: Container = { isObject: false, role: 'plain' };
  let key: string | undefined; // of the member of `here` that is being read, if `here` is an object

  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '{':
      case '[':
        enclosing.push(here);
        here = { isObject: text[at] === '{', role: here.isObject ? roleOf(here.role, key) : here.role };
        key = undefined;
        break;
      case '}':
      case ']':
        here = enclosing.pop() ?? here;
        break;
      case ',':
        key = undefined;
        break;
      case '"': {
        const token = { start: at, end: endOfString(text, at) };
        if (here.isObject && key === undefined) key = decoded(text, token);
        else if (here.role === 'link' && key === 'href') found.push(token);
        at = token.end - 1;
      }
    }
  }
  return found;
}

function roleOf(parent: Role, key: string | undefined): Role {
  if (parent === 'payer') return 'payer';
  if (parent === 'links') return key === 'scaRedirect' || key === 'scaOAuth' ? 'payer' : 'link';
  return key === '_links' ? 'links' : 'plain';
}

/** The index after a string's closing quotation mark: the next one behind an even number of backslashes. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

function decoded(text: string, { start, end }: Token): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
}
