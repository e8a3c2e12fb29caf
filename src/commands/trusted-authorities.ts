/** The CA certificates that the commands trust, and the error for a certificate of an admin listener that they do not trust. */

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { CommandError, UsageError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';

/** Trusts these certificates in this process as well: `fetch` has no authorities of its own. @throws UsageError */
export function trustAuthorities(file: string | undefined): void {
  if (file === undefined) return;
  try {
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(file, 'utf8')]);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(
      `--ca-file: ${file} contains no certificates in PEM format that can be read: ${why}`,
    );
  }
}

export type FetchUrl = (url: string, request: RequestInit) => Promise<Response>;

/** GET over TLS without verifying the certificate, for requests to this machine that contain no secret. */
export const fetchUnverified: FetchUrl = async (url, { signal }) => {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  get(url, { rejectUnauthorized: false, agent: false, ...(signal && { signal }) }, resolve).on(
    'error',
    reject,
  );
  try {
    const response = await promise;
    return new Response(await text(response), { status: response.statusCode ?? 502 });
  } catch (cause) {
    throw new TypeError('fetch failed', { cause }); // as fetch itself
  }
};

/** @returns the error for a certificate that was not accepted; `undefined` for any other cause */
export function certificateAdvice(url: string, thrown: unknown): CommandError | undefined {
  const cause = thrown instanceof Error ? thrown.cause : undefined; // fetch itself throws `TypeError: fetch failed`
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const text = `The certificate of ${url} is not accepted (${code}).`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return new CommandError(
      exitCodes.unavailable,
      `${text} Name the listener by a name that the certificate contains: --url https://NAME:PORT.`,
      { cause: thrown },
    );
  if (!authorityErrors.has(code)) return undefined;
  const advice = 'If it is the right one, name its CA certificates with --ca-file FILE.';
  return new CommandError(exitCodes.unavailable, `${text} ${advice}`, { cause: thrown });
}

/** Results of the verification of a certificate (OpenSSL, X509_V_ERR_*). */
const authorityErrors: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
