/**
 * The eight operations of the payment initiation service, three more that `standard.alsoOffer` can add, and the matching of
 * request lines.
 *
 * This table is the only place that defines methods and path shapes. All other code reads the traits of a row.
 * Source: OpenAPI of NextGenPSD2 XS2A 1.3.6 and 1.3.11, which agree on every path (CC BY 4.0, The Berlin Group).
 */

import { querySyntaxProblem } from './query.ts';

/** The methods that the standard uses for payments. All others are refused. */
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Whether requests with this method may have a body. */
export const mayHaveBody = ({ method }: { readonly method: string }): boolean =>
  method === 'POST' || method === 'PUT';

/** Requests of one lane share a queue, a deadline and a circuit. `write` may move money, `status` is polled. */
export type Lane = (typeof lanes)[number];

/** The most urgent first. */
export const lanes = ['write', 'read', 'status'] as const;

interface OperationRow {
  readonly name: string;
  readonly method: Method;
  /** The path after `/<segment>/v1`; braces mark parameters, everything else is literal. */
  readonly shape: string;
  readonly lane: Lane;
  readonly createsPayment: boolean;
  readonly readsStatus: boolean;
  readonly changesStatus: boolean;
  readonly showsStatus: ShownStatus;
  /** Whether the body may contain a password or a one-time password of the payer. */
  readonly carriesCredentials: boolean;
  /** Whether the gateway offers it only if `standard.alsoOffer` names it (ADR 116). */
  readonly isOptional: boolean;
}

/** Which status a 200 contains besides other data: the payment's, or that of one authorisation. */
type ShownStatus = 'none' | 'transactionStatus' | 'scaStatus';

const noTraits = {
  createsPayment: false,
  readsStatus: false,
  changesStatus: false,
  showsStatus: 'none',
  carriesCredentials: false,
  isOptional: false,
} as const;

/** Rows with the same shape differ in their method. */
export const operations = [
  {
    ...noTraits,
    name: 'initiatePayment',
    method: 'POST',
    shape: '/{payment-service}/{payment-product}',
    lane: 'write',
    createsPayment: true,
  },
  {
    ...noTraits,
    name: 'getPayment',
    method: 'GET',
    shape: '/payments/{payment-product}/{paymentId}',
    lane: 'read',
    showsStatus: 'transactionStatus',
  },
  {
    ...noTraits,
    name: 'getPeriodicPayment',
    method: 'GET',
    shape: '/periodic-payments/{payment-product}/{paymentId}',
    lane: 'read',
    showsStatus: 'transactionStatus',
  },
  {
    ...noTraits,
    name: 'getPaymentStatus',
    method: 'GET',
    shape: '/{payment-service}/{payment-product}/{paymentId}/status',
    lane: 'status',
    readsStatus: true,
  },
  {
    ...noTraits,
    name: 'cancelPayment',
    method: 'DELETE',
    shape: '/{payment-service}/{payment-product}/{paymentId}',
    lane: 'write',
    changesStatus: true,
  },
  {
    ...noTraits,
    name: 'startAuthorisation',
    method: 'POST',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}',
    lane: 'write',
    changesStatus: true,
    carriesCredentials: true,
  },
  {
    ...noTraits,
    name: 'listAuthorisations',
    method: 'GET',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}',
    lane: 'read',
  },
  {
    ...noTraits,
    name: 'getAuthorisation',
    method: 'GET',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}/{authorisation-id}',
    lane: 'read',
    showsStatus: 'scaStatus',
  },
  {
    ...noTraits,
    name: 'updatePsuData',
    method: 'PUT',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}/{authorisation-id}',
    lane: 'write',
    changesStatus: true,
    carriesCredentials: true,
    isOptional: true,
  },
  {
    ...noTraits,
    name: 'updatePayment',
    method: 'PUT',
    shape: '/{payment-service}/{payment-product}/{paymentId}',
    lane: 'write',
    changesStatus: true,
    carriesCredentials: true,
    isOptional: true,
  },
  {
    ...noTraits,
    name: 'getBulkPayment',
    method: 'GET',
    shape: '/bulk-payments/{payment-product}/{paymentId}',
    lane: 'read',
    showsStatus: 'transactionStatus',
    isOptional: true,
  },
] as const satisfies readonly OperationRow[];

/** Such as `getPaymentStatus`: the label in logs and metrics. */
export type OperationName = (typeof operations)[number]['name'];

/** An operation that the gateway offers only if `standard.alsoOffer` names it. */
export type OptionalOperation = Extract<(typeof operations)[number], { isOptional: true }>['name'];

export const optionalOperations = operations.flatMap((row) => (row.isOptional ? [row.name] : []));

/** A matched request line: the traits of its row, its parameters, and the paths built from them. */
export interface Operation {
  readonly name: OperationName;
  readonly method: Method;
  readonly lane: Lane;
  readonly createsPayment: boolean;
  readonly readsStatus: boolean;
  readonly changesStatus: boolean;
  readonly showsStatus: ShownStatus;
  readonly carriesCredentials: boolean;
  readonly paymentService: string;
  readonly paymentProduct: string;
  readonly paymentId?: string;
  readonly authorisationId?: string;
  /**
   * The ids of the path that are outside of the strict set. The caller must check that the bank has issued them.
   */
  readonly unusualIds: readonly UnusualId[];
  /** `/<segment>/v1/...`, built from the validated parameters, never copied from the request line. Without the query. */
  readonly path: string;
  /** The end of `path`, after `/<segment>/v1`: the path below a prefix of the bank. */
  readonly resource: string;
  /** The query with its question mark, byte for byte as it was sent; empty without one. */
  readonly search: string;
}

/** Service and product, such as `payments/sepa-credit-transfers`. A segment of a path contains no slash. */
export const productOf = ({
  paymentService,
  paymentProduct,
}: Pick<Operation, 'paymentService' | 'paymentProduct'>): string => `${paymentService}/${paymentProduct}`;

type UnusualId = 'payment' | 'authorisation';

/** The values that a path may contain; `any` accepts every well-formed segment. */
export interface PathRules {
  /** The path before `/v1`: zero or more path segments, without slashes at the ends. */
  readonly segment: string;
  readonly paymentServices: 'any' | readonly string[];
  readonly paymentProducts: 'any' | readonly string[];
  readonly authorisationTypes: 'any' | readonly string[];
  /** The optional operations that the gateway offers. */
  readonly alsoOffer?: readonly OptionalOperation[];
}

/** An operation, or the reason of a refusal: 400, 404, 404 and 405. */
export type Match =
  | { readonly kind: 'operation'; readonly operation: Operation }
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'unknown-path' }
  | { readonly kind: 'unknown-product'; readonly why: string }
  | {
      readonly kind: 'wrong-method';
      readonly allow: readonly Method[];
      /** The operation that this request would be if `standard.alsoOffer` named it. */
      readonly notOffered?: OptionalOperation;
    };

/**
 * Matches a method and a raw request target. Never throws.
 *
 * Refusals come in the order of `Match`, with one exception: an unknown path is `unknown-path` even if it contains characters of the
 * strict set that only ids may have.
 */
export type Matcher = (method: string, target: string) => Match;

/** The beginning of every path: the standard's segment and `/v1`, such as `/berlingroup/v1`. */
export function prefixOf(segment: string): string {
  return `/${splitPrefix(segment).join('/')}`;
}

export function createMatcher(rules: PathRules): Matcher {
  const prefix = splitPrefix(rules.segment);
  const shapes = operations.map(({ shape, ...traits }) => ({ traits, parts: splitShape(shape) }));
  const subResources = subResourcesOf(rules);
  const byLength = Map.groupBy(shapes, ({ parts }) => prefix.length + parts.length);

  return (method, target) => {
    const read = readTarget(target);
    if (typeof read === 'string') return { kind: 'malformed', why: read };
    const { segments, unusual } = read;
    const unknown = unusual.length > 0 ? malformedCharacter : unknownPath;
    if (!startsWith(segments, prefix) || (unusual[0] ?? prefix.length) < prefix.length) return unknown;

    let fitting: Shape | undefined;
    let notOffered: OptionalOperation | undefined;
    let allow: readonly Method[] = [];
    for (const shape of byLength.get(segments.length) ?? []) {
      if (!fitsShape(shape.parts, segments, prefix.length, rules, subResources)) continue;
      if (!fitting) {
        const refusal =
          refuseIdCharacters(shape.parts, read, prefix.length) ??
          refuseUnlisted(rules, segments, prefix.length);
        if (refusal) return refusal;
      }
      fitting = shape;
      if (shape.traits.isOptional && !rules.alsoOffer?.includes(shape.traits.name)) {
        if (shape.traits.method === method) notOffered = shape.traits.name;
        continue;
      }
      if (shape.traits.method === method)
        return { kind: 'operation', operation: operationOf(shape, read, prefix) };
      allow = [...allow, shape.traits.method];
    }
    return fitting ? { kind: 'wrong-method', allow, ...(notOffered && { notOffered }) } : unknown;
  };
}

const unknownPath: Match = { kind: 'unknown-path' };
const badCharacter = 'the path contains a character that is not allowed';
const malformedCharacter: Match = { kind: 'malformed', why: badCharacter };

/** A row of the table. */
interface Shape {
  readonly traits: Omit<(typeof operations)[number], 'shape'>;
  /** The segments after the prefix. */
  readonly parts: readonly string[];
}

function startsWith(segments: readonly string[], prefix: readonly string[]): boolean {
  for (let at = 0; at < prefix.length; at++) if (segments[at] !== prefix[at]) return false;
  return true;
}

const splitPrefix = (segment: string) => [...segment.split('/').filter((part) => part !== ''), 'v1'];
const splitShape = (shape: string) => shape.slice(1).split('/');

const paymentIdPart = '{paymentId}';
const authorisationIdPart = '{authorisation-id}';
const isIdPart = (part: string) => part === paymentIdPart || part === authorisationIdPart;

/** RFC 3986's unreserved characters. */
const plainSegment = /^[A-Za-z0-9._~-]+$/;
/** Ids of the strict set may contain more: `GJv0KO..Fg==_=_bS6p6XvTWI` is a payment id of a real bank. */
const idCharacter = '[A-Za-z0-9._~=:@+,!$*-]';
const idSegment = new RegExp(`^${idCharacter}+$`);
const encodedInIds = /%(?:3D|3A|40|2B|2C|21|24|2A)/g;
const maxSegmentLength = 256;
/** Matches nearly every valid target. If no segment begins with a dot either, no other check is necessary. */
const plainTarget = new RegExp(`^(?:/${idCharacter}{1,${maxSegmentLength}})+$`);

/** An id outside of the strict set has at most this many characters after decoding. */
const maxUnusualLength = 1024;
/** A path segment of RFC 3986, section 3.3. */
const rfcSegment = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+$/;
/** Characters that are invisible or have no meaning: controls, formats, line separators, unpaired surrogates; and `%`. */
const notPrintable = /[\p{C}\p{Zl}\p{Zp}%]/u;
/** `.` or `..` between slashes of any kind, also with parameters (`..;a`): other programs might resolve them. */
const dotSegment = /(?:^|[/\\])\.{1,2}(?:[/\\;]|$)/;

/** Whether the gateway accepts an id without a record of it. */
export const isStrictId = (id: string): boolean =>
  idSegment.test(id) && id.length <= maxSegmentLength && id !== '.' && id !== '..';

/** Whether a text can be an id of a bank: one of the strict set, or one that is valid if the bank has issued it. */
export const isId = (text: string): boolean =>
  isStrictId(text) ||
  (text !== '' && text.length <= maxUnusualLength && !notPrintable.test(text) && !dotSegment.test(text));

/**
 * An id as a path segment, in the spelling that the gateway uses unless the bank's own links have another one.
 *
 * Never throws: a bank may issue an id that no path can contain, and for which `isId` does not hold.
 */
export const idToSegment = (id: string): string =>
  isStrictId(id) ? id : encodeURIComponent(id.toWellFormed()); // an unpaired surrogate would throw

/** The id that a path segment contains, percent-decoded once; `undefined` if it is no id. */
export function segmentToId(segment: string): string | undefined {
  const id = rfcSegment.test(segment) ? decodeSegment(segment) : undefined;
  return id !== undefined && isId(id) ? id : undefined;
}

/** A request target: its decoded segments, and which of them are outside of the strict set. */
interface Target {
  readonly segments: readonly string[];
  /** Indexes of segments that can only be ids. */
  readonly unusual: readonly number[];
  readonly search: string;
  /** The path, if it is already spelled as the gateway spells it. */
  readonly path?: string;
}

const nothingUnusual: readonly number[] = [];

/** @returns the reason of the refusal if the target is malformed */
function readTarget(target: string): Target | string {
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const search = queryAt < 0 ? '' : target.slice(queryAt);
  const queryProblem = search === '' ? undefined : querySyntaxProblem(search);
  if (queryProblem !== undefined) return queryProblem;
  if (plainTarget.test(path) && !path.includes('/.'))
    return { segments: path.slice(1).split('/'), unusual: nothingUnusual, search, path };
  if (!path.startsWith('/')) return 'the request target must be a path';
  if (path === '/') return { segments: [], unusual: nothingUnusual, search };
  const segments: string[] = [];
  const unusual: number[] = [];
  for (const raw of path.slice(1).split('/')) {
    const strict = raw.includes('%') ? raw.replaceAll(encodedInIds, decodeURIComponent) : raw;
    if (strict === '') return 'the path has an empty segment or a trailing slash';
    if (strict === '.' || strict === '..') return 'the path has a dot segment';
    if (idSegment.test(strict) && strict.length <= maxSegmentLength) {
      segments.push(strict);
      continue;
    }
    const id = rfcSegment.test(raw) ? decodeSegment(raw) : undefined;
    if (id === undefined) return badCharacter;
    if (id.length > maxUnusualLength) return `a path segment is longer than ${maxUnusualLength} characters`;
    if (!isId(id)) return badCharacter;
    unusual.push(segments.length);
    segments.push(id);
  }
  return { segments, unusual, search };
}

/** @returns `undefined` if the segment is not UTF-8 */
function decodeSegment(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

/** `status` is never an authorisation type, even if every type is accepted. @param start index of the first segment behind the prefix */
function fitsShape(
  parts: readonly string[],
  segments: readonly string[],
  start: number,
  { authorisationTypes }: PathRules,
  subResources: ReadonlySet<string>,
): boolean {
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? '';
    const segment = segments[start + at] ?? '';
    if (part === '{payment-authorisation}') {
      if (segment === 'status' || !isListed(authorisationTypes, segment)) return false;
    } else if (isIdPart(part)) {
      if (subResources.has(segment)) return false;
    } else if (part !== segment && !part.startsWith('{')) return false;
  }
  return true;
}

/**
 * The names that no id has: such a path lacks its id or its product, as most of the standard's own examples do. If every
 * authorisation type is accepted, these are the standard's.
 */
function subResourcesOf({ authorisationTypes }: PathRules): ReadonlySet<string> {
  const configured = authorisationTypes === 'any' ? [] : authorisationTypes;
  return new Set(['status', 'authorisations', 'cancellation-authorisations', ...configured]);
}

/** Refuses characters that are allowed only in ids, if they occur in another segment. @param start as in `fitsShape` */
function refuseIdCharacters(
  parts: readonly string[],
  { segments, unusual }: Target,
  start: number,
): Match | undefined {
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? '';
    if (isIdPart(part)) continue;
    if (plainSegment.test(segments[start + at] ?? '') && !unusual.includes(start + at)) continue;
    return { kind: 'malformed', why: `the path segment ${part} contains a character that is not allowed` };
  }
  return undefined;
}

function refuseUnlisted(rules: PathRules, segments: readonly string[], start: number): Match | undefined {
  if (!isListed(rules.paymentServices, segments[start] ?? '')) {
    return { kind: 'unknown-product', why: 'the gateway does not offer this payment service' };
  }
  if (!isListed(rules.paymentProducts, segments[start + 1] ?? '')) {
    return { kind: 'unknown-product', why: 'the gateway does not offer this payment product' };
  }
  return undefined;
}

const isListed = (list: 'any' | readonly string[], value: string) => list === 'any' || list.includes(value);

function operationOf(
  { traits, parts }: Shape,
  { segments, unusual, search, path: spelled }: Target,
  prefix: readonly string[],
): Operation {
  const start = prefix.length;
  const { name, method, lane, createsPayment, readsStatus, changesStatus, showsStatus, carriesCredentials } =
    traits;
  const path = spelled ?? `/${(unusual.length === 0 ? segments : segments.map(idToSegment)).join('/')}`;
  const operation = {
    name,
    method,
    lane,
    createsPayment,
    readsStatus,
    changesStatus,
    showsStatus,
    carriesCredentials,
    paymentService: segments[start] ?? '',
    paymentProduct: segments[start + 1] ?? '',
    unusualIds: unusual.length === 0 ? noUnusualIds : unusual.map((at) => unusualIdIn(parts[at - start])),
    path,
    resource: path.slice(lengthOf(prefix)),
    search,
  };
  const paymentId = segments[start + 2];
  if (paymentId === undefined) return operation;
  const authorisationId = segments[start + 4];
  return authorisationId === undefined
    ? { ...operation, paymentId }
    : { ...operation, paymentId, authorisationId };
}

/** Of the segments with a slash before each. */
const lengthOf = (prefix: readonly string[]) => prefix.reduce((sum, { length }) => sum + 1 + length, 0);

const noUnusualIds: readonly UnusualId[] = [];
const unusualIdIn = (part: string | undefined): UnusualId =>
  part === authorisationIdPart ? 'authorisation' : 'payment';

/** The path before `/{payment-service}`, without empty segments. @param basePath empty, or with a slash at the beginning */
export const joinPath = (basePath: string, ...parts: readonly string[]): string =>
  [basePath, ...parts.filter((part) => part !== '')].join('/');
