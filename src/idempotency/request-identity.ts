/** Which requests count as repeats: the key of a request in the ledger, and the fingerprints that a repeat must match. */

import { createHmac, hash, hkdfSync } from 'node:crypto';
import type { EncryptionKeys } from '../config/encryption-keys.ts';
import { headerValue, headerValues } from '../pis/headers.ts';
import { emptyBody } from '../request/body-buffer.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisRequest } from '../request/messages.ts';
import type { LedgerKey } from '../store/ledger.ts';

export interface RequestIdentity {
  readonly key: LedgerKey;
  readonly fingerprints: Fingerprints;
  /** How this request differs from the one that made these fingerprints. */
  differenceFrom(first: Fingerprints): Difference;
}

/**
 * Hashes of what a repeat must not change. Credentials and consents are excluded, because a TPP may renew them.
 *
 * With an encryption key they are HMACs. Without one, a reader of the state could try values: the hashes of operations that carry
 * credentials then leave out the body, which may contain a password or TAN of the payer (ADR 116).
 */
export interface Fingerprints {
  /** The id of the key of the HMACs; missing if they were made without a key. */
  readonly key?: string | undefined;
  /** Of method, path, body and headers. */
  readonly request: string;
  /** Of method, path and body. */
  readonly content: string;
}

/** How a request differs from the first one. `unknown` if the key of the first one's fingerprints is missing. */
export type Difference = 'none' | 'headers' | 'content' | 'unknown';

export type IdentifyRequest = (request: PisRequest) => RequestIdentity;

/** @param keys the current key makes new fingerprints; the older ones compare those of earlier requests */
export function createIdentifyRequest(keys: readonly [] | EncryptionKeys = []): IdentifyRequest {
  const [current = withoutKey, ...older] = keys.map(createKeyedHash);
  const hashes = new Map([current, ...older, withoutKey].map((one) => [one.key, one]));

  return (request) => {
    const { name, paymentId } = request.operation;
    const fingerprints = fingerprintsOf(request, current);
    return {
      key: ledgerKeyOf(currentTenantId(request), name, paymentId, request.requestId),
      fingerprints,
      differenceFrom(first) {
        const comparable = hashes.get(first.key);
        if (!comparable) return 'unknown';
        const own = comparable === current ? fingerprints : fingerprintsOf(request, comparable);
        if (first.request === own.request) return 'none';
        return first.content === own.content ? 'headers' : 'content';
      },
    };
  };
}

/** Headers that name the payer; a bank makes another payment if one of them changes. In lower case. */
const payerHeaders = ['psu-id', 'psu-id-type', 'psu-corporate-id', 'psu-corporate-id-type'] as const;

function fingerprintsOf(
  { operation, requestedEnvironment, headers, body }: PisRequest,
  { key, hashOf }: Hash,
): Fingerprints {
  const { method, carriesCredentials } = operation;
  const path = operation.path + operation.search;
  const contentType = headerValue(headers, 'content-type') ?? null;
  const payer = payerHeaders.map((header) => headerValues(headers, header));
  // Not stored. Both stored hashes cover it: without the body, a reader of the state cannot try values of the payer.
  const unstored = hashOf([method, path], carriesCredentials && key === undefined ? emptyBody : body);
  return {
    ...(key !== undefined && { key }),
    request: hashOf([unstored, contentType, requestedEnvironment ?? null, ...payer]),
    content: hashOf([unstored]),
  };
}

/** @param paymentId of a request for an existing payment */
export const ledgerKeyOf = (
  tenant: string,
  operation: string,
  paymentId: string | undefined,
  requestId: string,
): LedgerKey => ({ tenant, operation, payment: paymentId ?? '', requestId: requestId.toLowerCase() });

interface Hash {
  readonly key: string | undefined;
  hashOf(parts: readonly (string | null | readonly string[])[], body?: Buffer): string;
}

const withoutKey: Hash = {
  key: undefined,
  hashOf(parts, body) {
    const text = textOf(parts);
    return hash('sha256', body?.length ? joined(text, body) : text, 'base64url');
  },
};

/** HMAC-SHA-256. HKDF (RFC 5869) derives its key, and the public id of that key, from the one in the file. */
function createKeyedHash(fileKey: Buffer): Hash {
  const derive = (use: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', fileKey, '', `penstock fingerprint 1 ${use}`, bytes));
  const secret = derive('key', 32);
  return {
    key: derive('id', 6).toString('base64url'),
    hashOf: (parts, body = emptyBody) =>
      createHmac('sha256', secret).update(textOf(parts)).update(body).digest('base64url'),
  };
}

const textOf = (parts: Parameters<Hash['hashOf']>[0]) => `${JSON.stringify(parts)}\0`;

/** For texts with short bodies, which nearly all are: so that no request allocates two copies of its body. */
const scratch = Buffer.allocUnsafeSlow(16_384);

function joined(text: string, body: Buffer): Buffer {
  if (3 * text.length + body.length > scratch.length) return Buffer.concat([Buffer.from(text), body]);
  const textBytes = scratch.write(text);
  body.copy(scratch, textBytes);
  return scratch.subarray(0, textBytes + body.length);
}
