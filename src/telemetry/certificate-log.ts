/** Reports what happens when certificate files change. */

import type { CertificateInfo } from '../certificates/certificate-info.ts';
import type { CertificateUse } from '../certificates/installed-certificates.ts';
import type { Log } from './log.ts';
import type { Timeline } from './timeline.ts';

/** @param environment empty for the certificate of the listener */
export interface CertificateLog {
  /** The new files are in use. @param certificate `undefined` if only the trusted authorities have changed */
  onRenewed(environment: string, use: CertificateUse, certificate: CertificateInfo | undefined): void;
  /** The files have changed and cannot be used. */
  onRejected(environment: string, use: CertificateUse, why: string): void;
}

/** @param timeline receives the rejected files; certificate-timeline.ts notices the new ones */
export const createCertificateLog = (log: Log, timeline: Pick<Timeline, 'record'>): CertificateLog => ({
  onRenewed: (environment, use, certificate) =>
    log('info', 'certificate replaced', {
      environment,
      use,
      subject: certificate?.subject,
      serialNumber: certificate?.serialNumber,
      notAfter: certificate && new Date(certificate.notAfterMs).toISOString(),
    }),
  onRejected(environment, use, why) {
    const text = 'the new certificate is not usable; the old one stays in use';
    log('error', text, { environment, use, why });
    timeline.record({
      kind: 'certificate',
      text: `${text}: ${why}`,
      environment: environment || undefined,
      details: { event: 'rejected', use, why },
    });
  },
});
