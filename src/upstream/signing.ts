/**
 * Seals requests to the bank: `Digest`, `Signature` and `TPP-Signature-Certificate`, last, over exactly the bytes that are
 * sent (NextGenPSD2 XS2A, implementation guidelines, section 12; draft-cavage-http-signatures-12).
 */

import { createHash, createPrivateKey, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { type CertificateFacts, factsOf } from '../certificates/facts.ts';
import { refuseFaults } from '../certificates/key-pair.ts';
import { nameInHeader } from '../certificates/names.ts';
import { sealAlgorithms, sealFaults } from '../certificates/seal-algorithms.ts';
import type { Read } from '../certificates/watched-files.ts';
import type { SigningSettings } from '../config/schema.ts';
import { type HeaderFields, headerValue, headerValues, without } from '../pis/headers.ts';

/** What is sealed: the fields and the body as they will be sent. */
interface Sealable {
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

export interface Seal {
  readonly facts: CertificateFacts;
  /** The fields to send instead: with a seal, unless the TPP has signed the request itself. */
  readonly seal: (request: Sealable) => Promise<HeaderFields>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function sealFrom({ certFile, keyFile, algorithm }: SigningSettings, read: Read): Seal {
  const pair = { cert: read(certFile), key: read(keyFile) };
  refuseFaults(sealFaults(pair, algorithm, Date.now()), { cert: certFile, key: keyFile });
  const facts = factsOf(pair.cert);
  const secret = createPrivateKey(pair.key);
  const { hash, digest } = sealAlgorithms[algorithm];
  const keyId = `SN=${facts.serialNumber},CA=${nameInHeader(facts.issuer)}`;
  const certificate = facts.der.toString('base64');

  return {
    facts,
    async seal({ headers, body }) {
      if (headerValue(headers, 'signature') !== undefined) return headers;
      const bodyHash = createHash(hash).update(body).digest('base64');
      const digested: HeaderFields = [...without(headers, ours), ['Digest', `${digest}=${bodyHash}`]];
      const names = signedNames.filter((name) => headerValue(digested, name) !== undefined);
      // Fields go over the wire as Latin-1: so they are signed.
      const signature = await signAside(hash, Buffer.from(textOf(digested, names), 'latin1'), secret);
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
const ours: ReadonlySet<string> = new Set(['digest', 'tpp-signature-certificate']);

/** What the standard has signed, where it is there, and nothing else; `Date` because many banks ask for it. */
const signedNames = ['digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'date', 'tpp-redirect-uri'];

/** One line a field, in the order of `names` (section 2.3 of the draft). */
const textOf = (headers: HeaderFields, names: readonly string[]): string =>
  names.map((name) => `${name}: ${headerValues(headers, name).join(', ')}`).join('\n');

/** On another thread: a signature takes half a millisecond. */
const signAside = promisify(sign);
