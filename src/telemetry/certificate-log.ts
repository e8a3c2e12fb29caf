/** What becomes of certificates whose files change, for the log. */

import type { CertificateInfo } from '../certificates/certificate-info.ts';
import type { CertificateUse } from '../certificates/installed-certificates.ts';
import type { Log } from './log.ts';

/** @param environment empty for the certificate at the door */
export interface CertificateLog {
  /** What the files hold is in use now; without facts, only authorities have changed. */
  onRenewed(environment: string, use: CertificateUse, facts: CertificateInfo | undefined): void;
  /** The files have changed and cannot be used. */
  onRejected(environment: string, use: CertificateUse, why: string): void;
}

export const createCertificateLog = (log: Log): CertificateLog => ({
  onRenewed: (environment, use, facts) =>
    log('info', 'the certificate was changed', {
      environment,
      use,
      subject: facts?.subject,
      serialNumber: facts?.serialNumber,
      notAfter: facts && new Date(facts.notAfterMs).toISOString(),
    }),
  onRejected: (environment, use, why) =>
    log('error', 'the new certificate cannot be used; the old one stays', { environment, use, why }),
});
