/** The certificates in use, as the admin API shows them, and the warning before they expire. */

import type { CertificateInfo } from './certificate-info.ts';

/**
 * `qwac`: TLS with the bank. `qseal`: signed requests. `listener`: TLS of the public API. `admin-listener`: of the admin API.
 * `notification-listener`: of the notifications of banks.
 */
export type CertificateUse = 'qwac' | 'qseal' | ListenerUse;

export type ListenerUse = 'listener' | 'admin-listener' | 'notification-listener';

export interface InstalledCertificate {
  /** Empty for the certificate of a listener. */
  readonly environment: string;
  readonly use: CertificateUse;
  readonly info: CertificateInfo;
}

/** A certificate in the admin API; times as in ISO 8601. */
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
  /** Whole days until it expires; negative afterwards. */
  readonly daysLeft: number;
}

/** @param nowMs milliseconds since 1970 */
export function certificateView(info: CertificateInfo, nowMs: number): CertificateView {
  const { notBeforeMs, notAfterMs, issuer: _issuer, der: _der, ...rest } = info;
  return {
    ...rest,
    notBefore: new Date(notBeforeMs).toISOString(),
    notAfter: new Date(notAfterMs).toISOString(),
    daysLeft: daysLeft(info, nowMs),
  };
}

/** Values of `penstock_certificate_expiry_seconds`. */
export const expirySamples = (certificates: readonly InstalledCertificate[]) =>
  certificates.map(({ environment, use, info }) => ({
    labels: { environment, use },
    value: info.notAfterMs / 1_000,
  }));

/** Renewing a qualified certificate takes weeks. */
const warningDays = 30;

/** @returns a sentence if the certificate expires soon or has expired @param nowMs milliseconds since 1970 */
export function expiryWarning(
  { environment, use, info }: InstalledCertificate,
  nowMs: number,
): string | undefined {
  const days = daysLeft(info, nowMs);
  if (days >= warningDays) return undefined;
  const name =
    environment === '' ? `the certificate of the ${useNames[use]}` : `the ${useNames[use]} of ${environment}`;
  const notAfter = new Date(info.notAfterMs).toISOString();
  return days < 0
    ? `${name} expired ${dayCount(-days)} ago, on ${notAfter}`
    : `${name} expires in ${dayCount(days)}, on ${notAfter}`;
}

const dayCount = (days: number) => (days === 1 ? '1 day' : `${days} days`);

const useNames = {
  qwac: 'QWAC',
  qseal: 'QSealC',
  listener: 'listener',
  'admin-listener': 'admin listener',
  'notification-listener': 'listener for the notifications of banks',
} as const;

const dayMs = 24 * 60 * 60 * 1_000;
const daysLeft = ({ notAfterMs }: CertificateInfo, nowMs: number) => Math.floor((notAfterMs - nowMs) / dayMs);
