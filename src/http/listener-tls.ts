/** TLS at the TPP systems' door, and whether they show a certificate of their own. */

import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { TlsOptions } from 'node:tls';
import { factsOf } from '../certificates/facts.ts';
import type { HeldCertificate } from '../certificates/held.ts';
import { refuseFaults, tlsFaults } from '../certificates/key-pair.ts';
import { type Read, readNow, watchFiles } from '../certificates/watched-files.ts';
import type { ListenSettings } from '../config/schema.ts';
import type { CertificateNews } from '../telemetry/certificate-news.ts';

type ListenerTlsSettings = NonNullable<ListenSettings['tls']>;

/** How long a TLS handshake may take, in milliseconds. */
const handshakeTimeout = 10_000;

/**
 * What the listener's TLS is made with.
 *
 * @throws Error that names the file, if one cannot be read or used
 */
export function readListenerTls(tls: ListenSettings['tls'], read: Read = readNow): TlsOptions | undefined {
  if (!tls) return undefined;
  const { certFile, keyFile, clientCaFile, clientCertificate } = tls;
  const pair = { cert: read(certFile), key: read(keyFile) };
  const ca = clientCaFile === undefined ? undefined : read(clientCaFile);
  refuseFaults(tlsFaults({ pair, ca }, Date.now()), { cert: certFile, key: keyFile, ca: clientCaFile ?? '' });
  return {
    ...pair,
    ...(ca && { ca }),
    minVersion: 'TLSv1.2',
    requestCert: clientCertificate !== 'off',
    rejectUnauthorized: clientCertificate === 'required',
    handshakeTimeout,
  };
}

/** The certificate of a door, followed on the disk. */
export interface ListenerCertificate {
  /** None if the door speaks plain HTTP. */
  certificates(): readonly HeldCertificate[];
  /** Takes over what has changed, for connections to come. Never rejects. */
  look(): Promise<void>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function watchListenerTls(
  tls: ListenSettings['tls'],
  server: Server,
  news: CertificateNews,
): ListenerCertificate {
  if (!tls || !(server instanceof TlsServer)) return { certificates: () => [], look: async () => {} };
  const watched = watchFiles(filesOf(tls), (read) => made(tls, read), {
    kept: (why) => news.kept('', 'listener', why),
    renewed({ options, facts }) {
      server.setSecureContext(options);
      news.renewed('', 'listener', facts);
    },
  });
  return {
    certificates: () => [{ environment: '', use: 'listener', facts: watched.current().facts }],
    look: watched.look,
  };
}

const filesOf = ({ certFile, keyFile, clientCaFile }: ListenerTlsSettings): readonly string[] =>
  [certFile, keyFile, clientCaFile].filter((file) => file !== undefined);

const made = (tls: ListenerTlsSettings, read: Read) => ({
  options: readListenerTls(tls, read) ?? {},
  facts: factsOf(read(tls.certFile)),
});
