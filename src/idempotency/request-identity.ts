/** Which requests count as repeats: the ledger id of a request, and the fingerprint that a repeat must match. */

import { hash } from 'node:crypto';
import { headerValue } from '../pis/headers.ts';
import type { PisRequest } from '../request/messages.ts';

export interface RequestIdentity {
  /** Hash of tenant, operation, payment and `X-Request-ID`: 43 characters. */
  readonly id: string;
  /** Hash of what a repeat must not change. Excludes credentials, because a TPP may refresh its token. */
  readonly fingerprint: string;
}

export function identityOf({
  operation,
  client,
  requestId,
  requestedEnvironment,
  headers,
  body,
}: PisRequest): RequestIdentity {
  const { name, paymentId, method, path } = operation;
  const contentType = headerValue(headers, 'content-type') ?? null;
  return {
    id: hashOf([client.tenant, name, paymentId ?? null, requestId.toLowerCase()]),
    fingerprint: hashOf([method, path, contentType, requestedEnvironment ?? null], body),
  };
}

function hashOf(parts: readonly (string | null)[], body: Buffer = emptyBody): string {
  return hash('sha256', Buffer.concat([Buffer.from(`${JSON.stringify(parts)}\0`), body]), 'base64url');
}

const emptyBody = Buffer.alloc(0);
