/** TLS of a listener: its certificate, which is reloaded when the file changes, and the certificates of clients. */

import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { TlsOptions } from 'node:tls';
import { parseCertificate } from '../certificates/certificate-info.ts';
import { type ReadFile, readFromDisk, watchFiles } from '../certificates/file-watcher.ts';
import {
  expirySamples,
  type InstalledCertificate,
  type ListenerUse,
} from '../certificates/installed-certificates.ts';
import { throwKeyPairErrors, validateTls } from '../certificates/validate-key-pair.ts';
import type { ListenSettings } from '../config/schema.ts';
import { createCertificateLog } from '../telemetry/certificate-log.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import type { Timeline } from '../telemetry/timeline.ts';

type ListenerTlsSettings = NonNullable<ListenSettings['tls']>;

const handshakeTimeout = 10_000; // milliseconds

/** @throws Error that names the file, if one cannot be read or used */
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

export interface ListenerCertificate {
  /** Empty if the listener speaks plain HTTP. */
  certificates(): readonly InstalledCertificate[];
  /** Reloads changed files; new connections use them. Never rejects. */
  refresh(): Promise<void>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function watchListenerTls(
  tls: ListenSettings['tls'],
  server: Server,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
  timeline: Pick<Timeline, 'record'>,
  use: ListenerUse = 'listener',
): ListenerCertificate {
  if (!tls || !(server instanceof TlsServer)) return { certificates: () => [], refresh: async () => {} };
  const certificateLog = createCertificateLog(log, timeline);
  const watched = watchFiles(filesOf(tls), (read) => load(tls, read), {
    onInvalid: (why) => certificateLog.onRejected('', use, why),
    onChange({ options, info }) {
      server.setSecureContext(options);
      certificateLog.onRenewed('', use, info);
    },
  });
  const certificates = (): readonly InstalledCertificate[] => [
    { environment: '', use, info: watched.current().info },
  ];
  metrics.addGaugeSource('penstock_certificate_expiry_seconds', () => expirySamples(certificates()));
  return {
    certificates,
    refresh: watched.poll,
  };
}

const filesOf = ({ certFile, keyFile, clientCaFile }: ListenerTlsSettings): readonly string[] =>
  [certFile, keyFile, clientCaFile].filter((file) => file !== undefined);

const load = (tls: ListenerTlsSettings, read: ReadFile) => ({
  options: readListenerTls(tls, read) ?? {},
  info: parseCertificate(read(tls.certFile)),
});
