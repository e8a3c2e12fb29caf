/** Rewrites the links of a text in JSON and keeps every other character. */

import type { LinkMapper } from './link-mapper.ts';

/**
 * Replaces the links that the mapper changes.
 *
 * A link is a member of an object called `_links`, at any depth, or an element of such a member: an object with `href`, or a text.
 * The links `scaRedirect` and `scaOAuth` lead the payer to the bank's own pages.
 *
 * @param json valid JSON
 * @returns the same text if no link changes
 */
export const rewriteLinks = (json: string, mapper: LinkMapper): string =>
  replaceLinks(json, linksIn(json, arrays.plain), mapper);

/**
 * Replaces the `href` of an object that is a link itself, as in the `Location` of a real bank.
 *
 * @param relation the name of the header field
 */
export const rewriteLinkObject = (json: string, mapper: LinkMapper, relation: string): string =>
  replaceLinks(json, linksIn(json, arrays.link, relation), mapper);

/** Most bodies have no link, and need not be parsed. The name may be written with escapes. */
export const mayHaveLinks = (json: Buffer) => json.includes(linksName) || json.includes(escapeStart);
const linksName = Buffer.from('"_links"');
const escapeStart = Buffer.from('\\u');

function replaceLinks(text: string, links: readonly Link[], mapper: LinkMapper): string {
  const pieces: string[] = [];
  let copied = 0;
  for (const { start, end, relation, isForPayer } of links) {
    const url = decoded(text, start, end);
    const rewritten = isForPayer ? mapper.payerLink(url) : mapper.link(url, relation);
    if (rewritten === undefined || rewritten === url) continue;
    pieces.push(text.slice(copied, start), JSON.stringify(rewritten));
    copied = end;
  }
  return copied === 0 ? text : pieces.join('') + text.slice(copied);
}

/** A link in the text. */
interface Link {
  /** The position of its URL, quotation marks included. */
  readonly start: number;
  readonly end: number;
  /** Its name in `_links`. */
  readonly relation: string;
  readonly isForPayer: boolean;
}

/** What an object or an array contains: other members, a map of links, a link, a link for the payer, or a part of that one. */
type Role = 'plain' | 'links' | 'link' | 'payer' | 'insidePayer';

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
  insidePayer: { isObject, role: 'insidePayer' },
});
const objects = containersOf(true);
const arrays = containersOf(false);

/** Character codes. */
const [quote, comma, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The links in a text known to be JSON. One pass, no recursion.
 *
 * @param around         the container that encloses the text
 * @param relationAround the relation of that container, if it is a link
 */
function linksIn(text: string, around: Container, relationAround = ''): readonly Link[] {
  let container = around;
  let relation = relationAround;
  const found: Link[] = [];
  const enclosing: Container[] = [];
  /** Of the key of the current member, if the container is an object; otherwise -1. */
  let keyStart = -1;
  let keyEnd = -1;

  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    switch (code) {
      case openBrace:
      case openBracket: {
        if (container.role === 'links' && keyStart >= 0) relation = decoded(text, keyStart, keyEnd);
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
        } else if (container.role === 'links' && keyStart >= 0) {
          const isForPayer = roleOf('links', text, keyStart, keyEnd) === 'payer';
          found.push({ start: at, end, relation: decoded(text, keyStart, keyEnd), isForPayer });
        } else if (isUrlOfLink(container, text, keyStart, keyEnd)) {
          found.push({ start: at, end, relation, isForPayer: container.role === 'payer' });
        }
        at = end - 1;
      }
    }
  }
  return found;
}

/** Whether a string is the `href` of a link, or a link in a list of links. */
const isUrlOfLink = (
  { isObject, role }: Container,
  text: string,
  keyStart: number,
  keyEnd: number,
): boolean => (role === 'link' || role === 'payer') && (!isObject || isText(text, keyStart, keyEnd, 'href'));

/** The role of a member's value. @param start @param end the position of the member's key */
function roleOf(parent: Role, text: string, start: number, end: number): Role {
  if (parent === 'payer' || parent === 'insidePayer') return 'insidePayer';
  if (parent === 'links') {
    const isPayers = isText(text, start, end, 'scaRedirect') || isText(text, start, end, 'scaOAuth');
    return isPayers ? 'payer' : 'link';
  }
  return isText(text, start, end, '_links') ? 'links' : 'plain';
}

/** Whether the string at this position, quotation marks included, has this value. It may be written with escapes. */
const isText = (text: string, start: number, end: number, value: string): boolean =>
  end - start === value.length + 2 ? text.startsWith(value, start + 1) : decoded(text, start, end) === value;

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

function decoded(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
}
