/** What there is to say about a certificate. */

import { X509Certificate } from 'node:crypto';
import { objectIdIn, sequenceIn, tags, valuesIn } from './der.ts';
import { type Name, nameIn, nameText, organisationIdentifierIn } from './names.ts';
import { noStatements, type QcStatements, qcStatementsIn } from './qc-statements.ts';

/** Times in milliseconds since 1970. */
export interface CertificateFacts extends QcStatements {
  readonly subject: string;
  readonly issuer: Name;
  /** In upper-case hex. */
  readonly serialNumber: string;
  /** The PSP's number, such as `PSDDE-BAFIN-123456`. */
  readonly organisationIdentifier: string | null;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** In lower-case hex. */
  readonly sha256: string;
  /** The certificate itself. */
  readonly der: Buffer;
}

/** The facts about the first certificate in a PEM text, the holder's own. @throws Error if there is none */
export function factsOf(pem: Buffer): CertificateFacts {
  const certificate = new X509Certificate(pem);
  const [whole] = valuesIn(certificate.raw);
  const [content] = sequenceIn(whole);
  // Version, serial number, algorithm, issuer, validity, subject, key (RFC 5280 section 4.1); the first may be absent.
  const fields = sequenceIn(content);
  const [, , issuer, , subject] = fields[0]?.tag === tags.version ? fields.slice(1) : fields;
  const name = nameIn(subject);
  return {
    subject: nameText(name),
    issuer: nameIn(issuer),
    serialNumber: certificate.serialNumber,
    organisationIdentifier: organisationIdentifierIn(name),
    ...statementsIn(fields.find(({ tag }) => tag === tags.extensions)?.content),
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
    sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    der: certificate.raw,
  };
}

/** What an issuer has written oddly is taken for not stated: the certificate may be good for all else. */
function statementsIn(extensions: Buffer | undefined): QcStatements {
  try {
    const [list] = valuesIn(extensions ?? Buffer.alloc(0));
    const values = list ? sequenceIn(list).map((one) => sequenceIn(one)) : [];
    const found = values.find(([id]) => objectIdIn(id) === '1.3.6.1.5.5.7.1.3');
    return found ? qcStatementsIn(found.at(-1)?.content ?? Buffer.alloc(0)) : noStatements;
  } catch (cause) {
    if (cause instanceof RangeError) return noStatements;
    throw cause;
  }
}
