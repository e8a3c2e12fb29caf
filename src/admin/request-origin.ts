/**
 * Where a request comes from: the host name that it was sent to, and the web page that sent it. Browsers send requests of foreign
 * pages with the cookies of this one, and a foreign DNS name can point to this address.
 */

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { AdminSettings } from '../config/schema.ts';
import { hostWithoutBrackets } from '../config/values.ts';

/** Whether a `Host` header names this listener. It accepts IP addresses, `localhost` and the configured names. */
export type IsAllowedHost = (host: string) => boolean;

export function createHostCheck({
  host,
  hosts,
  publicUrl,
}: Pick<AdminSettings, 'host' | 'hosts' | 'publicUrl'>): IsAllowedHost {
  const names = new Set(['localhost', host.toLowerCase(), new URL(publicUrl).hostname, ...hosts]);
  return (header) => {
    const name = hostWithoutBrackets(header.toLowerCase().replace(/:\d+$/, ''));
    return isIP(name) > 0 || names.has(name);
  };
}

/**
 * Whether a page of this listener, or a program that is not a browser, has sent a request.
 *
 * Browsers send `Sec-Fetch-Site` to https: URLs and to localhost, and `Origin` with every request that is not GET or HEAD. The
 * exact origin is required: another port of the same host is the same site, so that SameSite does not protect from it.
 *
 * @param publicUrl a proxy in front may have replaced `Host`
 */
export function isSameOrigin(
  { headers }: IncomingMessage,
  publicUrl: string,
  { browserOnly }: { readonly browserOnly: boolean },
): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  if (origin === undefined) return site !== undefined || !browserOnly;
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  return url !== undefined && (url.host === host.toLowerCase() || url.origin === new URL(publicUrl).origin);
}

/** Whether the browser's connection is encrypted: to this listener, or to the proxy that `publicUrl` names. */
export function isSecure({ headers, socket }: IncomingMessage, publicUrl: string): boolean {
  if (socket instanceof TLSSocket) return true;
  const { protocol, host } = new URL(publicUrl);
  return protocol === 'https:' && headers.host?.toLowerCase() === host;
}
