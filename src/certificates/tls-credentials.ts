/** The TLS credentials with which the gateway connects to a bank or to Redis: client certificate, authorities, expected server name. */

import type { SecureContextOptions } from 'node:tls';
import { type CertificateInfo, parseCertificate } from './certificate-info.ts';
import type { ReadFile } from './file-watcher.ts';
import { throwKeyPairErrors, validateTls } from './validate-key-pair.ts';

/** `cert` is the client certificate, at a bank the QWAC; `servername` is expected in the server's certificate. */
export type Credentials = Pick<SecureContextOptions, 'cert' | 'key' | 'ca'> & {
  readonly servername?: string;
};

/** The files of a TLS client. */
interface ClientTlsSettings {
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly caFile?: string | undefined;
  readonly serverName?: string | undefined;
}

export interface LoadedCredentials {
  readonly credentials: Credentials;
  readonly certificate: CertificateInfo | undefined;
}

/** The files that `loadCredentials` reads. */
export const credentialFiles = ({ certFile, keyFile, caFile }: ClientTlsSettings = {}): readonly string[] =>
  [certFile, keyFile, caFile].filter((file) => file !== undefined);

/** @throws Error that names the file, if one cannot be read or used */
export function loadCredentials(tls: ClientTlsSettings = {}, read: ReadFile): LoadedCredentials {
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
