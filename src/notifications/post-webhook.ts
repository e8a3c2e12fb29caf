/** The HTTP client for webhooks. Its endpoints are chosen by TPP systems, and may be hostile. */

import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import {
  type IsAllowedPrivate,
  type ResolveName,
  resolveByNameServer,
  resolveEndpoint,
  UnusableEndpoint,
} from './resolve-endpoint.ts';

/** The outcome of one attempt. Nothing of the endpoint's response is kept but the class of its status. */
export type AttemptResult =
  | { readonly kind: 'delivered' }
  /** The endpoint wants no more messages for this subscription (410). */
  | { readonly kind: 'gone' }
  /** @member why completes "the attempt failed:" */
  | { readonly kind: 'failed'; readonly why: string };

/** Nothing was sent. */
export interface NoAttempt {
  readonly kind: 'unsent';
  readonly why: string;
}

/**
 * Sends a message once. Never rejects.
 *
 * @param signal aborts the attempt
 */
export type PostWebhook = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  signal: AbortSignal,
) => Promise<AttemptResult>;

export interface WebhookClientOptions {
  readonly isAllowedPrivate: IsAllowedPrivate;
  /** For the whole attempt: name, connection, request and the head of the response. Milliseconds. */
  readonly timeoutMs: number;
  readonly resolveName?: ResolveName;
  /** The trusted authorities in PEM format; by default those of Node. */
  readonly ca?: string | undefined;
}

/** How much is read from an endpoint: interim responses and empty lines could go on until the time limit. */
const maxReceivedBytes = 48 * 1024;
/** How long a body is read after its head, so that its connection ends cleanly. Milliseconds. */
const maxBodyMs = 1_000;

/**
 * Connects only to addresses that were checked, and to a new connection for each attempt, which is closed before the attempt ends.
 * Redirects are not followed, and proxies of the environment are not used (`agent: false`).
 */
export function createPostWebhook({
  isAllowedPrivate,
  timeoutMs,
  resolveName = resolveByNameServer,
  ca,
}: WebhookClientOptions): PostWebhook {
  return async (url, headers, body, signal) => {
    const end = new AbortController();
    let isOverdue = false;
    const timer = setTimeout(() => {
      isOverdue = true;
      end.abort();
    }, timeoutMs);
    const interrupt = () => end.abort();
    signal.addEventListener('abort', interrupt, { once: true });
    try {
      signal.throwIfAborted();
      const addresses = await resolveEndpoint(url, isAllowedPrivate, resolveName, end.signal);
      end.signal.throwIfAborted();
      return resultOf(await send(url, { headers, addresses, ca, signal: end.signal }, body));
    } catch (thrown) {
      if (isOverdue) return failed(`no response within ${timeoutMs / 1_000} s`);
      if (signal.aborted) return failed('the attempt was interrupted');
      return failed(
        thrown instanceof UnusableEndpoint ? thrown.message : `no connection (${codeOf(thrown)})`,
      );
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', interrupt);
    }
  };
}

const failed = (why: string): AttemptResult => ({ kind: 'failed', why });

interface SendOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly addresses: readonly string[];
  readonly ca: string | undefined;
  readonly signal: AbortSignal;
}

/** @returns the status, when the connection is closed */
function send(url: URL, { headers, addresses, ca, signal }: SendOptions, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'content-length': body.length },
      agent: false,
      lookup: lookupOf(addresses),
      signal,
    };
    const request =
      url.protocol === 'https:'
        ? requestHttps(url, {
            ...options,
            minVersion: 'TLSv1.2',
            rejectUnauthorized: true,
            ...(ca && { ca }),
          })
        : requestHttp(url, options);
    let status: number | undefined;
    request
      .on('socket', (socket) => limitReceived(request, socket))
      .on('response', (response) => {
        status = response.statusCode;
        discard(request, response);
      })
      .on('upgrade', ({ statusCode = 101 }, socket) => {
        socket.destroy();
        resolve(statusCode);
      })
      .on('error', (error) => {
        if (status === undefined) reject(error);
      })
      .on('close', () => {
        if (status === undefined) reject(new UnusableEndpoint('the endpoint closed the connection'));
        else resolve(status);
      })
      .end(body);
  });
}

/** Answers with the addresses that were checked. Not called for a URL with an address. */
const lookupOf =
  (addresses: readonly string[]): LookupFunction =>
  (_hostname, { all }, callback) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first = { address: '', family: 0 }] = found;
    if (all) callback(null, found);
    else callback(null, first.address, first.family);
  };

function limitReceived(request: ClientRequest, socket: Socket): void {
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxReceivedBytes)
      request.destroy(new UnusableEndpoint('the response of the endpoint is too long'));
  });
}

function discard(request: ClientRequest, response: IncomingMessage): void {
  const timer = setTimeout(() => request.destroy(), maxBodyMs);
  request.on('close', () => clearTimeout(timer));
  response.on('error', () => {}); // the status has arrived
  response.resume();
}

function resultOf(status: number): AttemptResult {
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  if (status === 410) return { kind: 'gone' };
  if (status < 200) return failed('the endpoint wants to change the protocol');
  if (status >= 300 && status < 400) return failed('the endpoint redirects, which is not followed');
  return failed(status < 500 ? 'the endpoint refuses it (4xx)' : 'the endpoint fails (5xx)');
}

/** A code such as ECONNREFUSED or CERT_HAS_EXPIRED. Messages may quote what the endpoint has sent. */
function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'unknown';
  return 'code' in thrown ? String(thrown.code) : thrown.name;
}
