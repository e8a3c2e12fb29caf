/** The TLS credentials for one environment of the bank: client certificate, authorities, expected server name. */

import type { SecureContextOptions } from 'node:tls';
import { type CertificateInfo, parseCertificate } from '../certificates/certificate-info.ts';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { throwKeyPairErrors, validateTls } from '../certificates/validate-key-pair.ts';
import type { EnvironmentTlsSettings } from '../config/schema.ts';

/** `cert` is the client certificate (QWAC); `servername` is expected in the bank's certificate. */
export type Credentials = Pick<SecureContextOptions, 'cert' | 'key' | 'ca'> & {
  readonly servername?: string;
};

export interface LoadedCredentials {
  readonly credentials: Credentials;
  readonly certificate: CertificateInfo | undefined;
}

/** The files that `loadCredentials` reads. */
export const credentialFiles = ({
  certFile,
  keyFile,
  caFile,
}: EnvironmentTlsSettings = {}): readonly string[] =>
  [certFile, keyFile, caFile].filter((file) => file !== undefined);

/** @throws Error that names the file, if one cannot be read or used */
export function loadCredentials(tls: EnvironmentTlsSettings = {}, read: ReadFile): LoadedCredentials {
  const { certFile, keyFile, caFile, serverName } = tls;
  const pair =
    certFile !== undefined && keyFile !== undefined
      ? { cert: read(certFile), key: read(keyFile) }
      : undefined;
  const ca = caFile === undefined ? undefined : read(caFile);
  const files = { cert: certFile ?? '', key: keyFile ?? '', ca: caFile ?? '' };
  throwKeyPairErrors(validateTls({ pair, ca }, Date.now()), files);
  return {
    credentials: { ...pair, ...(ca && { ca }), ...(serverName !== undefined && { servername: serverName }) },
    certificate: pair && parseCertificate(pair.cert),
  };
}
