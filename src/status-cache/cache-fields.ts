/** The fields of a status read that concern the cache, found in one pass over the header. */

import { type HeaderFields, lowerCase } from '../pis/headers.ts';

/** Request fields that identify the caller: a cached response belongs to these credentials. */
export const credentialFields = ['authorization', 'cookie'] as const;

/** Further request fields that a response may vary with. */
export const variantFields = [
  'accept',
  'accept-encoding',
  'accept-language',
  'consent-id',
  'psu-id',
  'psu-id-type',
  'psu-corporate-id',
  'psu-corporate-id-type',
] as const;

/** All request fields that are part of every cache key. `callerHeaders` of the environment are further ones. */
export const keyFields: ReadonlySet<string> = new Set([...credentialFields, ...variantFields]);

/** Fields of conditional and partial requests, and of signed ones: the bank verifies a signature only once. */
const bypassFields = [
  'signature',
  'range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
];

type FieldKind = 'key' | 'bypass' | 'cache-control';

const fieldKinds: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ...[...keyFields].map((name): [string, FieldKind] => [name, 'key']),
  ...bypassFields.map((name): [string, FieldKind] => [name, 'bypass']),
  ['cache-control', 'cache-control'],
]);

export interface CacheFields {
  /** The fields that are part of the cache key, one per line: no value can contain a line break. */
  readonly keyText: string;
  readonly hasCacheControl: boolean;
  /** Whether the response is for this request only. */
  readonly bypasses: boolean;
}

/** @param callerHeaders of the environment: they are part of the cache key as well */
export function cacheFieldsIn(headers: HeaderFields, callerHeaders: readonly string[]): CacheFields {
  let keyText = '';
  let hasCacheControl = false;
  let bypasses = false;
  for (const [field, value] of headers) {
    const name = lowerCase(field);
    switch (fieldKinds.get(name)) {
      case 'key':
        keyText += `\n${name}:${value}`;
        break;
      case 'bypass':
        bypasses = true;
        break;
      case 'cache-control':
        hasCacheControl = true;
        break;
      case undefined:
        if (callerHeaders.includes(name)) keyText += `\n${name}:${value}`;
    }
  }
  return { keyText, hasCacheControl, bypasses };
}
