/** The TPP's own signature of a request, which covers some of its fields (draft-cavage-http-signatures, `headers`). */

import { type HeaderFields, headerValues, lowerCase, withoutFields } from '../pis/headers.ts';

/** Whether a signature covers one of the fields, which then must pass unchanged. @param names in lower case */
export const isCovered = (headers: HeaderFields, names: ReadonlySet<string>): boolean =>
  headerValues(headers, 'signature').some((signature) => {
    const [, covered = ''] = /(?:^|[\s,])headers\s*=\s*"([^"]*)"/i.exec(signature) ?? [];
    return covered.split(/\s+/).some((name) => names.has(lowerCase(name)));
  });

/** The fields as the gateway sends them again: a signature belongs to one message. */
export const withoutSignature = (headers: HeaderFields): HeaderFields =>
  withoutFields(headers, signatureFields);

const signatureFields: ReadonlySet<string> = new Set(['signature', 'digest', 'tpp-signature-certificate']);
