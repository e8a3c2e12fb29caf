/** Checks `Digest`, `Signature` and `TPP-Signature-Certificate` as far as this is possible without the key. */

import { createHash } from 'node:crypto';
import type { DeviationList } from './deviation.ts';

const digestPath = 'headers/Digest';
const signaturePath = 'headers/Signature';

/** Each listed SHA-256 and SHA-512 must be the hash of the body (RFC 3230). Other algorithms are only reported. */
export function checkDigest(value: string, body: Uint8Array, list: DeviationList): void {
  const hashes = new Map<string, string>(); // a header can list one algorithm a hundred times
  for (const member of value.split(',')) {
    const [, name = '', encoded = ''] =
      /^\s*([A-Za-z0-9-]{1,20})=([A-Za-z0-9+/]{1,128}={0,2})\s*$/.exec(member) ?? [];
    if (name === '') {
      list.add('harmful', 'pattern', digestPath, 'refused');
      continue;
    }
    const algorithm = algorithms[name.toUpperCase()];
    if (!algorithm) {
      list.add('notable', 'digest-algorithm', digestPath, 'may-be-refused');
      continue;
    }
    const actual = hashes.get(algorithm) ?? createHash(algorithm).update(body).digest('base64');
    hashes.set(algorithm, actual);
    if (actual !== encoded) list.add('harmful', 'digest', digestPath, 'refused');
  }
}

const algorithms: Readonly<Record<string, 'sha256' | 'sha512'>> = {
  'SHA-256': 'sha256',
  'SHA-512': 'sha512',
};

/** The headers of a request that concern its signature. */
export interface SignedRequest {
  readonly digest: string | undefined;
  readonly signature: string | undefined;
  readonly hasCertificate: boolean;
  /** The headers that the signature must cover because the request has them, in lower case. */
  readonly mustBeSigned: readonly string[];
}

/** The standard requires `Digest` and a certificate with each signature, and a signature that covers certain headers. */
export function checkSignature(request: SignedRequest, list: DeviationList): void {
  const { digest, signature, hasCertificate, mustBeSigned } = request;
  if (signature === undefined) {
    // The gateway may sign the request after this check.
    if (digest !== undefined) list.add('usual', 'required-with', signaturePath, 'none');
    return;
  }
  if (digest === undefined) list.add('harmful', 'required-with', digestPath, 'refused');
  if (!hasCertificate) list.add('harmful', 'required-with', 'headers/TPP-Signature-Certificate', 'refused');
  const parameters = parametersOf(signature);
  const isComplete = ['keyid', 'algorithm', 'headers', 'signature'].every((name) => parameters.has(name));
  const algorithm = (parameters.get('algorithm') ?? '').replaceAll(/[-_\s/.]/g, '');
  if (!isComplete || !signatureAlgorithm.test(algorithm)) {
    list.add('harmful', 'signature', signaturePath, 'refused');
  }
  const signed = signedNamesIn(signature);
  if (
    parameters.has('headers') &&
    ['digest', 'x-request-id', ...mustBeSigned].some((name) => !signed.has(name))
  ) {
    list.add('harmful', 'signed-headers', signaturePath, 'refused');
  }
}

/**
 * The algorithms that libraries and banks name, without separators: by key and hash (`rsa-sha256`, `RSA_SHA256`), by the hash alone
 * (`SHA-256`), as Java does (`SHA256withRSA`), as JWA does (`PS256`), or not at all (`hs2019`). Not those with SHA-1, MD5 or a shared key.
 */
const signatureAlgorithm =
  /^(?:(?:rsa|rsassa|ecdsa)?(?:pss|v15|pkcs1v15|p256|p384|p521)?sha2?(?:256|384|512)|sha2?(?:256|384|512)with(?:rsa|ecdsa)(?:encryption|andmgf1)?|[rpe]s(?:256|384|512)|hs2019|ed25519|eddsa)$/i;

/** The headers that a signature covers, in lower case. */
export const signedNamesIn = (signature: string): ReadonlySet<string> =>
  new Set((parametersOf(signature).get('headers') ?? '').toLowerCase().split(/\s+/));

/** Parses `keyId="...",algorithm="..."`; names in lower case. Some clients begin the value with the word `Signature`. */
function parametersOf(signature: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, name = '', value = ''] of signature
    .slice(0, 16_384)
    .matchAll(/\b([A-Za-z]{1,20})="([^"]*)"/g)) {
    found.set(name.toLowerCase(), value);
  }
  return found;
}
