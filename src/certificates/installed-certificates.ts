/** The certificates that a gateway holds, as operators see them. */

import type { CertificateInfo } from './certificate-info.ts';

/** What it is shown or used for: TLS with the bank, signing requests, TLS at the door. */
export type CertificateUse = 'qwac' | 'qseal' | 'listener';

/** One certificate, and where it is used. */
export interface InstalledCertificate {
  /** Empty for the one at the door. */
  readonly environment: string;
  readonly use: CertificateUse;
  readonly info: CertificateInfo;
}

/** One certificate as the operators' API tells it; times as ISO 8601. */
export interface CertificateView {
  readonly subject: string;
  readonly organisationIdentifier: string | null;
  readonly roles: readonly string[];
  readonly authority: { readonly id: string; readonly name: string } | null;
  readonly qcType: string | null;
  readonly serialNumber: string;
  readonly sha256: string;
  readonly notBefore: string;
  readonly notAfter: string;
  /** Whole days that are left; negative once it has expired. */
  readonly daysLeft: number;
}

/** @param nowMs milliseconds since 1970 */
export function certificateView(facts: CertificateInfo, nowMs: number): CertificateView {
  const { notBeforeMs, notAfterMs, issuer: _issuer, der: _der, ...rest } = facts;
  return {
    ...rest,
    notBefore: new Date(notBeforeMs).toISOString(),
    notAfter: new Date(notAfterMs).toISOString(),
    daysLeft: daysLeft(facts, nowMs),
  };
}

/** When operators are warned: renewing a qualified certificate takes weeks. */
const warningDays = 30;

/** A sentence if it expires soon or has expired. @param nowMs milliseconds since 1970 */
export function expiryWarning(
  { environment, use, info }: InstalledCertificate,
  nowMs: number,
): string | undefined {
  const days = daysLeft(info, nowMs);
  if (days >= warningDays) return undefined;
  const whose =
    environment === '' ? 'the certificate of the listener' : `the ${useNames[use]} of ${environment}`;
  const until = new Date(info.notAfterMs).toISOString();
  return days < 0 ? `${whose} has expired on ${until}` : `${whose} expires in ${days} days, on ${until}`;
}

const useNames = { qwac: 'QWAC', qseal: 'QSEAL', listener: 'listener certificate' } as const;

const dayMs = 24 * 60 * 60 * 1_000;
const daysLeft = ({ notAfterMs }: CertificateInfo, nowMs: number) => Math.floor((notAfterMs - nowMs) / dayMs);
