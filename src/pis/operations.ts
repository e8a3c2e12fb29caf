/**
 * The eight operations of the payment initiation service, and the matching of request lines.
 *
 * This table is the only place that defines methods and path shapes. All other code reads the traits of a row.
 * Source: OpenAPI of NextGenPSD2 XS2A 1.3.6 and 1.3.11, which agree on every path (CC BY 4.0, The Berlin Group).
 */

/** The methods that the standard uses for payments. All others are refused. */
export type Method = 'GET' | 'POST' | 'DELETE';

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
}

/** Which status a 200 contains besides other data: the payment's, or that of one authorisation. */
type ShownStatus = 'none' | 'transactionStatus' | 'scaStatus';

const noTraits = {
  createsPayment: false,
  readsStatus: false,
  changesStatus: false,
  showsStatus: 'none',
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
] as const satisfies readonly OperationRow[];

/** Such as `getPaymentStatus`: the label in logs and metrics. */
export type OperationName = (typeof operations)[number]['name'];

/** A matched request line: the traits of its row, its parameters, and the path built from them. */
export interface Operation {
  readonly name: OperationName;
  readonly method: Method;
  readonly lane: Lane;
  readonly createsPayment: boolean;
  readonly readsStatus: boolean;
  readonly changesStatus: boolean;
  readonly showsStatus: ShownStatus;
  readonly paymentService: string;
  readonly paymentProduct: string;
  readonly paymentId?: string;
  /** `/<segment>/v1/...`, built from the validated parameters, never copied from the request line. */
  readonly path: string;
}

/** The values that a path may contain; `any` accepts every well-formed segment. */
export interface PathRules {
  /** The path before `/v1`: zero or more path segments, without slashes at the ends. */
  readonly segment: string;
  readonly paymentServices: 'any' | readonly string[];
  readonly paymentProducts: 'any' | readonly string[];
  readonly authorisationTypes: 'any' | readonly string[];
}

/** An operation, or the reason of a refusal: 400, 404, 404 and 405. */
export type Match =
  | { readonly kind: 'operation'; readonly operation: Operation }
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'unknown-path' }
  | { readonly kind: 'unknown-product'; readonly why: string }
  | { readonly kind: 'wrong-method'; readonly allow: readonly Method[] };

/**
 * Matches a method and a raw request target. Never throws.
 *
 * Refusals come in the order of `Match`, with one exception: characters that are allowed only in ids are checked when the
 * shape is known, so an unknown path with such characters is `unknown-path`.
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
  const byLength = Map.groupBy(shapes, ({ parts }) => parts.length);

  return (method, target) => {
    const split = splitTarget(target);
    if (typeof split === 'string') return { kind: 'malformed', why: split };
    if (prefix.some((part, index) => split[index] !== part)) return { kind: 'unknown-path' };

    const segments = split.slice(prefix.length);
    const fitting =
      byLength.get(segments.length)?.filter(({ parts }) => fitsShape(parts, segments, rules, subResources)) ??
      [];
    const [first] = fitting;
    if (!first) return { kind: 'unknown-path' };
    const refusal = refuseIdCharacters(first.parts, segments) ?? refuseUnlisted(rules, segments);
    if (refusal) return refusal;

    const found = fitting.find(({ traits }) => traits.method === method);
    if (!found) return { kind: 'wrong-method', allow: fitting.map(({ traits }) => traits.method) };
    return { kind: 'operation', operation: operationOf(found.traits, prefix, segments) };
  };
}

const splitPrefix = (segment: string) => [...segment.split('/').filter((part) => part !== ''), 'v1'];
const splitShape = (shape: string) => shape.slice(1).split('/');

/** Ids may contain more than RFC 3986's unreserved characters: `GJv0KO..Fg==_=_bS6p6XvTWI` is a payment id of a real bank. */
const idParameters: ReadonlySet<string> = new Set(['{paymentId}', '{authorisation-id}']);

const plainSegment = /^[A-Za-z0-9._~-]+$/;
const idCharacter = '[A-Za-z0-9._~=:@+,!$*-]';
const idSegment = new RegExp(`^${idCharacter}+$`);
const encodedInIds = /%(?:3D|3A|40|2B|2C|21|24|2A)/g;
const maxSegmentLength = 256;
/** Matches nearly every valid target. If no segment begins with a dot either, no other check is necessary. */
const plainTarget = new RegExp(`^(?:/${idCharacter}{1,${maxSegmentLength}})+$`);

/** Whether an id is a valid paymentId of a path. */
export const isPaymentId = (id: string): boolean =>
  idSegment.test(id) && id.length <= maxSegmentLength && id !== '.' && id !== '..';

/** The decoded segments of a request target, or the reason of its refusal. */
function splitTarget(target: string): readonly string[] | string {
  if (plainTarget.test(target) && !target.includes('/.')) return target.slice(1).split('/');
  if (!target.startsWith('/')) return 'the request target must be a path';
  if (target === '/') return [];
  if (target.includes('?')) return 'the standard has no query parameters';
  const parts = target.slice(1).split('/');
  const segments = target.includes('%')
    ? parts.map((part) => part.replaceAll(encodedInIds, decodeURIComponent))
    : parts;
  if (segments.includes('')) return 'the path has an empty segment or a trailing slash';
  if (segments.some((part) => part === '.' || part === '..')) return 'the path has a dot segment';
  if (segments.some((part) => part.length > maxSegmentLength)) {
    return `a path segment is longer than ${maxSegmentLength} characters`;
  }
  if (!segments.every((part) => idSegment.test(part)))
    return 'the path contains a character that is not allowed';
  return segments;
}

/** `status` is never an authorisation type, even if every type is accepted. */
function fitsShape(
  parts: readonly string[],
  segments: readonly string[],
  { authorisationTypes }: PathRules,
  subResources: ReadonlySet<string>,
) {
  return parts.every((part, index) => {
    const segment = segments[index] ?? '';
    if (part === '{payment-authorisation}')
      return segment !== 'status' && isListed(authorisationTypes, segment);
    if (idParameters.has(part)) return !subResources.has(segment);
    return part.startsWith('{') || part === segment;
  });
}

/**
 * The names that no id has: such a path lacks its id or its product, as most of the standard's own examples do. If every
 * authorisation type is accepted, these are the standard's.
 */
function subResourcesOf({ authorisationTypes }: PathRules): ReadonlySet<string> {
  const configured = authorisationTypes === 'any' ? [] : authorisationTypes;
  return new Set(['status', 'authorisations', 'cancellation-authorisations', ...configured]);
}

/** Refuses characters that are allowed only in ids, if they occur in another segment. */
function refuseIdCharacters(parts: readonly string[], segments: readonly string[]): Match | undefined {
  const part = parts.find(
    (name, index) => !idParameters.has(name) && !plainSegment.test(segments[index] ?? ''),
  );
  if (part === undefined) return undefined;
  return { kind: 'malformed', why: `the path segment ${part} contains a character that is not allowed` };
}

function refuseUnlisted(
  rules: PathRules,
  [service = '', product = '']: readonly string[],
): Match | undefined {
  if (!isListed(rules.paymentServices, service)) {
    return { kind: 'unknown-product', why: 'the gateway does not offer this payment service' };
  }
  if (!isListed(rules.paymentProducts, product)) {
    return { kind: 'unknown-product', why: 'the gateway does not offer this payment product' };
  }
  return undefined;
}

const isListed = (list: 'any' | readonly string[], value: string) => list === 'any' || list.includes(value);

function operationOf(
  traits: Omit<(typeof operations)[number], 'shape'>,
  prefix: readonly string[],
  segments: readonly string[],
): Operation {
  const [paymentService = '', paymentProduct = '', paymentId] = segments;
  return {
    ...traits,
    paymentService,
    paymentProduct,
    ...(paymentId !== undefined && { paymentId }),
    path: `/${[...prefix, ...segments].join('/')}`,
  };
}
