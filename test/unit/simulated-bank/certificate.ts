/** A key and self-signed certificates for 127.0.0.1, made anew at each run: no private key lies in the repository. */
import { generateKeyPairSync } from 'node:crypto';
import { selfSignedCertificate } from '../../../src/simulated-bank/self-signed-certificate.ts';

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** PEM. */
export const certificate = certificateValid('2025-01-01', '2049-12-31');

/** PEM. */
export const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** PEM. @param from the day of its first second, as in `2025-01-01` @param until the day of its last */
export function certificateValid(from: string, until: string): string {
  return selfSignedCertificate(pair, {
    hosts: ['127.0.0.1'],
    from: new Date(`${from}T00:00:00Z`),
    until: new Date(`${until}T23:59:59Z`),
  });
}
