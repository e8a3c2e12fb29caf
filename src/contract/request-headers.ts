/** The request headers of the standard, and how their values are checked. Headers that only the gateway reads are not in the table. */

import { isIP } from 'node:net';
import { type HeaderFields, isNamed, lowerCase } from '../pis/headers.ts';
import { cacheByName } from '../pis/name-cache.ts';
import { type OperationName, operations } from '../pis/operations.ts';
import type { Deviation, DeviationList, Rule } from './deviation.ts';
import { checkSignature, signedNamesIn } from './digest.ts';
import type { StandardVersion } from './standard-versions.ts';

/** The values that other checks need, and the headers whose deviations depend on the contract. */
export interface InspectedHeaders {
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly accept: string | undefined;
  readonly digest: string | undefined;
  /** Which groups of headers the gateway does not consume, because the TPP has signed them. */
  readonly signed: SignedByTpp;
  /** Headers of the request that only 1.3.11 has. */
  readonly added: readonly AddedHeader[];
}

interface SignedByTpp {
  /** Whether the request has a signature of the TPP. */
  readonly request: boolean;
  /** Whether that signature covers a header about notifications. */
  readonly notifications: boolean;
}

/**
 * Groups of headers that the gateway removes or replaces, so that the bank does not get them from the TPP. The gateway forwards them
 * unchanged if the TPP has signed them.
 */
export type ConsumedHeaders = 'notifications' | 'signature';

/** What a bank requires beyond the standard: names of headers, by operation. */
export type RequiredHeaders = Readonly<Partial<Record<OperationName, readonly string[]>>>;

/** The required headers that a request does not have, or that are empty. */
export const missingHeaders = (required: readonly string[] = [], fields: HeaderFields): readonly string[] =>
  required.filter((name) => {
    const lowerName = name.toLowerCase();
    return !fields.some(([field, value]) => isNamed(field, lowerName) && value.trim() !== '');
  });

/** The headers of an operation, for its description, in the order of the table. */
export const headersOf = (operation: OperationName) =>
  rows
    .filter(({ operations }) => operations.has(operation))
    .map(({ name, requiredFor }) => ({ name, isRequired: requiredFor?.has(operation) ?? false }));

interface AddedHeader {
  readonly path: string;
  readonly fault: Fault | undefined;
}

/** By the name in the table. */
type HeaderValues = { [Name in HeaderRow['name']]?: string };

interface HeaderRow {
  readonly name: string;
  /** Operations with this header. In others, the bank does not read it, and it is not checked. */
  readonly operations: ReadonlySet<OperationName>;
  readonly requiredFor?: ReadonlySet<OperationName>;
  readonly since?: '1.3.11';
  /** Whether it is a list, which may be sent as several fields (RFC 9110 section 5.3). */
  readonly isList?: true;
  /** @returns `undefined` if the value is valid */
  readonly check?: (value: string) => Fault | undefined;
}

type Fault = Omit<Deviation, 'path'>;

export function inspectHeaders(
  operation: OperationName,
  fields: HeaderFields,
  list: DeviationList,
): InspectedHeaders {
  const values: HeaderValues = {};
  let added = noneAdded;
  for (const [field, value] of fields) {
    const row = rowOf(field);
    if (row === 'unknown') list.add('usual', 'unknown', 'headers/*', 'ignored');
    if (typeof row === 'string' || !row.operations.has(operation)) continue;
    const earlier = values[row.name];
    if (earlier !== undefined && !row.isList) {
      list.add('harmful', 'repeated', `headers/${row.name}`, 'refused');
    }
    values[row.name] = earlier !== undefined && row.isList ? `${earlier}, ${value}` : value;
    const fault = row.check?.(value);
    if (row.since) added = [...added, { path: `headers/${row.name}`, fault }];
    else if (fault) list.add(fault.level, fault.rule, `headers/${row.name}`, fault.effect);
  }
  for (const { name, requiredFor } of requiredRows) {
    if (!requiredFor?.has(operation) || values[name] !== undefined) continue;
    list.add('harmful', 'required', `headers/${name}`, 'refused');
  }
  if (values['TPP-Redirect-Preferred'] === 'true' && values['TPP-Redirect-URI'] === undefined) {
    list.add('harmful', 'required-with', 'headers/TPP-Redirect-URI', 'refused');
  }
  checkSigned(values, list);
  return {
    contentType: values['Content-Type'],
    contentEncoding: values['Content-Encoding'],
    accept: values.Accept,
    digest: values.Digest,
    signed: signedByTpp(values.Signature),
    added,
  };
}

/** Drops the deviations of headers that the bank does not get from the TPP. */
export function withoutConsumed(
  deviations: readonly Deviation[],
  consumed: readonly ConsumedHeaders[],
  { signed }: Pick<InspectedHeaders, 'signed'>,
): readonly Deviation[] {
  if (deviations.length === 0 || consumed.length === 0) return deviations;
  const paths = new Set(
    consumed.flatMap((group) => {
      if (group === 'notifications') return signed.notifications ? [] : notificationPaths;
      return signed.request ? [] : signaturePaths;
    }),
  );
  return deviations.filter(({ path }) => !paths.has(path));
}

const notificationPaths = ['headers/TPP-Notification-URI', 'headers/TPP-Notification-Content-Preferred'];
const signaturePaths = ['headers/Digest', 'headers/Signature', 'headers/TPP-Signature-Certificate'];

const unsigned: SignedByTpp = { request: false, notifications: false };

function signedByTpp(signature: string | undefined): SignedByTpp {
  if (signature === undefined) return unsigned;
  const names = signedNamesIn(signature);
  const notifications = ['tpp-notification-uri', 'tpp-notification-content-preferred'];
  return { request: true, notifications: notifications.some((name) => names.has(name)) };
}

/** Judges the headers that only 1.3.11 has. */
export function judgeAddedHeaders(
  version: StandardVersion,
  { added }: InspectedHeaders,
  list: DeviationList,
): void {
  for (const { path, fault } of added) {
    if (version !== '1.3.11') list.add('notable', 'not-in-version', path, 'ignored');
    else if (fault) list.add(fault.level, fault.rule, path, fault.effect);
  }
}

const noneAdded: readonly AddedHeader[] = [];

/** Only the standard uses these prefixes: an unknown name with one of them is a misspelt header. */
const isOfStandard = /^(?:psu|tpp)-/;

function checkSigned(values: HeaderValues, list: DeviationList): void {
  const { Signature: signature, Digest: digest } = values;
  if (signature === undefined && digest === undefined) return;
  checkSignature(
    {
      digest,
      signature,
      hasCertificate: values['TPP-Signature-Certificate'] !== undefined,
      mustBeSigned: signedIfPresent.filter((name) => values[name] !== undefined).map(lowerCase),
    },
    list,
  );
}

const signedIfPresent = ['PSU-ID', 'PSU-Corporate-ID', 'TPP-Redirect-URI'] as const;

const refused = (rule: Rule): Fault => ({ rule, level: 'harmful', effect: 'refused' });
const ignored = (rule: Rule): Fault => ({ rule, level: 'notable', effect: 'ignored' });

const matching = (pattern: RegExp, fault: Fault) => (value: string) =>
  pattern.test(value) ? undefined : fault;

const isFlag = matching(/^(?:true|false)$/, refused('type'));
const isUri = matching(/^[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s<>"{}|\\^`]+$/, refused('format'));
const isNotEmpty = matching(/\S/, { rule: 'empty', level: 'notable', effect: 'may-be-refused' });

const ipv6: Fault = { rule: 'ipv6', level: 'usual', effect: 'may-be-refused' };

/** The files say `format: ipv4`, but a PSU may have another address. */
function isAddress(value: string): Fault | undefined {
  const version = isIP(value);
  if (version === 4) return undefined;
  return version === 6 ? ipv6 : refused('format');
}

const all: ReadonlySet<OperationName> = new Set(operations.map(({ name }) => name));
const initiate: ReadonlySet<OperationName> = new Set(['initiatePayment']);
const initiateOrAuthorise: ReadonlySet<OperationName> = new Set([
  'initiatePayment',
  'startAuthorisation',
  'updatePsuData',
]);
const initiateOrCancel: ReadonlySet<OperationName> = new Set(['initiatePayment', 'cancelPayment']);
const writes: ReadonlySet<OperationName> = new Set([
  'initiatePayment',
  'cancelPayment',
  'startAuthorisation',
]);

/** OpenAPI of 1.3.6 and 1.3.11. `X-Request-ID` is not in the table: the gateway refuses a missing or malformed one. */
const rows: readonly HeaderRow[] = [
  { name: 'PSU-IP-Address', operations: all, requiredFor: initiate, check: isAddress },
  { name: 'Consent-ID', operations: initiate, check: isNotEmpty },
  { name: 'PSU-ID', operations: initiateOrAuthorise, check: isNotEmpty },
  { name: 'PSU-ID-Type', operations: initiateOrAuthorise, check: isNotEmpty },
  { name: 'PSU-Corporate-ID', operations: initiateOrAuthorise, check: isNotEmpty },
  { name: 'PSU-Corporate-ID-Type', operations: initiateOrAuthorise, check: isNotEmpty },
  { name: 'TPP-Redirect-Preferred', operations: writes, check: isFlag },
  { name: 'TPP-Decoupled-Preferred', operations: writes, since: '1.3.11', check: isFlag },
  { name: 'TPP-Redirect-URI', operations: writes, check: isUri },
  { name: 'TPP-Nok-Redirect-URI', operations: writes, check: isUri },
  { name: 'TPP-Explicit-Authorisation-Preferred', operations: initiateOrCancel, check: isFlag },
  { name: 'TPP-Rejection-NoFunds-Preferred', operations: initiate, check: isFlag },
  { name: 'TPP-Brand-Logging-Information', operations: initiate },
  { name: 'TPP-Notification-URI', operations: initiateOrAuthorise, check: isUri },
  {
    name: 'TPP-Notification-Content-Preferred',
    operations: initiateOrAuthorise,
    check: matching(/^status=(?:SCA|PROCESS|LAST)(?:,[ ]?(?:SCA|PROCESS|LAST)){0,2}$/, ignored('pattern')),
  },
  { name: 'Digest', operations: all },
  { name: 'Signature', operations: all },
  {
    name: 'TPP-Signature-Certificate',
    operations: all,
    check: matching(/^[A-Za-z0-9+/]+={0,2}$/, { ...ignored('format'), effect: 'may-be-refused' }),
  },
  {
    name: 'PSU-IP-Port',
    operations: all,
    check: (value) => (/^\d{1,5}$/.test(value) && Number(value) < 65_536 ? undefined : ignored('format')),
  },
  { name: 'PSU-Accept', operations: all, isList: true },
  { name: 'PSU-Accept-Charset', operations: all, isList: true },
  { name: 'PSU-Accept-Encoding', operations: all, isList: true },
  { name: 'PSU-Accept-Language', operations: all, isList: true },
  { name: 'PSU-User-Agent', operations: all },
  {
    name: 'PSU-Http-Method',
    operations: all,
    check: matching(/^(?:GET|POST|PUT|PATCH|DELETE)$/, refused('enum')),
  },
  {
    name: 'PSU-Device-ID',
    operations: all,
    check: matching(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, refused('format')),
  },
  {
    name: 'PSU-Geo-Location',
    operations: all,
    check: matching(/^GEO:-?\d{1,3}(?:\.\d{1,15})?;-?\d{1,3}(?:\.\d{1,15})?$/, refused('pattern')),
  },
  // Not declared by the files, but used by them.
  { name: 'Content-Type', operations: all },
  { name: 'Content-Encoding', operations: all, isList: true },
  { name: 'Accept', operations: all, isList: true },
  {
    name: 'Authorization',
    operations: all,
    check: matching(/^Bearer [^\s]+$/i, { ...ignored('format'), effect: 'may-be-refused' }),
  },
];

const requiredRows = rows.filter(({ requiredFor }) => requiredFor !== undefined);
const rowsByName: ReadonlyMap<string, HeaderRow> = new Map(rows.map((row) => [lowerCase(row.name), row]));

/** The row of a header, by its name as it was sent. `unknown`: it has a prefix of the standard, but no row. */
const rowOf = cacheByName((field) => {
  const name = field.toLowerCase();
  return rowsByName.get(name) ?? (isOfStandard.test(name) ? 'unknown' : 'other');
});
