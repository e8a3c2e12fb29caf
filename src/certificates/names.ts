/** The names in a certificate: whose it is, and who issued it (RFC 5280 section 4.1.2.4). */

import { type DerValue, objectIdIn, sequenceIn, textIn, valuesIn } from './der.ts';

/** The parts of a name, in the order of the certificate: the country usually comes first. */
export type Name = readonly NamePart[];

interface NamePart {
  /** The type's object identifier, such as `2.5.4.3`. */
  readonly type: string;
  readonly value: string;
}

/** The PSP's number, such as `PSDDE-BAFIN-123456` (ETSI TS 119 495 section 5.2.1). */
const organisationIdentifier = '2.5.4.97';

/** Parts that stand in one set are taken one by one. @throws RangeError if it is no name */
export const nameIn = (value: DerValue | undefined): Name =>
  sequenceIn(value)
    .flatMap((set) => valuesIn(set.content))
    .map((part) => {
      const [type, text] = sequenceIn(part);
      return { type: objectIdIn(type), value: textIn(text) };
    });

/** Such as `PSDDE-BAFIN-123456`; `null` if there is none. */
export const organisationIdentifierIn = (name: Name): string | null =>
  name.find(({ type }) => type === organisationIdentifier)?.value ?? null;

/** In the order and with the escapes of RFC 4514: `CN=Shop\, Ltd.,O=Shop,C=DE`. */
export const nameText = (name: Name): string =>
  written(name, (value) => value.replace(/["+,;<>\\]|^[ #]| $/g, '\\$&'));

/** The same with what may not stand in a header percent-encoded: `CN=D-TRUST%20CA,O=D-Trust%20GmbH,C=DE`. */
export const nameInHeader = (name: Name): string =>
  written(name, (value) => encodeURIComponent(value.toWellFormed()));

const written = (name: Name, encode: (value: string) => string): string =>
  name
    .toReversed()
    .map(({ type, value }) => `${keywords[type] ?? type}=${encode(value)}`)
    .join(',');

/** As OpenSSL writes them. */
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
  [organisationIdentifier]: 'organizationIdentifier',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};
