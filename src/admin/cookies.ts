/** The cookies of the admin listener (RFC 6265bis): HttpOnly, without a Domain, and Secure where the connection is encrypted. */

import type { IncomingMessage } from 'node:http';

export interface Cookie {
  readonly name: string;
  readonly sameSite: 'Strict' | 'Lax';
}

/** The session. `Strict`: a browser sends it with requests of the console's own pages only. */
export const sessionCookie: Cookie = { name: 'penstock-session', sameSite: 'Strict' };

/** Sign-ins at the OIDC provider that have begun in this browser. `Lax`: the browser must send it when the provider sends the person back. */
export const signInCookie: Cookie = { name: 'penstock-sign-in', sameSite: 'Lax' };

/** Over an encrypted connection, only a cookie that was set over one is read: a page on plain HTTP can set others. */
export function readCookie(
  { headers }: IncomingMessage,
  { name }: Cookie,
  isSecure: boolean,
): string | undefined {
  const wanted = fullName(name, isSecure);
  for (const pair of (headers.cookie ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (pair.slice(0, at).trim() === wanted) return pair.slice(at + 1).trim() || undefined;
  }
  return undefined;
}

/** The value of `Set-Cookie`. @param maxAgeSeconds 0 removes the cookie */
export function writeCookie(
  { name, sameSite }: Cookie,
  value: string,
  maxAgeSeconds: number,
  isSecure: boolean,
): string {
  const secure = isSecure ? '; Secure' : '';
  return `${fullName(name, isSecure)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${secure}`;
}

/** Browsers accept the prefix only with Secure, Path=/ and no Domain: other hosts of the same domain cannot set it. */
const fullName = (name: string, isSecure: boolean) => (isSecure ? `__Host-${name}` : name);
