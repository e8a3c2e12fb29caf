/** Decodes the content codings of a response, so that the gateway can read or rewrite its body. */

import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib';
import { type HeaderFields, headerValue, listMembers } from '../pis/headers.ts';
import { GatewayError } from './errors.ts';
import type { PisResponse } from './messages.ts';

/**
 * Limit of a decoded body. Responses with links have a few kilobytes; 4 MiB are enough for a bulk payment of some ten
 * thousand entries, and limit the cost of a compressed body, which can grow by a factor of a thousand.
 */
export const maxDecodedBytes = 4 * 1024 * 1024;

type EncodedResponse = Pick<PisResponse, 'headers' | 'body' | 'environment'>;

/** Whether the body has a content coding. Nearly all bodies have none, and are read without a promise. */
export const isEncoded = ({ headers }: Pick<PisResponse, 'headers'>): boolean =>
  headerValue(headers, 'content-encoding') !== undefined && codingsOf(headers).length > 0;

/** The content codings of a body, in the order in which they were applied. */
export const codingsOf = (headers: HeaderFields) =>
  listMembers(headers, 'content-encoding').filter((coding) => coding !== 'identity');

/**
 * The body without its content codings (RFC 9110 section 8.4); the body itself if it has none.
 *
 * @returns undefined if a coding is unknown
 * @throws GatewayError UPSTREAM_MALFORMED if the body cannot be decoded, or exceeds the limit
 */
export async function decodeBody(response: EncodedResponse): Promise<Buffer | undefined> {
  let body = response.body;
  for (const coding of codingsOf(response.headers).reverse()) {
    const decode = decoders.get(coding);
    if (!decode) return undefined;
    body = await decode(body).catch((cause: unknown) => {
      throw undecodable(response, coding, cause);
    });
  }
  return body;
}

type Decoder = (body: Buffer) => Promise<Buffer>;

const options = { maxOutputLength: maxDecodedBytes };
const unzip: Decoder = (body) => promisify(gunzip)(body, options);

const decoders: ReadonlyMap<string, Decoder> = new Map([
  ['gzip', unzip],
  ['x-gzip', unzip],
  ['deflate', (body) => promisify(isZlib(body) ? inflate : inflateRaw)(body, options)],
  ['br', (body) => promisify(brotliDecompress)(body, options)],
  ['zstd', (body) => promisify(zstdDecompress)(body, options)],
]);

/** Whether the gateway can decode a content coding. @param coding in lower case */
export const isDecodable = (coding: string): boolean => coding === 'identity' || decoders.has(coding);

/** Some servers send deflate without the zlib format (RFC 9110 section 8.4.1.2; RFC 1950 section 2.2). */
function isZlib(body: Buffer): boolean {
  return body.length >= 2 && ((body[0] ?? 0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
}

function undecodable({ environment }: EncodedResponse, coding: string, cause: unknown): GatewayError {
  const tooLarge = cause instanceof RangeError && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE';
  const [what, proxyError] = tooLarge
    ? [`exceeds ${maxDecodedBytes} bytes after ${coding} decoding`, 'http_response_body_size']
    : [`is not valid ${coding}`, 'http_response_content_coding'];
  return new GatewayError('UPSTREAM_MALFORMED', `The bank's response ${what}.`, {
    cause,
    environment,
    proxyError,
  });
}
