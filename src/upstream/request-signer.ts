/**
 * Signs requests to the bank with `Digest`, `Signature` and `TPP-Signature-Certificate`: as the last step, over exactly the
 * bytes that are sent (NextGenPSD2 XS2A, implementation guidelines, section 12; draft-cavage-http-signatures-12).
 */

import { createHash, createPrivateKey, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { type CertificateInfo, parseCertificate } from '../certificates/certificate-info.ts';
import { formatNameForHeader } from '../certificates/distinguished-name.ts';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { signatureAlgorithms, validateSigningKeyPair } from '../certificates/signature-algorithms.ts';
import { throwKeyPairErrors } from '../certificates/validate-key-pair.ts';
import type { SigningSettings } from '../config/schema.ts';
import { type HeaderFields, headerValue, headerValues, withoutFields } from '../pis/headers.ts';

/** Fields and body as they will be sent. */
interface SignableRequest {
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

export interface RequestSigner {
  readonly certificate: CertificateInfo;
  /** @returns the fields with a signature; unchanged if the TPP has signed the request itself */
  readonly sign: (request: SignableRequest) => Promise<HeaderFields>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function createRequestSigner(
  { certFile, keyFile, algorithm }: SigningSettings,
  read: ReadFile,
): RequestSigner {
  const pair = { cert: read(certFile), key: read(keyFile) };
  throwKeyPairErrors(validateSigningKeyPair(pair, algorithm, Date.now()), { cert: certFile, key: keyFile });
  const info = parseCertificate(pair.cert);
  const privateKey = createPrivateKey(pair.key);
  const { hash, digest } = signatureAlgorithms[algorithm];
  const keyId = `SN=${info.serialNumber},CA=${formatNameForHeader(info.issuer)}`;
  const certificate = info.der.toString('base64');

  return {
    certificate: info,
    async sign({ headers, body }) {
      if (headerValue(headers, 'signature') !== undefined) return headers;
      const bodyHash = createHash(hash).update(body).digest('base64');
      const withDigest: HeaderFields = [
        ...withoutFields(headers, replacedHeaders),
        ['Digest', `${digest}=${bodyHash}`],
      ];
      const signedNames = signedHeaders.filter((name) => headerValue(withDigest, name) !== undefined);
      // node:http sends fields as Latin-1.
      const signature = await signInThreadPool(
        hash,
        Buffer.from(signingString(withDigest, signedNames), 'latin1'),
        privateKey,
      );
      const parameters = `keyId="${keyId}",algorithm="${algorithm}",headers="${signedNames.join(' ')}"`;
      return [
        ...withDigest,
        ['Signature', `${parameters},signature="${signature.toString('base64')}"`],
        ['TPP-Signature-Certificate', certificate],
      ];
    },
  };
}

/** Replaced, because the TPP has sent them without a signature. */
const replacedHeaders: ReadonlySet<string> = new Set(['digest', 'tpp-signature-certificate']);

/** Signed if present: the fields that the standard lists, and `Date`, which many banks require. */
const signedHeaders = ['digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'date', 'tpp-redirect-uri'];

/** One line for each field, in the order of `names` (section 2.3 of the draft). */
const signingString = (headers: HeaderFields, names: readonly string[]): string =>
  names.map((name) => `${name}: ${headerValues(headers, name).join(', ')}`).join('\n');

/** Not on the main thread: a signature takes half a millisecond. */
const signInThreadPool = promisify(sign);
