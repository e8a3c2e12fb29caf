/** STAGE 6. Replaces URLs of the bank's API in responses with URLs of the gateway. */

import { type HeaderField, headerValue, isNamed, lowerCase } from '../pis/headers.ts';
import { isJson } from '../pis/media-type.ts';
import { decodeBody, isEncoded } from '../request/content-coding.ts';
import type { PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import { isStatusTag } from '../request/status-tag.ts';
import { rewriteLinks } from './rewrite-links.ts';
import { createPublicUrlMapper, createUrlMapper, type ToPublicUrl } from './url-mapper.ts';

/**
 * Rewrites `Location`, `Content-Location` and the `_links` of JSON bodies (OpenAPI 1.3.6 and 1.3.11: "all links can be
 * relative or full links"). A response without such a URL is not changed.
 *
 * @param publicUrl  base URL of the gateway for TPPs, such as `https://gateway.example`
 * @param segment    the path before `/v1`; zero or more path segments
 * @throws GatewayError UPSTREAM_MALFORMED if a JSON body cannot be decoded to look for links
 */
export function rewriteUrls(publicUrl: string, segment: string): Stage<RoutedRequest> {
  const urlMapperFor = createUrlMapper(publicUrl, segment);
  return (request, next) =>
    next(request).then((response) => {
      if (response.meaning?.outcome === 'in-doubt') return response; // the TPP gets the bank's bytes
      const rewritten = withPublicUrls(response, urlMapperFor(request));
      return rewritten instanceof Promise
        ? rewritten.then((decoded) => withPublicUrlIfChanged(publicUrl, decoded, response))
        : withPublicUrlIfChanged(publicUrl, rewritten, response);
    });
}

/** Adds the public URL to a response whose URLs were rewritten, so that they can be brought up to date later. */
const withPublicUrlIfChanged = (
  publicUrl: string,
  rewritten: PisResponse,
  response: PisResponse,
): PisResponse => (rewritten === response ? response : { ...rewritten, publicUrl });

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
const withPublicUrls = (
  response: PisResponse,
  toPublicUrl: ToPublicUrl,
): PisResponse | Promise<PisResponse> =>
  withPublicLinks(withPublicFields(response, toPublicUrl), toPublicUrl);

/** Fields whose value is a URL (RFC 9110 sections 8.7 and 10.2.2). */
const urlFields: ReadonlySet<string> = new Set(['location', 'content-location']);
const isUrlField = ([name]: HeaderField) => urlFields.has(lowerCase(name));

function withPublicFields(response: PisResponse, toPublicUrl: ToPublicUrl): PisResponse {
  if (!response.headers.some(isUrlField)) return response;
  const headers = response.headers.map((field): HeaderField => {
    const [name, value] = field;
    const rewritten = isUrlField(field) ? toPublicUrl(value) : undefined;
    return rewritten === undefined ? field : [name, rewritten];
  });
  return { ...response, headers };
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

function withPublicLinks(
  response: PisResponse,
  toPublicUrl: ToPublicUrl,
): PisResponse | Promise<PisResponse> {
  if (response.body.length === 0) return response;
  if (!isJson(headerValue(response.headers, 'content-type'))) return response;
  if (!isEncoded(response)) return withLinksIn(response.body, response, toPublicUrl);
  return decodeBody(response).then((original) =>
    original ? withLinksIn(original, response, toPublicUrl) : response,
  );
}

function withLinksIn(original: Buffer, response: PisResponse, toPublicUrl: ToPublicUrl): PisResponse {
  let json: unknown;
  const body = rewriteLinks(original, toPublicUrl, (parsed) => {
    json = parsed;
  });
  if (body === original) return response;
  const headers = response.headers.filter((field) => !describesBytes(field));
  return { ...response, body, json, headers };
}
