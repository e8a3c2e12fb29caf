/**
 * Reads the content of a response by its bytes, not by its label: banks send JSON as `text/plain`, XML as JSON, and either one in
 * UTF-16, with a byte order mark, or in the character encoding of their host. Never throws: content that cannot be read is a result.
 */

import { SaxesParser } from 'saxes';
import { headerValue } from '../pis/headers.ts';
import { cacheByName } from '../pis/name-cache.ts';
import { isId } from '../pis/operations.ts';
import { codingsOf, decodeBody, isEncoded, maxDecodedBytes } from './content-coding.ts';
import type { PisResponse } from './messages.ts';

export type Content = (
  | { readonly kind: 'json'; readonly json: unknown }
  | { readonly kind: 'xml'; readonly leaves: Leaves }
  | { readonly kind: 'empty' }
  /** A short reason without a part of the content, such as `charset x-foo`. */
  | { readonly kind: 'unreadable'; readonly why: string }
) & {
  /** The decoded body; `undefined` if it cannot be decoded, or was read before. */
  readonly text: string | undefined;
};

/** The texts of the XML elements without children that the gateway looks for, by local name. */
type Leaves = ReadonlyMap<string, readonly string[]>;

/**
 * The content of a response. In parsed JSON, a `paymentId` that is a number is a text with its digits.
 *
 * @returns a promise only if the body has a content coding; it never rejects
 */
export function contentOf(
  response: Pick<PisResponse, 'json' | 'headers' | 'body'>,
): Content | Promise<Content> {
  const { json } = response;
  return json === undefined ? contentOfBody(response) : { kind: 'json', json, text: undefined };
}

/** The content of the present body, whose links the gateway may have rewritten after its JSON was parsed. */
export function contentOfBody({
  headers,
  body,
}: Pick<PisResponse, 'headers' | 'body'>): Content | Promise<Content> {
  const charset = charsetOf(headerValue(headers, 'content-type') ?? '');
  if (!isEncoded({ headers })) return read(body, charset);
  const why = `content coding ${codingsOf(headers).map(plain).join(', ')}`;
  return decodeBody({ headers, body, environment: '' }).then(
    (decoded) => (decoded ? read(decoded, charset) : unreadable(why)),
    () => unreadable(`${why}: damaged, or larger than ${maxDecodedBytes} bytes`),
  );
}

/** The parsed JSON of a response; `undefined` if it is not JSON or cannot be read. */
export async function jsonOf(response: PisResponse): Promise<unknown> {
  const content = await contentOf(response);
  return content.kind === 'json' ? content.json : undefined;
}

/** A member of the JSON object, if it is a text. */
function textMember(content: Content, name: string): string | undefined {
  if (content.kind !== 'json') return undefined;
  const value = memberOf(content.json, name);
  return typeof value === 'string' ? value : undefined;
}

/** An own member of a JSON object. */
export const memberOf = (json: unknown, name: string): unknown =>
  typeof json === 'object' && json !== null ? Object.getOwnPropertyDescriptor(json, name)?.value : undefined;

/** The URL of a link. Some banks write it as a text, without an object around it. */
export function hrefOf(link: unknown): string | undefined {
  const href = typeof link === 'string' ? link : memberOf(link, 'href');
  return typeof href === 'string' ? href : undefined;
}

/** The ids in a list of authorisations. Early files of 1.3.6 name those of cancellations `cancellationIds`. */
export function authorisationIdsIn(json: unknown): readonly string[] {
  const lists = [memberOf(json, 'authorisationIds'), memberOf(json, 'cancellationIds')];
  const ids: readonly unknown[] = lists.filter((list) => Array.isArray(list)).flat();
  return ids.filter((id) => typeof id === 'string').filter(isId);
}

/**
 * The status of a payment: `transactionStatus` of JSON, whether or not it is a code of ISO 20022, or that of pain.002. If a report has
 * no status of its group, it is that of all its payments, or of all its transactions.
 *
 * @returns `undefined` in any doubt, such as several different statuses
 */
export function transactionStatusIn(content: Content): string | undefined {
  if (content.kind !== 'xml') return shortCode(textMember(content, 'transactionStatus'));
  for (const name of ['transactionStatus', 'GrpSts', 'PmtInfSts', 'TxSts']) {
    const values = content.leaves.get(name) ?? [];
    const [code] = values;
    if (code === undefined) continue;
    return values.every((value) => value === code) && statusCode.test(code) ? code : undefined;
  }
  return undefined;
}

const statusCode = /^[A-Z0-9]{1,4}$/;

/** The `scaStatus` of an authorisation. */
export const scaStatusIn = (content: Content): string | undefined =>
  shortCode(content.kind === 'xml' ? content.leaves.get('scaStatus')?.[0] : textMember(content, 'scaStatus'));

/** Long texts, and those with control characters or lone surrogates, are no status: they would be stored, and sent to TPPs. */
export const shortCode = (text: string | undefined): string | undefined =>
  text !== undefined && /^\P{C}{1,35}$/u.test(text) ? text : undefined;

function read(body: Buffer, charset: string | undefined): Content {
  const text = textOf(body, charset);
  if (typeof text !== 'string') return text;
  switch (firstCharacter(text)) {
    case undefined:
      return { kind: 'empty', text };
    case '<':
      return readXml(text);
    case '{':
    case '[':
      return readJson(text, 'damaged or cut JSON');
    default:
      return readJson(text, 'not JSON or XML');
  }
}

/** An encoding that the first bytes of a body show, and the length of its byte order mark. */
export interface UnicodeEncoding {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be';
  readonly start: number;
}

/** @returns `undefined` if the first bytes do not show the encoding: JSON and XML begin with a character of ASCII */
export function unicodeEncodingOf(body: Buffer): UnicodeEncoding | undefined {
  const first = body[0];
  const second = body[1];
  if (first === 0xef && second === 0xbb && body[2] === 0xbf) return { encoding: 'utf-8', start: 3 };
  if (first === 0xff && second === 0xfe) return { encoding: 'utf-16le', start: 2 };
  if (first === 0xfe && second === 0xff) return { encoding: 'utf-16be', start: 2 };
  if (first === 0 && second !== 0) return { encoding: 'utf-16be', start: 0 };
  if (second === 0) return { encoding: 'utf-16le', start: 0 };
  return undefined;
}

/** The text of a body (RFC 7303 section 3: a byte order mark, then the label, then the declaration of XML). */
function textOf(body: Buffer, charset: string | undefined): string | Content {
  const unicode = unicodeEncodingOf(body);
  if (unicode) return new TextDecoder(unicode.encoding).decode(body);
  const encoding = charset ?? (body[0] === lessThan ? declaredEncoding(body) : undefined);
  if (encoding === undefined) return body.toString();
  try {
    const decoder = new TextDecoder(encoding);
    const isMislabelled = decoder.encoding.startsWith('utf-16'); // it has no zero among its first bytes
    return isMislabelled ? body.toString() : decoder.decode(body);
  } catch {
    return unreadable(`charset ${plain(encoding)}`);
  }
}

const lessThan = 0x3c;

/** The character encoding in a `Content-Type` (RFC 9110 section 8.3.2); `undefined` for UTF-8, and if there is none. */
function charsetOf(contentType: string): string | undefined {
  return contentType.includes(';') ? knownCharset(contentType) || undefined : undefined;
}

const knownCharset = cacheByName((contentType) => {
  const [, quoted, token] = /;\s*charset\s*=\s*(?:["']([^"']*)["']|([^\s;]*))/i.exec(contentType) ?? [];
  const charset = (quoted ?? token ?? '').trim();
  return /^utf-?8$/i.test(charset) ? '' : charset;
});

const declaredEncoding = (body: Buffer): string | undefined =>
  /^<\?xml[^>]{0,200}?encoding\s*=\s*["']([^"']{1,40})["']/.exec(body.toString('latin1', 0, 300))?.[1];

/** Nearly all bodies begin with it. */
const firstCharacter = (text: string): string | undefined =>
  text.startsWith('{') ? '{' : /\S/.exec(text)?.[0];

function readJson(text: string, why: string): Content {
  try {
    const json: unknown = JSON.parse(text);
    const hasNumber = typeof memberOf(json, 'paymentId') === 'number';
    return { kind: 'json', json: hasNumber ? withTextIds(text) : json, text };
  } catch {
    return { kind: 'unreadable', why, text };
  }
}

/** Numbers beyond 2^53 would lose digits. */
function withTextIds(text: string): unknown {
  // The type declarations lack the third parameter (TC39 "JSON.parse source text access").
  const reviver = (name: string, value: unknown, context?: { readonly source?: string }) =>
    name === 'paymentId' && typeof value === 'number' ? (context?.source ?? String(value)) : value;
  return JSON.parse(text, reviver);
}

/** The reason why a web page is not read. */
export const webPage = 'a web page';

const leafNames: ReadonlySet<string> = new Set([
  ...['paymentId', 'transactionStatus', 'GrpSts', 'PmtInfSts', 'TxSts', 'scaStatus'],
  ...['category', 'code'], // of tppMessages
]);

/** Prefixes are ignored: banks bind them to different namespaces, or to none. Entities are not resolved; a DOCTYPE ends the reading. */
function readXml(text: string): Content {
  if (text.length > maxDecodedBytes) return unreadable(`larger than ${maxDecodedBytes} bytes`);
  const leaves = new Map<string, string[]>();
  let isRoot = true;
  let content: string | undefined;
  const parser = new SaxesParser({ xmlns: false, position: false });
  parser.on('error', () => stop('damaged or cut XML'));
  parser.on('doctype', () => stop('a DOCTYPE'));
  parser.on('opentag', ({ name }) => {
    if (isRoot && localName(name).toLowerCase() === 'html') stop(webPage);
    isRoot = false;
    content = '';
  });
  const add = (part: string) => {
    if (content !== undefined) content += part;
  };
  parser.on('text', add);
  parser.on('cdata', add);
  parser.on('closetag', ({ name }) => {
    const local = localName(name);
    const value = content?.trim() ?? '';
    content = undefined; // the element around it is no leaf
    if (value === '' || !leafNames.has(local)) return;
    const values = leaves.get(local);
    if (values) values.push(value);
    else leaves.set(local, [value]);
  });
  try {
    parser.write(text).close();
    return { kind: 'xml', leaves, text };
  } catch (thrown) {
    if (!(thrown instanceof Stop)) throw thrown;
    return { kind: 'unreadable', why: /^\s*<!doctype\s+html/i.test(text) ? webPage : thrown.why, text };
  }
}

const localName = (name: string) => name.slice(name.indexOf(':') + 1);

/** Ends the parser, which can only be stopped by an error in one of its events. */
class Stop extends Error {
  readonly why: string;
  constructor(why: string) {
    super(why);
    this.why = why;
  }
}

function stop(why: string): never {
  throw new Stop(why);
}

const unreadable = (why: string): Content => ({ kind: 'unreadable', why, text: undefined });

/** Limits length and characters, because logs and records store it. */
const plain = (label: string) =>
  /^[\w.:+-]{1,40}$/.test(label) ? label.toLowerCase() : 'of an invalid name';
