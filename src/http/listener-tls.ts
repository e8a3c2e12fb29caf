/** TLS at the TPP systems' door, and whether they show a certificate of their own. */

import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { TlsOptions } from 'node:tls';
import { parseCertificate } from '../certificates/certificate-info.ts';
import { type ReadFile, readFromDisk, watchFiles } from '../certificates/file-watcher.ts';
import { expirySamples, type InstalledCertificate } from '../certificates/installed-certificates.ts';
import { throwKeyPairErrors, validateTls } from '../certificates/validate-key-pair.ts';
import type { ListenSettings } from '../config/schema.ts';
import { createCertificateLog } from '../telemetry/certificate-log.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';

type ListenerTlsSettings = NonNullable<ListenSettings['tls']>;

/** How long a TLS handshake may take, in milliseconds. */
const handshakeTimeout = 10_000;

/**
 * What the listener's TLS is made with.
 *
 * @throws Error that names the file, if one cannot be read or used
 */
export function readListenerTls(
  tls: ListenSettings['tls'],
  read: ReadFile = readFromDisk,
): TlsOptions | undefined {
  if (!tls) return undefined;
  const { certFile, keyFile, clientCaFile, clientCertificate } = tls;
  const pair = { cert: read(certFile), key: read(keyFile) };
  const ca = clientCaFile === undefined ? undefined : read(clientCaFile);
  throwKeyPairErrors(validateTls({ pair, ca }, Date.now()), {
    cert: certFile,
    key: keyFile,
    ca: clientCaFile ?? '',
  });
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
  certificates(): readonly InstalledCertificate[];
  /** Takes over what has changed, for connections to come. Never rejects. */
  refresh(): Promise<void>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function watchListenerTls(
  tls: ListenSettings['tls'],
  server: Server,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
): ListenerCertificate {
  if (!tls || !(server instanceof TlsServer)) return { certificates: () => [], refresh: async () => {} };
  const certificateLog = createCertificateLog(log);
  const watched = watchFiles(filesOf(tls), (read) => made(tls, read), {
    onInvalid: (why) => certificateLog.onRejected('', 'listener', why),
    onChange({ options, facts }) {
      server.setSecureContext(options);
      certificateLog.onRenewed('', 'listener', facts);
    },
  });
  const certificates = (): readonly InstalledCertificate[] => [
    { environment: '', use: 'listener', info: watched.current().facts },
  ];
  metrics.addGaugeSource('penstock_certificate_expiry_seconds', () => expirySamples(certificates()));
  return {
    certificates,
    refresh: watched.poll,
  };
}

const filesOf = ({ certFile, keyFile, clientCaFile }: ListenerTlsSettings): readonly string[] =>
  [certFile, keyFile, clientCaFile].filter((file) => file !== undefined);

const made = (tls: ListenerTlsSettings, read: ReadFile) => ({
  options: readListenerTls(tls, read) ?? {},
  facts: parseCertificate(read(tls.certFile)),
});
