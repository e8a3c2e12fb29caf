/** What becomes of certificates whose files change, for the log. */

import type { CertificateFacts } from '../certificates/facts.ts';
import type { CertificateUse } from '../certificates/held.ts';
import type { Log } from './log.ts';

/** @param environment empty for the certificate at the door */
export interface CertificateNews {
  /** What the files hold is in use now; without facts, only authorities have changed. */
  renewed(environment: string, use: CertificateUse, facts: CertificateFacts | undefined): void;
  /** The files have changed and cannot be used. */
  kept(environment: string, use: CertificateUse, why: string): void;
}

export const createCertificateNews = (log: Log): CertificateNews => ({
  renewed: (environment, use, facts) =>
    log('info', 'the certificate was changed', {
      environment,
      use,
      subject: facts?.subject,
      serialNumber: facts?.serialNumber,
      notAfter: facts && new Date(facts.notAfterMs).toISOString(),
    }),
  kept: (environment, use, why) =>
    log('error', 'the new certificate cannot be used; the old one stays', { environment, use, why }),
});
