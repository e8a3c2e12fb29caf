/** Logs what happens when certificate files change. */

import type { CertificateInfo } from '../certificates/certificate-info.ts';
import type { CertificateUse } from '../certificates/installed-certificates.ts';
import type { Log } from './log.ts';

/** @param environment empty for the certificate of the listener */
export interface CertificateLog {
  /** The new files are in use. @param certificate `undefined` if only the trusted authorities have changed */
  onRenewed(environment: string, use: CertificateUse, certificate: CertificateInfo | undefined): void;
  /** The files have changed and cannot be used. */
  onRejected(environment: string, use: CertificateUse, why: string): void;
}

export const createCertificateLog = (log: Log): CertificateLog => ({
  onRenewed: (environment, use, certificate) =>
    log('info', 'certificate replaced', {
      environment,
      use,
      subject: certificate?.subject,
      serialNumber: certificate?.serialNumber,
      notAfter: certificate && new Date(certificate.notAfterMs).toISOString(),
    }),
  onRejected: (environment, use, why) =>
    log('error', 'the new certificate is not usable; the old one stays in use', { environment, use, why }),
});
