/** What the gateway holds for one side of the bank: credentials and a seal, renewed with their files, and the connections. */

import { type FileWatcher, watchFiles } from '../certificates/file-watcher.ts';
import type { CertificateUse, InstalledCertificate } from '../certificates/installed-certificates.ts';
import type { EnvironmentSettings, UpstreamSettings } from '../config/schema.ts';
import type { CertificateLog } from '../telemetry/certificate-log.ts';
import { type ConnectionPool, createConnectionPool } from './connection-pool.ts';
import { credentialFiles, type LoadedCredentials, loadCredentials } from './credentials.ts';
import { createRequestSigner, type RequestSigner } from './request-signer.ts';

export interface EnvironmentConnections {
  /** The connections that are made with the credentials in use. */
  pool(): ConnectionPool;
  /** A pool of its own, with the same credentials. */
  createPool(): ConnectionPool;
  /** `undefined` if requests are not signed here. */
  readonly currentSigner: (() => RequestSigner) | undefined;
  certificates(): readonly InstalledCertificate[];
  /** Takes over what has changed on the disk. Never rejects. */
  pollFiles(): Promise<void>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function createEnvironmentConnections(
  environment: EnvironmentSettings,
  settings: UpstreamSettings,
  events: CertificateLog,
): EnvironmentConnections {
  const { name, tls, signing } = environment;
  const newPool = () => createConnectionPool(environment, settings, credentials.current().credentials);
  const credentials: FileWatcher<LoadedCredentials> = watchFiles(
    credentialFiles(tls),
    (read) => loadCredentials(tls, read),
    {
      onInvalid: (why) => events.onRejected(name, 'qwac', why),
      onChange({ certificate }) {
        pool.drain(); // whoever begins from now on takes the new one: a bank may refuse the old certificate from now on
        pool = newPool();
        events.onRenewed(name, 'qwac', certificate);
      },
    },
  );
  let pool = newPool();
  const signer = signing && watchSigner(name, signing, events);

  const installed = (use: CertificateUse, info: InstalledCertificate['info'] | undefined) =>
    info ? [{ environment: name, use, info }] : [];

  return {
    pool: () => pool,
    createPool: newPool,
    currentSigner: signer?.current,
    certificates: () => [
      ...installed('qwac', credentials.current().certificate),
      ...installed('qseal', signer?.current().certificate),
    ],
    async pollFiles() {
      await Promise.all([credentials.poll(), signer?.poll()]);
    },
  };
}

function watchSigner(
  environment: string,
  signing: NonNullable<EnvironmentSettings['signing']>,
  events: CertificateLog,
): FileWatcher<RequestSigner> {
  return watchFiles([signing.certFile, signing.keyFile], (read) => createRequestSigner(signing, read), {
    onInvalid: (why) => events.onRejected(environment, 'qseal', why),
    onChange: ({ certificate }) => events.onRenewed(environment, 'qseal', certificate),
  });
}
