/** Certificates in the timeline: when one is in use for the first time, and when it is about to expire. */

import { expiryWarning, type InstalledCertificate } from '../certificates/installed-certificates.ts';
import type { Timeline } from './timeline.ts';

/** Below so many days until the end, an entry says so; 0: it has expired. */
const thresholdDays = [0, 1, 7, 30];

const dayMs = 24 * 3_600_000;

/** @returns is called regularly with the certificates in use */
export function createCertificateTimeline(
  timeline: Pick<Timeline, 'record'>,
  now: () => number = Date.now,
): (certificates: readonly InstalledCertificate[]) => void {
  /** The recorded certificates and thresholds. */
  const recorded = new Set<string>();
  let isFirstCall = true;

  function recordOnce(key: string, record: () => void): void {
    if (recorded.has(key)) return;
    recorded.add(key);
    record();
  }

  function recordLoaded({ environment, use, info }: InstalledCertificate, key: string): void {
    const { subject, serialNumber, sha256, notAfterMs } = info;
    const notAfter = new Date(notAfterMs).toISOString();
    timeline.record({
      kind: 'certificate',
      text: `${placeOf(environment, use)}: certificate in use until ${notAfter}`,
      environment: environment || undefined,
      details: { event: 'loaded', use, subject, serialNumber, sha256, notAfter },
      id: isFirstCall ? key : undefined, // after the start, each instance loads a new certificate at its own time
    });
  }

  function recordExpiry(certificate: InstalledCertificate, key: string): void {
    const { environment, use, info } = certificate;
    const warning = expiryWarning(certificate, now());
    if (warning === undefined) return;
    timeline.record({
      kind: 'certificate',
      text: warning,
      environment: environment || undefined,
      details: { event: 'expiring', use, notAfter: new Date(info.notAfterMs).toISOString() },
      id: key,
    });
  }

  return (certificates) => {
    for (const certificate of certificates) {
      const { environment, use, info } = certificate;
      const key = `certificate:${environment}:${use}:${info.sha256}`;
      recordOnce(key, () => recordLoaded(certificate, key));
      const threshold = thresholdDays.find((days) => info.notAfterMs - now() < days * dayMs);
      const expiryKey = `${key}:${threshold}`;
      if (threshold !== undefined) recordOnce(expiryKey, () => recordExpiry(certificate, expiryKey));
    }
    isFirstCall = false;
  };
}

const placeOf = (environment: string, use: InstalledCertificate['use']) =>
  environment === '' ? 'listener' : `${environment}, ${use === 'qwac' ? 'QWAC' : 'QSealC'}`;
