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

/** A request as it will be sent. */
interface SignableRequest {
  readonly method: string;
  /** With the base path and the query. */
  readonly path: string;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

export interface RequestSigner {
  readonly certificate: CertificateInfo;
  /** @returns the fields with a signature; unchanged if the TPP has signed the request itself */
  readonly sign: (request: SignableRequest) => Promise<HeaderFields>;
}

/**
 * @param host the `Host` that the transport sends
 * @throws Error that names the file, if one cannot be read or used
 */
export function createRequestSigner(
  { certFile, keyFile, algorithm, keyId, headers: coveredNames, addDate }: SigningSettings,
  read: ReadFile,
  host: string,
): RequestSigner {
  const pair = { cert: read(certFile), key: read(keyFile) };
  throwKeyPairErrors(validateSigningKeyPair(pair, algorithm, Date.now()), { cert: certFile, key: keyFile });
  const info = parseCertificate(pair.cert);
  const privateKey = createPrivateKey(pair.key);
  const { hash, digest } = signatureAlgorithms[algorithm];
  const sentKeyId = keyId ?? `SN=${info.serialNumber},CA=${formatNameForHeader(info.issuer)}`;
  const certificate = info.der.toString('base64');

  return {
    certificate: info,
    async sign({ method, path, headers, body }) {
      if (headerValue(headers, 'signature') !== undefined) return headers;
      const bodyHash = createHash(hash).update(body).digest('base64');
      const lacksDate = addDate && headerValue(headers, 'date') === undefined;
      const complete: HeaderFields = [
        ...withoutFields(headers, replacedHeaders),
        ...(lacksDate ? ([['Date', new Date().toUTCString()]] as const) : []),
        ['Digest', `${digest}=${bodyHash}`],
        ['TPP-Signature-Certificate', certificate],
      ];
      /** The value that a name of the list stands for (section 2.3 of the draft); `undefined` if the request has none. */
      const signedValueOf = (name: string): string | undefined => {
        if (name === '(request-target)') return `${method.toLowerCase()} ${path}`;
        if (name === 'host') return host;
        const values = headerValues(complete, name);
        return values.length === 0 ? undefined : values.join(', ');
      };
      const signedNames = coveredNames.filter((name) => signedValueOf(name) !== undefined);
      const signingString = signedNames.map((name) => `${name}: ${signedValueOf(name)}`).join('\n');
      // node:http sends fields as Latin-1.
      const signature = await signInThreadPool(hash, Buffer.from(signingString, 'latin1'), privateKey);
      const parameters = `keyId="${sentKeyId}",algorithm="${algorithm}",headers="${signedNames.join(' ')}"`;
      return [...complete, ['Signature', `${parameters},signature="${signature.toString('base64')}"`]];
    },
  };
}

/** Replaced, because the TPP has sent them without a signature. */
const replacedHeaders: ReadonlySet<string> = new Set(['digest', 'tpp-signature-certificate']);

/** Not on the main thread: a signature takes half a millisecond. */
const signInThreadPool = promisify(sign);
