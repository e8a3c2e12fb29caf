/** The connection pool and the request signer of one environment, both renewed when their certificate files change. */

import { type FileWatcher, readFromDisk, watchFiles } from '../certificates/file-watcher.ts';
import type { CertificateUse, InstalledCertificate } from '../certificates/installed-certificates.ts';
import { credentialFiles, type LoadedCredentials, loadCredentials } from '../certificates/tls-credentials.ts';
import type { EnvironmentSettings, UpstreamSettings } from '../config/schema.ts';
import type { CertificateLog } from '../telemetry/certificate-log.ts';
import { type ConnectionPool, createConnectionPool } from './connection-pool.ts';
import { egressProxyFor } from './egress-proxy.ts';
import { createRequestSigner, type RequestSigner } from './request-signer.ts';

export interface EnvironmentConnections {
  /** The pool with the current credentials. */
  pool(): ConnectionPool;
  /** Creates a separate pool with the current credentials. */
  createPool(): ConnectionPool;
  /** `undefined` if requests to this environment are not signed. */
  readonly currentSigner: (() => RequestSigner) | undefined;
  certificates(): readonly InstalledCertificate[];
  /** Applies changed certificate files. Never rejects. */
  pollFiles(): Promise<void>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function createEnvironmentConnections(
  environment: EnvironmentSettings,
  settings: UpstreamSettings,
  events: CertificateLog,
): EnvironmentConnections {
  const { name, tls, signing } = environment;
  const proxy = egressProxyFor(environment.origin, settings, readFromDisk);
  const createPool = () =>
    createConnectionPool(environment, settings, credentials.current().credentials, proxy);
  const credentials: FileWatcher<LoadedCredentials> = watchFiles(
    credentialFiles(tls),
    (read) => loadCredentials(tls, read),
    {
      onInvalid: (why) => events.onRejected(name, 'qwac', why),
      onChange({ certificate }) {
        pool.drain(); // the bank may refuse the old certificate from now on
        pool = createPool();
        events.onRenewed(name, 'qwac', certificate);
      },
    },
  );
  let pool = createPool();
  const signer =
    signing &&
    watchFiles(
      [signing.certFile, signing.keyFile],
      (read) => createRequestSigner(signing, read, new URL(environment.origin).host),
      {
        onInvalid: (why) => events.onRejected(name, 'qseal', why),
        onChange: ({ certificate }) => events.onRenewed(name, 'qseal', certificate),
      },
    );

  const installed = (use: CertificateUse, info: InstalledCertificate['info'] | undefined) =>
    info ? [{ environment: name, use, info }] : [];

  return {
    pool: () => pool,
    createPool,
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
