/** The domains that a certificate names, and whether a host belongs to one of them. */

import { X509Certificate } from 'node:crypto';

/** The common name, and the DNS names of SubjectAltName. @param pem the first certificate counts @throws Error if there is none */
export function certificateNames(pem: Buffer): readonly string[] {
  const { subject, subjectAltName = '' } = new X509Certificate(pem);
  const commonNames = subject
    .split('\n')
    .filter((line) => line.startsWith('CN='))
    .map((line) => line.slice('CN='.length));
  const alternatives = subjectAltName
    .split(', ')
    .filter((name) => name.startsWith('DNS:'))
    .map((name) => name.slice('DNS:'.length));
  return [...new Set([...commonNames, ...alternatives])];
}

/**
 * Whether a host complies with a name of a certificate, as the standard says of `TPP-Notification-URI` (1.3.11): it is the name itself,
 * or below it. A wildcard stands for one label.
 */
export function isInDomain(host: string, name: string): boolean {
  const labelsOf = (text: string) => text.toLowerCase().replace(/\.$/, '').split('.');
  const [hostLabels, nameLabels] = [labelsOf(host), labelsOf(name)];
  if (nameLabels.length < 2 && nameLabels[0] !== 'localhost') return false; // no domain: a person, or a product
  const end = hostLabels.slice(-nameLabels.length);
  return (
    end.length === nameLabels.length &&
    nameLabels.every((label, at) => label === end[at] || (label === '*' && at === 0))
  );
}
