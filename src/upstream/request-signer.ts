/**
 * Seals requests to the bank: `Digest`, `Signature` and `TPP-Signature-Certificate`, last, over exactly the bytes that are
 * sent (NextGenPSD2 XS2A, implementation guidelines, section 12; draft-cavage-http-signatures-12).
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

/** What is sealed: the fields and the body as they will be sent. */
interface SignableRequest {
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

export interface RequestSigner {
  readonly certificate: CertificateInfo;
  /** The fields to send instead: with a seal, unless the TPP has signed the request itself. */
  readonly sign: (request: SignableRequest) => Promise<HeaderFields>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function createRequestSigner(
  { certFile, keyFile, algorithm }: SigningSettings,
  read: ReadFile,
): RequestSigner {
  const pair = { cert: read(certFile), key: read(keyFile) };
  throwKeyPairErrors(validateSigningKeyPair(pair, algorithm, Date.now()), { cert: certFile, key: keyFile });
  const facts = parseCertificate(pair.cert);
  const secret = createPrivateKey(pair.key);
  const { hash, digest } = signatureAlgorithms[algorithm];
  const keyId = `SN=${facts.serialNumber},CA=${formatNameForHeader(facts.issuer)}`;
  const certificate = facts.der.toString('base64');

  return {
    certificate: facts,
    async sign({ headers, body }) {
      if (headerValue(headers, 'signature') !== undefined) return headers;
      const bodyHash = createHash(hash).update(body).digest('base64');
      const digested: HeaderFields = [
        ...withoutFields(headers, replacedHeaders),
        ['Digest', `${digest}=${bodyHash}`],
      ];
      const names = signedHeaders.filter((name) => headerValue(digested, name) !== undefined);
      // Fields go over the wire as Latin-1: so they are signed.
      const signature = await signInThreadPool(
        hash,
        Buffer.from(signingString(digested, names), 'latin1'),
        secret,
      );
      const signed = `keyId="${keyId}",algorithm="${algorithm}",headers="${names.join(' ')}"`;
      return [
        ...digested,
        ['Signature', `${signed},signature="${signature.toString('base64')}"`],
        ['TPP-Signature-Certificate', certificate],
      ];
    },
  };
}

/** Without a signature, these say nothing that the seal would not say. */
const replacedHeaders: ReadonlySet<string> = new Set(['digest', 'tpp-signature-certificate']);

/** What the standard has signed, where it is there, and nothing else; `Date` because many banks ask for it. */
const signedHeaders = ['digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'date', 'tpp-redirect-uri'];

/** One line a field, in the order of `names` (section 2.3 of the draft). */
const signingString = (headers: HeaderFields, names: readonly string[]): string =>
  names.map((name) => `${name}: ${headerValues(headers, name).join(', ')}`).join('\n');

/** On another thread: a signature takes half a millisecond. */
const signInThreadPool = promisify(sign);
