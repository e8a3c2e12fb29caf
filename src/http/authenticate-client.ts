/** Who calls: a TPP system known by its API key or by its certificate; without any configured, everybody is "anonymous". */

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { GatewayError } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';

/** A client as configured: SHA-256 of its key, or fingerprint of its certificate, in lower-case hex. */
export interface ConfiguredClient extends Client {
  readonly apiKeySha256?: string | undefined;
  readonly certificateSha256?: string | undefined;
}

/** @throws GatewayError CLIENT_UNKNOWN */
export type AuthenticateClient = (incoming: IncomingMessage, fields: HeaderFields) => Client;

/** @param environments what the anonymous client may use */
export function createClientAuthenticator(
  known: readonly ConfiguredClient[],
  environments: readonly string[],
): AuthenticateClient {
  const anonymous: Client = { name: 'anonymous', tenant: 'anonymous', environments };
  if (known.length === 0) return () => anonymous;
  const clients = known.map(credentialsOf);

  return (incoming, fields) => {
    const key = headerValue(fields, 'x-api-key');
    const fingerprint = fingerprintOf(incoming);
    const byKey = key === undefined ? [] : matching(clients, 'key', sha256(Buffer.from(key, 'latin1')));
    const byCertificate = fingerprint === undefined ? [] : matching(clients, 'certificate', fingerprint);
    // Whoever shows both must be one and the same: a stolen key is of no use with another's certificate.
    const [client] = key === undefined ? byCertificate : byKey;
    if (!client || (key !== undefined && byCertificate.some((other) => other !== client)))
      throw clientUnknown(known);
    return client;
  };
}

/** A client, and the digests of what it shows. */
interface Credentials {
  readonly client: Client;
  readonly key: Buffer | undefined;
  readonly certificate: Buffer | undefined;
}

/** Nothing of what it shows goes further with the client. */
function credentialsOf({ name, tenant, environments, ...shown }: ConfiguredClient): Credentials {
  return {
    client: { name, tenant, environments },
    key: digestIn(shown.apiKeySha256),
    certificate: digestIn(shown.certificateSha256),
  };
}

const digestIn = (hex: string | undefined) => (hex === undefined ? undefined : Buffer.from(hex, 'hex'));

/** Compares with every client, in constant time: neither a right prefix nor a place in the list shows. */
function matching(
  clients: readonly Credentials[],
  by: 'key' | 'certificate',
  shown: Buffer,
): readonly Client[] {
  return clients
    .filter(({ [by]: digest }) => digest?.length === shown.length && timingSafeEqual(digest, shown))
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

function clientUnknown(known: readonly ConfiguredClient[]): GatewayError {
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
