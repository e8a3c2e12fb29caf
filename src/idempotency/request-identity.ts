/** Which requests count as repeats: the ledger id of a request, and the fingerprint that a repeat must match. */

import { hash } from 'node:crypto';
import { headerValue, headerValues } from '../pis/headers.ts';
import { emptyBody } from '../request/body-buffer.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisRequest } from '../request/messages.ts';

export interface RequestIdentity extends Fingerprints {
  /** Hash of the tenant's identity, operation, payment and `X-Request-ID`: 43 characters. */
  readonly id: string;
}

/**
 * Hashes of what a repeat must not change. Credentials and consents are excluded, because a TPP may renew them; so are bodies that may
 * contain a password or TAN of the payer (ADR 116).
 */
export interface Fingerprints {
  /** Version 1, without the headers of the payer. The former release compares only this one. */
  readonly fingerprint: string;
  /** Version 2. */
  readonly fingerprint2: {
    /** Of method, path, body and headers. */
    readonly request: string;
    /** Of method, path and body. */
    readonly content: string;
  };
}

/** Headers that name the payer; a bank makes another payment if one of them changes. In lower case. */
const payerHeaders = ['psu-id', 'psu-id-type', 'psu-corporate-id', 'psu-corporate-id-type'] as const;

/** @param tenantId an identity of the caller's tenant, by default the one for new records */
export function identityOf(request: PisRequest, tenantId = currentTenantId(request)): RequestIdentity {
  const { operation, requestId, requestedEnvironment, headers } = request;
  const { name, paymentId, method, carriesCredentials } = operation;
  // A reader of the state could try all TANs against a hash of the body.
  const body = carriesCredentials ? emptyBody : request.body;
  const path = operation.path + operation.search;
  const contentType = headerValue(headers, 'content-type') ?? null;
  const environment = requestedEnvironment ?? null;
  // This hash is not stored. Both stored hashes cover it: without the body, a reader of the state cannot try values of the payer.
  const unstored = hashOf([method, path], body);
  const payer = payerHeaders.map((header) => headerValues(headers, header));
  return {
    id: ledgerIdOf(tenantId, name, paymentId, requestId),
    fingerprint: hashOf([method, path, contentType, environment], body),
    fingerprint2: {
      request: hashOf([unstored, contentType, environment, ...payer]),
      content: hashOf([unstored]),
    },
  };
}

/** @param paymentId of a request for an existing payment */
export const ledgerIdOf = (
  tenantId: string,
  operation: string,
  paymentId: string | undefined,
  requestId: string,
): string => hashOf([tenantId, operation, paymentId ?? null, requestId.toLowerCase()]);

/** How a request differs from the one that made an entry. */
export type Difference = 'none' | 'headers' | 'content';

/** @param entry lacks `fingerprint2` if the former release wrote it; then version 1 is compared */
export function differenceOf(
  entry: Pick<Fingerprints, 'fingerprint'> & {
    readonly fingerprint2?: Fingerprints['fingerprint2'] | undefined;
  },
  request: Fingerprints,
): Difference {
  const { fingerprint, fingerprint2 } = entry;
  if (!fingerprint2) return fingerprint === request.fingerprint ? 'none' : 'content';
  if (fingerprint2.request === request.fingerprint2.request) return 'none';
  return fingerprint2.content === request.fingerprint2.content ? 'headers' : 'content';
}

function hashOf(parts: readonly (string | null | readonly string[])[], body?: Buffer): string {
  const text = `${JSON.stringify(parts)}\0`;
  return hash('sha256', body?.length ? joined(text, body) : text, 'base64url');
}

/** For texts with short bodies, which nearly all are: so that no request allocates two copies of its body. */
const scratch = Buffer.allocUnsafeSlow(16_384);

function joined(text: string, body: Buffer): Buffer {
  if (3 * text.length + body.length > scratch.length) return Buffer.concat([Buffer.from(text), body]);
  const textBytes = scratch.write(text);
  body.copy(scratch, textBytes);
  return scratch.subarray(0, textBytes + body.length);
}
