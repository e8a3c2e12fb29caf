/** Who calls: a TPP system known by its API key or by its certificate; without any configured, everybody is "anonymous". */

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { GatewayError } from '../flow/errors.ts';
import type { Client } from '../flow/messages.ts';
import { type HeaderFields, headerValue } from '../pis/headers.ts';

/** A client as configured: SHA-256 of its key, or fingerprint of its certificate, in lower-case hex. */
export interface KnownClient extends Client {
  readonly apiKeySha256?: string | undefined;
  readonly certificateSha256?: string | undefined;
}

/** @throws GatewayError CLIENT_UNKNOWN */
export type IdentifyClient = (incoming: IncomingMessage, fields: HeaderFields) => Client;

/** @param environments what the anonymous client may use */
export function createClients(
  known: readonly KnownClient[],
  environments: readonly string[],
): IdentifyClient {
  const anonymous: Client = { name: 'anonymous', tenant: 'anonymous', environments };
  if (known.length === 0) return () => anonymous;
  const all = known.map(knownAs);
  const keys = digestsOf(all, 'apiKeySha256');
  const certificates = digestsOf(all, 'certificateSha256');

  return (incoming, fields) => {
    const key = headerValue(fields, 'x-api-key');
    const fingerprint = fingerprintOf(incoming);
    const byKey = key === undefined ? [] : holding(keys, sha256(Buffer.from(key, 'latin1')));
    const byCertificate = fingerprint === undefined ? [] : holding(certificates, fingerprint);
    // Whoever shows both must be one and the same: a stolen key is of no use with another's certificate.
    const [client] = key === undefined ? byCertificate : byKey;
    if (!client || (key !== undefined && byCertificate.some((other) => other !== client)))
      throw unknown(known);
    return client;
  };
}

/** What the clients show, each of them by its digest. */
type Digests = readonly { readonly client: Client; readonly digest: Buffer }[];

/** What a client shows, and what of it goes further. */
interface Known {
  readonly shown: KnownClient;
  readonly client: Client;
}

function knownAs(shown: KnownClient): Known {
  const { name, tenant, environments } = shown;
  return { shown, client: { name, tenant, environments } };
}

const digestsOf = (known: readonly Known[], property: 'apiKeySha256' | 'certificateSha256'): Digests =>
  known.flatMap(({ shown, client }) => {
    const digest = shown[property];
    return digest === undefined ? [] : [{ client, digest: Buffer.from(digest, 'hex') }];
  });

/** Compares with every client, in constant time: neither a right prefix nor a place in the list shows. */
function holding(digests: Digests, shown: Buffer): readonly Client[] {
  return digests
    .filter(({ digest }) => digest.length === shown.length && timingSafeEqual(digest, shown))
    .map(({ client }) => client);
}

const sha256 = (bytes: Buffer) => hash('sha256', bytes, 'buffer');

function fingerprintOf({ socket }: IncomingMessage): Buffer | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  // Verified when the connection began, or the session that it goes on with: it may have expired since.
  if (!certificate || certificate.validToDate.getTime() < Date.now()) return undefined;
  return sha256(certificate.raw);
}

function unknown(known: readonly KnownClient[]): GatewayError {
  const byKey = known.some(({ apiKeySha256 }) => apiKeySha256 !== undefined);
  if (!byKey) {
    return new GatewayError('CLIENT_UNKNOWN', 'Connect with the certificate of a known client.', {
      tppCode: 'CERTIFICATE_MISSING',
    });
  }
  return new GatewayError('CLIENT_UNKNOWN', 'Send the API key of a known client as X-API-Key.', {
    field: 'X-API-Key',
  });
}
