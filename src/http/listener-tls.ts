/** TLS at the TPP systems' door, and whether they show a certificate of their own. */

import { readFileSync } from 'node:fs';
import type { TlsOptions } from 'node:tls';
import type { ListenSettings } from '../config/schema.ts';

/** How long a TLS handshake may take, in milliseconds. */
const handshakeTimeout = 10_000;

/**
 * What the listener's TLS is made with; read once.
 *
 * @throws Error that names the file, if one cannot be read
 */
export function readListenerTls(tls: ListenSettings['tls']): TlsOptions | undefined {
  if (!tls) return undefined;
  const { certFile, keyFile, clientCaFile, clientCertificate } = tls;
  return {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ...(clientCaFile !== undefined && { ca: readFileSync(clientCaFile) }),
    minVersion: 'TLSv1.2',
    requestCert: clientCertificate !== 'off',
    rejectUnauthorized: clientCertificate === 'required',
    handshakeTimeout,
  };
}
