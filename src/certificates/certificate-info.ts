/** Parses a certificate into the fields that the gateway reports, checks and signs with. */

import { X509Certificate } from 'node:crypto';
import { parseObjectId, parseSequence, parseValues, tags } from './der.ts';
import {
  type DistinguishedName,
  formatName,
  organisationIdentifierOf,
  parseName,
} from './distinguished-name.ts';
import { noStatements, parseQcStatements, type QcStatements } from './qc-statements.ts';

/** Times in milliseconds since 1970. */
export interface CertificateInfo extends QcStatements {
  readonly subject: string;
  readonly issuer: DistinguishedName;
  /** In upper-case hex. */
  readonly serialNumber: string;
  /** The PSP's number, such as `PSDDE-BAFIN-123456`. */
  readonly organisationIdentifier: string | null;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** In lower-case hex. */
  readonly sha256: string;
  /** The whole certificate. */
  readonly der: Buffer;
}

/** Parses the first certificate of a PEM file: the leaf of a chain. @throws Error if there is none */
export function parseCertificate(pem: Buffer): CertificateInfo {
  const certificate = new X509Certificate(pem);
  const [whole] = parseValues(certificate.raw);
  const [content] = parseSequence(whole);
  // version (optional), serial number, algorithm, issuer, validity, subject, key (RFC 5280 section 4.1)
  const fields = parseSequence(content);
  const [, , issuer, , subject] = fields[0]?.tag === tags.version ? fields.slice(1) : fields;
  const name = parseName(subject);
  return {
    subject: formatName(name),
    issuer: parseName(issuer),
    serialNumber: certificate.serialNumber,
    organisationIdentifier: organisationIdentifierOf(name),
    ...qcStatementsOf(fields.find(({ tag }) => tag === tags.extensions)?.content),
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
    sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    der: certificate.raw,
  };
}

/** Ignores malformed QC statements: the certificate may be valid in every other respect. */
function qcStatementsOf(extensions: Buffer | undefined): QcStatements {
  try {
    const [list] = parseValues(extensions ?? Buffer.alloc(0));
    const values = list ? parseSequence(list).map((one) => parseSequence(one)) : [];
    const found = values.find(([id]) => parseObjectId(id) === '1.3.6.1.5.5.7.1.3');
    return found ? parseQcStatements(found.at(-1)?.content ?? Buffer.alloc(0)) : noStatements;
  } catch (cause) {
    if (cause instanceof RangeError) return noStatements;
    throw cause;
  }
}
