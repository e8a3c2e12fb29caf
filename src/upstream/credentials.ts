/** What the gateway shows to one side of the bank, and whom it believes there; read from files at start and reload. */

import { readFileSync } from 'node:fs';
import type { SecureContextOptions } from 'node:tls';
import type { EnvironmentTlsSettings } from '../config/schema.ts';

/** The client certificate (QWAC) with its key, the authorities, and the name expected in the bank's certificate. */
export type Credentials = Pick<SecureContextOptions, 'cert' | 'key' | 'ca'> & {
  readonly servername?: string;
};

/** @throws Error that names the file, if one cannot be read */
export function readCredentials(tls: EnvironmentTlsSettings | undefined): Credentials {
  if (!tls) return {};
  const { certFile, keyFile, caFile, serverName } = tls;
  return {
    ...(certFile !== undefined && { cert: readFileSync(certFile) }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(serverName !== undefined && { servername: serverName }),
  };
}
