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
  const byLength = Map.groupBy(shapes, ({ parts }) => prefix.length + parts.length);

  return (method, target) => {
    const segments = splitTarget(target);
    if (typeof segments === 'string') return { kind: 'malformed', why: segments };
    if (!startsWith(segments, prefix)) return { kind: 'unknown-path' };

    let fitting: Shape | undefined;
    let allow: readonly Method[] = [];
    for (const shape of byLength.get(segments.length) ?? []) {
      if (!fitsShape(shape.parts, segments, prefix.length, rules, subResources)) continue;
      if (!fitting) {
        const refusal =
          refuseIdCharacters(shape.parts, segments, prefix.length) ??
          refuseUnlisted(rules, segments, prefix.length);
        if (refusal) return refusal;
      }
      fitting = shape;
      if (shape.traits.method === method)
        return { kind: 'operation', operation: operationOf(shape.traits, segments, prefix.length) };
      allow = [...allow, shape.traits.method];
    }
    return fitting ? { kind: 'wrong-method', allow } : { kind: 'unknown-path' };
  };
}

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
    } else if (idParameters.has(part)) {
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

/** Refuses characters that are allowed only in ids, if they occur in another segment. */
function refuseIdCharacters(
  parts: readonly string[],
  segments: readonly string[],
  start: number,
): Match | undefined {
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? '';
    if (idParameters.has(part) || plainSegment.test(segments[start + at] ?? '')) continue;
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

function operationOf(traits: Shape['traits'], segments: readonly string[], start: number): Operation {
  const { name, method, lane, createsPayment, readsStatus, changesStatus, showsStatus } = traits;
  const paymentService = segments[start] ?? '';
  const paymentProduct = segments[start + 1] ?? '';
  const paymentId = segments[start + 2];
  const always = {
    name,
    method,
    lane,
    createsPayment,
    readsStatus,
    changesStatus,
    showsStatus,
    paymentService,
    paymentProduct,
    path: `/${segments.join('/')}`,
  };
  return paymentId === undefined ? always : { ...always, paymentId };
}
