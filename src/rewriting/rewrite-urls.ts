/** STAGE 5. On the way back: the bank's own addresses become addresses of the gateway. */

import { type HeaderField, headerValue, lowerCase, withoutFields } from '../pis/headers.ts';
import { isJson } from '../pis/media-type.ts';
import { decodeBody } from '../request/content-coding.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import { rewriteLinks } from './rewrite-links.ts';
import { createUrlMapper, type ToPublicUrl } from './url-mapper.ts';

/**
 * Rewrites `Location`, `Content-Location` and the `_links` of JSON bodies (OpenAPI 1.3.6 and 1.3.11: "all
 * links can be relative or full links"). What comes out depends on the request and the answer alone, and
 * an answer without anything to rewrite passes as it is, byte for byte.
 *
 * @param publicUrl  where TPP systems reach the gateway, e.g. `https://gateway.example`
 * @param segment    what stands before `/v1` in every path; none to several path segments
 * @throws GatewayError UPSTREAM_MALFORMED if a JSON body cannot be decoded to look for links
 */
export function rewriteUrls(publicUrl: string, segment: string): Stage<RoutedRequest> {
  const publicAddresses = createUrlMapper(publicUrl, segment);
  return async (request, next) => {
    const response = await next(request);
    const toPublic = publicAddresses(request);
    return withPublicLinks(withPublicFields(response, toPublic), toPublic);
  };
}

/** Fields whose value is an address (RFC 9110 sections 8.7 and 10.2.2). */
const addressFields: ReadonlySet<string> = new Set(['location', 'content-location']);
const isAddress = ([name]: HeaderField) => addressFields.has(lowerCase(name));

function withPublicFields(response: PisResponse, toPublic: ToPublicUrl): PisResponse {
  if (!response.headers.some(isAddress)) return response;
  const headers = response.headers.map((field): HeaderField => {
    const [name, value] = field;
    const rewritten = isAddress(field) ? toPublic(value) : undefined;
    return rewritten === undefined ? field : [name, rewritten];
  });
  return { ...response, headers };
}

/** Fields that are true only of the very bytes the bank sent (RFC 9110 sections 8.4 and 8.8.3, RFC 9530, RFC 9421). */
const fieldsOfBytes: ReadonlySet<string> = new Set([
  'content-encoding',
  'etag',
  'digest',
  'content-digest',
  'repr-digest',
  'content-md5',
  'signature',
  'signature-input',
]);

async function withPublicLinks(response: PisResponse, toPublic: ToPublicUrl): Promise<PisResponse> {
  if (response.body.length === 0) return response;
  if (!isJson(headerValue(response.headers, 'content-type'))) return response;

  const original = await decodeBody(response);
  if (!original) return response;
  const body = rewriteLinks(original, toPublic);
  if (body === original) return response;
  return { ...response, body, headers: withoutFields(response.headers, fieldsOfBytes) };
}
