/** Which requests count as the same: the key under which one is kept, and the fingerprint of what it asks for. */

import { hash } from 'node:crypto';
import { headerValue } from '../pis/headers.ts';
import type { PisRequest } from '../request/messages.ts';

/** One use of an `X-Request-ID`. */
export interface RequestIdentity {
  /** Tenant, operation, payment and `X-Request-ID`, as a hash: 43 characters. */
  readonly id: string;
  /** Everything that must be the same in a repeat. Credentials are not in it: tokens are refreshed meanwhile. */
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
  const named = requestedEnvironment ?? null;
  return {
    id: hashOf([client.tenant, name, paymentId ?? null, requestId.toLowerCase()]),
    fingerprint: hashOf([method, path, headerValue(headers, 'content-type') ?? null, named], body),
  };
}

function hashOf(parts: readonly (string | null)[], body: Buffer = emptyBody): string {
  return hash('sha256', Buffer.concat([Buffer.from(`${JSON.stringify(parts)}\0`), body]), 'base64url');
}

const emptyBody = Buffer.alloc(0);
