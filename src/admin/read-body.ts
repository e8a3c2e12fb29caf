/** Reads and parses the bodies of requests to the admin listener. */

import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../request/errors.ts';
import { AdminRefusal } from './admin-refusal.ts';

/** Larger bodies are refused. */
const maxBodyBytes = 16 * 1024;

/**
 * Reads the body to its end, so that no action runs for a request whose rest is malformed. The rest of a body that is too
 * large is discarded; the time for the whole request is limited by the listener.
 *
 * @returns undefined if the body is too large
 * @throws GatewayError what the listener found in the body, or REQUEST_TIMEOUT if the body broke off
 */
export function readAdminBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBodyBytes) chunks.push(chunk);
    });
    request.on('end', () => resolve(bytes <= maxBodyBytes ? Buffer.concat(chunks) : undefined));
    request.on('error', (cause) => reject(cause instanceof GatewayError ? cause : incomplete(cause)));
    request.on('close', () => reject(incomplete(undefined)));
  });
}

const incomplete = (cause: unknown) =>
  new GatewayError('REQUEST_TIMEOUT', 'The request is incomplete.', { cause });

/**
 * Parses a body as an object or a list in JSON, in UTF-8. No body counts as an empty object, which lacks every required member.
 *
 * @param body undefined if it is too large
 * @returns undefined if the body is of another type
 * @throws AdminRefusal 400
 */
export function parseJson(
  body: Buffer | undefined,
  contentType: string | undefined,
  contentEncoding: string | undefined,
): unknown {
  if (body === undefined) throw notJson();
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') return undefined;
  if (body.length === 0) return {};
  const charset = parameters.find((parameter) => parameter.trim().startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-8"?$/.test(charset.trim())) throw notJson();
  if (contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity') throw notJson();
  const value = jsonIn(body);
  if (typeof value !== 'object' || value === null) throw notJson();
  return value;
}

const notJson = () => new AdminRefusal(400, 'The body must be JSON in UTF-8 of at most 16 KiB.');

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw notJson();
  }
}
