/** STAGE 6. Replaces URLs of the bank's API in responses with URLs of the gateway. */

import { isUtf8 } from 'node:buffer';
import { type HeaderField, headerValue, isNamed, lowerCase } from '../pis/headers.ts';
import { isJson } from '../pis/media-type.ts';
import type { OperationName } from '../pis/operations.ts';
import { decodeBody, isEncoded } from '../request/content-coding.ts';
import type { PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import {
  authorisationIdsIn,
  jsonOf,
  memberOf,
  type UnicodeEncoding,
  unicodeEncodingOf,
} from '../request/read-content.ts';
import type { Stage } from '../request/stage.ts';
import { isStatusTag } from '../request/status-tag.ts';
import {
  type BankLinkMapper,
  createPublicUrlMapper,
  type LinkMapper,
  type MapLinksOf,
} from './link-mapper.ts';
import { mayHaveLinks, rewriteLinkObject, rewriteLinks } from './rewrite-links.ts';

/**
 * Rewrites `Location`, `Content-Location` and the `_links` of JSON bodies (OpenAPI 1.3.6 and 1.3.11: "all links can be
 * relative or full links"). A response without such a URL is not changed. Collects ids that the gateway must record.
 *
 * @param publicUrl base URL of the gateway for TPPs, such as `https://gateway.example`
 */
export function rewriteUrls(mapLinksOf: MapLinksOf, publicUrl: string): Stage<RoutedRequest> {
  return (request, next) =>
    next(request).then((response) => {
      if (response.meaning?.outcome === 'in-doubt') return response; // the TPP gets the bank's bytes
      const mapper = mapLinksOf(request, request.operation.paymentId ?? response.meaning?.paymentId);
      const finish = (rewritten: PisResponse): PisResponse => {
        const bankIds = mapper.bankIds();
        return rewritten === response && bankIds === undefined
          ? response
          : { ...rewritten, publicUrl, bankIds };
      };
      const rewritten = withPublicUrls(response, mapper);
      if (listsAuthorisations.has(request.operation.name)) return finishWithIds(rewritten, mapper, finish);
      return rewritten instanceof Promise ? rewritten.then(finish) : finish(rewritten);
    });
}

/** Operations whose answers may name authorisations outside of links. */
const listsAuthorisations: ReadonlySet<OperationName> = new Set([
  'startAuthorisation',
  'listAuthorisations',
  'updatePsuData',
]);

async function finishWithIds(
  response: PisResponse | Promise<PisResponse>,
  mapper: BankLinkMapper,
  finish: (rewritten: PisResponse) => PisResponse,
): Promise<PisResponse> {
  const rewritten = await response;
  const json = await jsonOf(rewritten);
  const started = memberOf(json, 'authorisationId');
  if (typeof started === 'string') mapper.addAuthorisation(started);
  for (const id of authorisationIdsIn(json)) mapper.addAuthorisation(id);
  return finish(rewritten);
}

/**
 * Brings stored responses up to date: their links still begin with the public URL from when they were stored.
 *
 * @throws GatewayError UPSTREAM_MALFORMED as `rewriteUrls`
 */
export function updatePublicUrl(publicUrl: string, segment: string): Stage<PisRequest> {
  const update = createUpdatePublicUrl(publicUrl, segment);
  return (request, next) => next(request).then(update);
}

/** Brings one stored response up to date, as `updatePublicUrl` does. @returns a promise only if the body must be decoded */
export type UpdatePublicUrl = (response: PisResponse) => PisResponse | Promise<PisResponse>;

export function createUpdatePublicUrl(publicUrl: string, segment: string): UpdatePublicUrl {
  return (response) => {
    if (response.publicUrl === undefined || response.publicUrl === publicUrl) return response;
    return withPublicUrls(response, createPublicUrlMapper(response.publicUrl, publicUrl, segment));
  };
}

/** @returns the response itself if it has no URL of the bank; a promise only if the body must be decoded */
const withPublicUrls = (response: PisResponse, mapper: LinkMapper): PisResponse | Promise<PisResponse> =>
  withPublicLinks(withPublicFields(response, mapper), mapper);

/** Fields whose value is a URL (RFC 9110 sections 8.7 and 10.2.2). */
const urlFields: ReadonlySet<string> = new Set(['location', 'content-location']);
const isUrlField = ([name]: HeaderField) => urlFields.has(lowerCase(name));

function withPublicFields(response: PisResponse, mapper: LinkMapper): PisResponse {
  if (!response.headers.some(isUrlField)) return response;
  let isChanged = false;
  const headers = response.headers.map((field): HeaderField => {
    const [name, value] = field;
    const rewritten = isUrlField(field) ? rewrittenField(value, lowerCase(name), mapper) : undefined;
    if (rewritten === undefined || rewritten === value) return field;
    isChanged = true;
    return [name, rewritten];
  });
  return isChanged ? { ...response, headers } : response;
}

/** A real bank sends a JSON object in `Location`: `{"href":"https://..."}`. */
function rewrittenField(value: string, name: string, mapper: LinkMapper): string | undefined {
  if (!value.startsWith('{')) return mapper.link(value, name);
  return parseJson(value) === undefined ? undefined : rewriteLinkObject(value, mapper, name);
}

/** Fields that describe the bytes that the bank sent (RFC 9110 sections 8.4 and 8.8.3, RFC 9530, RFC 9421). */
const representationFields: ReadonlySet<string> = new Set([
  'content-encoding',
  'etag',
  'digest',
  'content-digest',
  'repr-digest',
  'content-md5',
  'signature',
  'signature-input',
]);

/** The gateway's own tags describe the status only. */
const describesBytes = ([name, value]: HeaderField) =>
  representationFields.has(lowerCase(name)) && !(isNamed(name, 'etag') && isStatusTag(value));

function withPublicLinks(response: PisResponse, mapper: LinkMapper): PisResponse | Promise<PisResponse> {
  if (response.body.length === 0) return response;
  if (!isEncoded(response)) return withLinksIn(response.body, response, mapper);
  return decodeBody(response).then(
    (original) => (original ? withLinksIn(original, response, mapper) : response),
    (thrown: unknown) => {
      const namesPayment = response.meaning?.paymentId !== undefined; // in a field: it is accepted, whatever its body is
      if (!namesPayment && isJson(headerValue(response.headers, 'content-type'))) throw thrown;
      return response;
    },
  );
}

/** @param original the body without content codings */
function withLinksIn(original: Buffer, response: PisResponse, mapper: LinkMapper): PisResponse {
  const unicode = unicodeEncodingOf(original);
  if (!unicode && !mayHaveLinks(original)) return response; // most bodies, which need not be decoded
  const { encoding, start } = unicode ?? encodingOfAscii(original);
  const text = decode(start === 0 ? original : original.subarray(start), encoding);
  const json = response.json ?? parseJson(text);
  if (json === undefined) return response;
  const rewritten = rewriteLinks(text, mapper);
  if (rewritten === text) return response;
  const encoded = encode(rewritten, encoding);
  const body = start === 0 ? encoded : Buffer.concat([original.subarray(0, start), encoded]);
  const headers = response.headers.filter((field) => !describesBytes(field));
  return { ...response, body, json, headers };
}

/** `JSON.parse` is not recursive: nesting of any depth is safe. @returns `undefined` if the text is no object or list in JSON */
function parseJson(text: string): object | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null ? json : undefined;
  } catch {
    return undefined;
  }
}

type Encoding = UnicodeEncoding['encoding'] | 'latin1';

/** `latin1` stands for every encoding that contains ASCII: its bytes stay as they are. */
const encodingOfAscii = (body: Buffer): { readonly encoding: Encoding; readonly start: number } => ({
  encoding: isUtf8(body) ? 'utf-8' : 'latin1',
  start: 0,
});

const decode = (bytes: Buffer, encoding: Encoding): string =>
  encoding === 'utf-16be' ? swapped(bytes).toString('utf-16le') : bytes.toString(encoding);

const encode = (text: string, encoding: Encoding): Buffer =>
  encoding === 'utf-16be' ? swapped(Buffer.from(text, 'utf-16le')) : Buffer.from(text, encoding);

/** A copy with the two bytes of each character exchanged; a last single byte is dropped. */
const swapped = (bytes: Buffer): Buffer =>
  Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2))).swap16();
