/** Distinguished names, as in the subject and issuer of a certificate (RFC 5280 section 4.1.2.4). */

import { type DerValue, parseObjectId, parseSequence, parseText, parseValues } from './der.ts';

/** The attributes of a name, in the order of the certificate: usually from the country to the common name. */
export type DistinguishedName = readonly NameAttribute[];

interface NameAttribute {
  /** Object identifier, such as `2.5.4.3`. */
  readonly type: string;
  readonly value: string;
}

/** Type of the PSP's authorisation number, such as `PSDDE-BAFIN-123456` (ETSI TS 119 495 section 5.2.1). */
const organisationIdentifierType = '2.5.4.97';

/** Flattens multi-valued RDNs. @throws RangeError if the value is not a name */
export const parseName = (value: DerValue | undefined): DistinguishedName =>
  parseSequence(value)
    .flatMap((set) => parseValues(set.content))
    .map((attribute) => {
      const [type, text] = parseSequence(attribute);
      return { type: parseObjectId(type), value: parseText(text) };
    });

/** @returns the organisation identifier, such as `PSDDE-BAFIN-123456`; `null` if the name has none */
export const organisationIdentifierOf = (name: DistinguishedName): string | null =>
  name.find(({ type }) => type === organisationIdentifierType)?.value ?? null;

/** Formats a name with the order and the escapes of RFC 4514: `CN=Shop\, Ltd.,O=Shop,C=DE`. */
export const formatName = (name: DistinguishedName): string =>
  format(name, (value) => value.replace(/["+,;<>\\]|^[ #]| $/g, '\\$&'));

/** Like `formatName`, with percent-encoding instead of escapes: `CN=D-TRUST%20CA,O=D-Trust%20GmbH,C=DE`. */
export const formatNameForHeader = (name: DistinguishedName): string =>
  format(name, (value) => encodeURIComponent(value.toWellFormed()));

const format = (name: DistinguishedName, encode: (value: string) => string): string =>
  name
    .toReversed()
    .map(({ type, value }) => `${keywords[type] ?? type}=${encode(value)}`)
    .join(',');

/** Attribute names as in OpenSSL. */
const keywords: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.4': 'SN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'street',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.42': 'GN',
  [organisationIdentifierType]: 'organizationIdentifier',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};
