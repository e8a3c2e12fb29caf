/** The HTTP client for the OIDC provider: with authorities of its own, and limits on the time and size of a response. */

import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** The provider did not answer in time, or not with HTTP. */
export class ProviderUnavailable extends Error {}

/** The part of `fetch` that the OIDC library uses. */
export type ProviderFetch = (
  url: string,
  options: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: unknown;
  },
) => Promise<Response>;

const timeoutMs = 5_000;
const maxResponseBytes = 1024 * 1024;

/** @param ca the trusted authorities in PEM format; `undefined` for those of Node */
export function createProviderFetch(ca: string | undefined): ProviderFetch {
  return async (url, { method, headers, body }) => {
    try {
      const response = await send(url, method, headers, body, ca);
      const content = await readAll(response);
      const status = response.statusCode ?? 502;
      return new Response(bodiless.has(status) ? null : new Uint8Array(content), {
        status,
        headers: fieldsOf(response),
      });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ProviderUnavailable(`${new URL(url).origin} did not answer: ${why}`, { cause });
    }
  };
}

function send(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: unknown,
  ca: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = {
      method,
      headers,
      signal: AbortSignal.timeout(timeoutMs),
      agent: false,
      ...(ca && { ca }),
    };
    const request = url.startsWith('https:') ? requestHttps(url, options) : requestHttp(url, options);
    // The library sends forms as URLSearchParams or text, and nothing else.
    request
      .on('response', resolve)
      .on('error', reject)
      .end(body === undefined || body === null ? '' : String(body));
  });
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) throw new Error(`the response exceeds ${maxResponseBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A `Response` with one of these must not have a body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

function fieldsOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  return headers;
}
