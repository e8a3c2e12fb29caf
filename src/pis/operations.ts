/**
 * The eight operations of the payment initiation service, and how a request line becomes one of them.
 *
 * This table is the only place that knows methods and path shapes: everything else asks a row's traits.
 * Source: OpenAPI of NextGenPSD2 XS2A 1.3.6 and 1.3.11, which agree on every path (CC BY 4.0, The Berlin Group).
 */

/** The methods that the standard uses for payments; everything else is refused. */
export type Method = 'GET' | 'POST' | 'DELETE';

/** Which calls share a queue, a deadline and a circuit: `write` may move money, `status` is polled. */
export type Lane = (typeof lanes)[number];

/** The most urgent first. */
export const lanes = ['write', 'read', 'status'] as const;

interface OperationRow {
  readonly name: string;
  readonly method: Method;
  /** What stands after `/<segment>/v1`; braces mark parameters, everything else is literal. */
  readonly shape: string;
  readonly lane: Lane;
  readonly createsPayment: boolean;
  readonly readsStatus: boolean;
  readonly changesStatus: boolean;
}

const plain = { createsPayment: false, readsStatus: false, changesStatus: false } as const;

/** The rows; where two fit a path, they differ in their method. */
export const operations = [
  {
    ...plain,
    name: 'initiatePayment',
    method: 'POST',
    shape: '/{payment-service}/{payment-product}',
    lane: 'write',
    createsPayment: true,
  },
  {
    ...plain,
    name: 'getPayment',
    method: 'GET',
    shape: '/payments/{payment-product}/{paymentId}',
    lane: 'read',
  },
  {
    ...plain,
    name: 'getPeriodicPayment',
    method: 'GET',
    shape: '/periodic-payments/{payment-product}/{paymentId}',
    lane: 'read',
  },
  {
    ...plain,
    name: 'getPaymentStatus',
    method: 'GET',
    shape: '/{payment-service}/{payment-product}/{paymentId}/status',
    lane: 'status',
    readsStatus: true,
  },
  {
    ...plain,
    name: 'cancelPayment',
    method: 'DELETE',
    shape: '/{payment-service}/{payment-product}/{paymentId}',
    lane: 'write',
    changesStatus: true,
  },
  {
    ...plain,
    name: 'startAuthorisation',
    method: 'POST',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}',
    lane: 'write',
    changesStatus: true,
  },
  {
    ...plain,
    name: 'listAuthorisations',
    method: 'GET',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}',
    lane: 'read',
  },
  {
    ...plain,
    name: 'getAuthorisation',
    method: 'GET',
    shape: '/{payment-service}/{payment-product}/{paymentId}/{payment-authorisation}/{authorisation-id}',
    lane: 'read',
  },
] as const satisfies readonly OperationRow[];

/** Such as `getPaymentStatus`: the label in logs and metrics. */
export type OperationName = (typeof operations)[number]['name'];

/** One request line, understood: the traits of its row, its parameters, and the path made from them. */
export interface Operation {
  readonly name: OperationName;
  readonly method: Method;
  readonly lane: Lane;
  readonly createsPayment: boolean;
  readonly readsStatus: boolean;
  readonly changesStatus: boolean;
  readonly paymentService: string;
  readonly paymentProduct: string;
  readonly paymentId?: string;
  readonly authorisationType?: string;
  readonly authorisationId?: string;
  /** `/<segment>/v1/...`, built from the validated parameters, never copied from the request line. */
  readonly path: string;
}

/** Which values a path may hold; `any` takes every well-formed segment. */
export interface PathRules {
  /** What stands before `/v1`: none to several path segments, without slashes at its ends. */
  readonly segment: string;
  readonly paymentServices: 'any' | readonly string[];
  readonly paymentProducts: 'any' | readonly string[];
  readonly authorisationTypes: 'any' | readonly string[];
}

/** What a request line is, or why it is refused: 400, 404, 404 and 405. */
export type Match =
  | { readonly kind: 'operation'; readonly operation: Operation }
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'unknown-path' }
  | { readonly kind: 'unknown-product'; readonly why: string }
  | { readonly kind: 'wrong-method'; readonly allow: readonly Method[] };

/**
 * Understands a method and a raw request target, as it stands in the request line. Never throws.
 *
 * Refusals come in the order of `Match`, but for one: characters that only ids may hold are judged when the
 * shape is known, so on an unknown path they count as unknown.
 */
export type Matcher = (method: string, target: string) => Match;

/** What every path begins with: `/v1` behind the standard's segment, such as `/berlingroup/v1`. */
export function prefixOf(segment: string): string {
  return `/${prefixParts(segment).join('/')}`;
}

/** Builds the matcher of one installation. */
export function createMatcher(rules: PathRules): Matcher {
  const prefix = prefixParts(rules.segment);
  const shapes = operations.map(({ shape, ...traits }) => ({ traits, parts: partsOf(shape) }));
  const byLength = Map.groupBy(shapes, ({ parts }) => parts.length);

  return (method, target) => {
    const split = splitTarget(target);
    if (typeof split === 'string') return { kind: 'malformed', why: split };
    if (prefix.some((part, index) => split[index] !== part)) return { kind: 'unknown-path' };

    const segments = split.slice(prefix.length);
    const fitting = byLength.get(segments.length)?.filter(({ parts }) => fits(parts, segments, rules)) ?? [];
    const [first] = fitting;
    if (!first) return { kind: 'unknown-path' };
    const refusal = misplaced(first.parts, segments) ?? notOffered(rules, segments);
    if (refusal) return refusal;

    const found = fitting.find(({ traits }) => traits.method === method);
    if (!found) return { kind: 'wrong-method', allow: fitting.map(({ traits }) => traits.method) };
    return { kind: 'operation', operation: operationOf(found.traits, prefix, segments) };
  };
}

const prefixParts = (segment: string) => [...segment.split('/').filter((part) => part !== ''), 'v1'];
const partsOf = (shape: string) => shape.slice(1).split('/');

/** Where banks put more than RFC 3986's unreserved characters: `GJv0KO..Fg==_=_bS6p6XvTWI` is a real payment id. */
const idParts: ReadonlySet<string> = new Set(['{paymentId}', '{authorisation-id}']);

const plainSegment = /^[A-Za-z0-9._~-]+$/;
const idCharacter = '[A-Za-z0-9._~=:@+,!$*-]';
const idSegment = new RegExp(`^${idCharacter}+$`);
const encodedInIds = /%(?:3D|3A|40|2B|2C|21|24|2A)/g;
const maxSegmentLength = 256;
/** Nearly every target: if no segment begins with a dot either, nothing in it needs a closer look. */
const plainTarget = new RegExp(`^(?:/${idCharacter}{1,${maxSegmentLength}})+$`);

/** Whether an id can stand in a path as a paymentId. */
export const isPaymentId = (id: string): boolean =>
  idSegment.test(id) && id.length <= maxSegmentLength && id !== '.' && id !== '..';

/** The decoded segments of a request target, or what is wrong with it. */
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
  if (!segments.every((part) => idSegment.test(part))) return 'the path holds a character it may not';
  return segments;
}

/** `status` is never an authorisation, not even where every authorisation type is welcome. */
function fits(parts: readonly string[], segments: readonly string[], { authorisationTypes }: PathRules) {
  return parts.every((part, index) => {
    const segment = segments[index] ?? '';
    if (part === '{payment-authorisation}')
      return segment !== 'status' && listed(authorisationTypes, segment);
    return part.startsWith('{') || part === segment;
  });
}

/** Refuses the characters that only ids may hold, where they stand in another segment. */
function misplaced(parts: readonly string[], segments: readonly string[]): Match | undefined {
  const part = parts.find((name, index) => !idParts.has(name) && !plainSegment.test(segments[index] ?? ''));
  if (part === undefined) return undefined;
  return { kind: 'malformed', why: `the path segment ${part} holds a character it may not` };
}

function notOffered(rules: PathRules, [service = '', product = '']: readonly string[]): Match | undefined {
  if (!listed(rules.paymentServices, service)) {
    return { kind: 'unknown-product', why: 'the payment service is not offered here' };
  }
  if (!listed(rules.paymentProducts, product)) {
    return { kind: 'unknown-product', why: 'the payment product is not offered here' };
  }
  return undefined;
}

const listed = (list: 'any' | readonly string[], value: string) => list === 'any' || list.includes(value);

function operationOf(
  traits: Omit<(typeof operations)[number], 'shape'>,
  prefix: readonly string[],
  segments: readonly string[],
): Operation {
  const [paymentService = '', paymentProduct = '', paymentId, fourth, authorisationId] = segments;
  return {
    ...traits,
    paymentService,
    paymentProduct,
    ...(paymentId !== undefined && { paymentId }),
    ...(fourth !== undefined && !traits.readsStatus && { authorisationType: fourth }),
    ...(authorisationId !== undefined && { authorisationId }),
    path: `/${[...prefix, ...segments].join('/')}`,
  };
}
