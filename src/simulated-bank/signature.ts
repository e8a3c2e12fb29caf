/** Verifies signed requests: NextGenPSD2 XS2A, implementation guidelines, section 12. */
import { verify, X509Certificate } from 'node:crypto';
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { BankError } from './bank-error.ts';
import { assertDigest } from './digest.ts';

const algorithms: Readonly<Record<string, { readonly hash: string; readonly keyType: string }>> = {
  'rsa-sha256': { hash: 'sha256', keyType: 'rsa' },
  'rsa-sha512': { hash: 'sha512', keyType: 'rsa' },
  'ecdsa-sha256': { hash: 'sha256', keyType: 'ec' },
};

const requiredHeaders = ['digest', 'x-request-id'];
const optionalHeaders = ['psu-id', 'psu-corporate-id', 'tpp-redirect-uri'];
const allowed = new Set([...requiredHeaders, ...optionalHeaders, 'date']);

/**
 * @param authority the CA certificate of accepted QSealCs, as PEM
 * @throws BankError 401 SIGNATURE_MISSING, SIGNATURE_INVALID or CERTIFICATE_INVALID, 400 FORMAT_ERROR
 */
export function assertSignature(authority: string, headers: HeaderFields, body: Buffer): void {
  const value = headerValue(headers, 'signature');
  if (value === undefined)
    throw new BankError(401, 'SIGNATURE_MISSING', 'Signature is missing', { path: 'Signature' });
  const { keyId = '', algorithm = '', headers: list = '', signature = '' } = parametersOf(value);

  const certificate = sealCertificateOf(headers, authority);
  if (!keyId.startsWith(`SN=${certificate.serialNumber},CA=`))
    throw invalid('keyId does not begin with the serial number');
  if (!sameParts(keyId.slice(keyId.indexOf('CA=') + 3), certificate.issuer))
    throw invalid('keyId does not name the issuer of the certificate');

  const names = list.split(' ');
  const wanted = [
    ...requiredHeaders,
    ...optionalHeaders.filter((name) => headerValue(headers, name) !== undefined),
  ];
  const lacking = wanted.find((name) => !names.includes(name));
  if (lacking) throw invalid(`${lacking} is not signed`);
  const strange = names.find((name) => !allowed.has(name) || headerValue(headers, name) === undefined);
  if (strange !== undefined) throw invalid('the signature covers a header that is not allowed or missing');

  const row = algorithms[algorithm];
  if (!row || certificate.publicKey.asymmetricKeyType !== row.keyType)
    throw invalid('the algorithm does not match the key');
  const text = names.map((name) => `${name}: ${headerValue(headers, name)}`).join('\n');
  const signed = verify(
    row.hash,
    Buffer.from(text, 'latin1'),
    certificate.publicKey,
    Buffer.from(signature, 'base64'),
  );
  if (!signed) throw invalid('the signature does not match the signed headers');
  assertDigest(headers, body);
}

const invalid = (text: string) => new BankError(401, 'SIGNATURE_INVALID', text, { path: 'Signature' });

/** `name="value"`, separated by commas; a value may contain commas itself. */
const parametersOf = (value: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Array.from(value.matchAll(/(\w+)="([^"]*)"/g), ([, name = '', text = '']) => [name, text]),
  );

function sealCertificateOf(headers: HeaderFields, authority: string): X509Certificate {
  const field = headerValue(headers, 'tpp-signature-certificate') ?? '';
  const path = 'TPP-Signature-Certificate';
  const certificate = parseSealCertificate(field);
  if (!certificate)
    throw new BankError(400, 'FORMAT_ERROR', `${path} contains no certificate in base64`, { path });
  const issuer = new X509Certificate(authority);
  const now = Date.now();
  const valid = certificate.validFromDate.getTime() <= now && now <= certificate.validToDate.getTime();
  if (valid && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)) return certificate;
  throw new BankError(401, 'CERTIFICATE_INVALID', 'The certificate of the signature is not trusted', {
    path,
  });
}

function parseSealCertificate(base64: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64'));
  } catch {
    return undefined;
  }
}

/** Compares names in any order: some programs write a name from its end. @param lines as Node writes a name: one part per line */
function sameParts(written: string, lines: string): boolean {
  const parts = written.split(',').map(decodeURIComponent);
  const expected = lines.split('\n').map((line) => line.replace(/\\(.)/g, '$1'));
  return parts.toSorted().join('\n') === expected.toSorted().join('\n');
}
