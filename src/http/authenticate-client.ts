/** Identifies the client of a request by its API key or its certificate. Without configured clients, every client is "anonymous". */

import { hash, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { GatewayError } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';

/** A client with the SHA-256 of its key, or the fingerprint of its certificate, in lower-case hex. */
export interface ConfiguredClient extends Client {
  readonly apiKeySha256?: string | undefined;
  readonly certificateSha256?: string | undefined;
}

/**
 * @param socket the connection, which may have a client certificate
 * @param key    value of `X-API-Key`
 * @throws GatewayError CLIENT_UNKNOWN
 */
export type AuthenticateClient = (socket: Socket, key: string | undefined) => Client;

/** @param environments those of the anonymous client */
export function createClientAuthenticator(
  configured: readonly ConfiguredClient[],
  environments: readonly string[],
): AuthenticateClient {
  const anonymous: Client = { name: 'anonymous', tenant: 'anonymous', environments };
  if (configured.length === 0) return () => anonymous;
  const clients = configured.map(credentialsOf);
  /** By accepted key: at most one for each client. V8 compares texts only if their keyed hashes are equal. */
  const accepted = new Map<string, Client>();
  const certificateOf = createCertificateReader();

  function clientOfKey(key: string): Client | undefined {
    const known = accepted.get(key);
    if (known) return known;
    const [client] = matching(clients, 'key', sha256(Buffer.from(key, 'latin1')));
    if (client) accepted.set(key, client);
    return client;
  }

  return (socket, key) => {
    const fingerprint = certificateOf(socket);
    const byCertificate = fingerprint === undefined ? none : matching(clients, 'certificate', fingerprint);
    // A key and a certificate must belong to the same client: a stolen key is useless with another certificate.
    const client = key === undefined ? byCertificate[0] : clientOfKey(key);
    if (!client || (key !== undefined && byCertificate.some((other) => other !== client)))
      throw clientUnknown(configured);
    return client;
  };
}

const none: readonly Client[] = [];

/** A client, and the digests of its credentials. */
interface Credentials {
  readonly client: Client;
  readonly key: Buffer | undefined;
  readonly certificate: Buffer | undefined;
}

/** The digests do not travel with the client through the pipeline. */
function credentialsOf({
  name,
  tenant,
  environments,
  onlyEnvironment,
  ...digests
}: ConfiguredClient): Credentials {
  return {
    client: { name, tenant, environments, ...(onlyEnvironment !== undefined && { onlyEnvironment }) },
    key: parseDigest(digests.apiKeySha256),
    certificate: parseDigest(digests.certificateSha256),
  };
}

const parseDigest = (hex: string | undefined) => (hex === undefined ? undefined : Buffer.from(hex, 'hex'));

/** Compares with every client in constant time: the time reveals neither a matching prefix nor a position in the list. */
function matching(
  clients: readonly Credentials[],
  by: 'key' | 'certificate',
  presented: Buffer,
): readonly Client[] {
  return clients
    .filter(({ [by]: digest }) => digest?.length === presented.length && timingSafeEqual(digest, presented))
    .map(({ client }) => client);
}

const sha256 = (bytes: Buffer) => hash('sha256', bytes, 'buffer');

/** @returns the fingerprint of a valid client certificate */
function createCertificateReader(): (socket: Socket) => Buffer | undefined {
  const certificates = new WeakMap<Socket, { readonly fingerprint: Buffer; readonly validToMs: number }>();
  return (socket) => {
    if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
    let known = certificates.get(socket);
    if (!known) {
      const certificate = socket.getPeerX509Certificate();
      if (!certificate) return undefined;
      known = { fingerprint: sha256(certificate.raw), validToMs: certificate.validToDate.getTime() };
      certificates.set(socket, known);
    }
    // It was verified when the TLS session began, and may have expired since.
    return known.validToMs < Date.now() ? undefined : known.fingerprint;
  };
}

function clientUnknown(configured: readonly ConfiguredClient[]): GatewayError {
  const byKey = configured.some(({ apiKeySha256 }) => apiKeySha256 !== undefined);
  if (!byKey) {
    return new GatewayError(
      'CLIENT_UNKNOWN',
      'The client certificate is missing or unknown; connect with the certificate of a configured client.',
      {
        tppCode: 'CERTIFICATE_MISSING',
      },
    );
  }
  return new GatewayError(
    'CLIENT_UNKNOWN',
    'X-API-Key is missing or unknown; send the API key of a configured client.',
    {
      field: 'X-API-Key',
    },
  );
}
