/**
 * Maps links of the bank's API to URLs under which TPPs reach the same resources through the gateway. Every URL that the gateway
 * writes is one that it accepts: the link is matched like a request before it is rewritten.
 */

import {
  idToSegment,
  isId,
  type Matcher,
  type Method,
  type Operation,
  operations,
  prefixOf,
} from '../pis/operations.ts';
import { queryProblem, withQueryParameters } from '../pis/query.ts';
import {
  authorisationSegment,
  type BankIds,
  maxAuthorisations,
  mustBeRecorded,
  noBankIds,
} from '../request/bank-ids.ts';
import type { Environment, RoutedRequest } from '../request/messages.ts';
import type { Log } from '../telemetry/log.ts';

/** Maps the links of one response. */
export interface LinkMapper {
  /**
   * The public URL of a link; `undefined` if it must not change. Never throws.
   *
   * @param relation its name in `_links`, or the name of the header field
   */
  link(url: string, relation: string): string | undefined;
  /** The absolute URL of a link that sends the payer to the bank; `undefined` if it must not change. Never throws. */
  payerLink(url: string): string | undefined;
}

/** Maps the links of a response of the bank, and collects the ids in them that must be recorded. */
export interface BankLinkMapper extends LinkMapper {
  /** Notes an id in the body, to be called after the links, which may spell it differently. */
  addAuthorisation(id: string): void;
  /** `undefined` if no id must be recorded. */
  bankIds(): BankIds | undefined;
}

interface LinkMapperSettings {
  /** Base URL of the gateway for TPPs, such as `https://gateway.example`. */
  readonly publicUrl: string;
  /** The path before `/v1`; zero or more path segments. */
  readonly segment: string;
  readonly match: Matcher;
  readonly authorisationTypes: 'any' | readonly string[];
  /** With any payment service, every path ends like that of an operation: then only complete paths are links to the API. */
  readonly hasAnyService: boolean;
  /** Called for a link into the bank's API that cannot be followed through the gateway, and therefore stays as it is. */
  readonly onKept: (environment: string, relation: string) => void;
}

/** @param paymentId of the payment in the response; `undefined` if it names none */
export type MapLinksOf = (request: RoutedRequest, paymentId: string | undefined) => BankLinkMapper;

export function createMapLinks(settings: LinkMapperSettings): MapLinksOf {
  const prefix = prefixOf(settings.segment);
  const publicPrefix = settings.publicUrl.replace(/\/+$/, '') + prefix;
  const gateway = { ...settings, prefix, publicPrefix, ...usualFormsOf(settings.authorisationTypes) };
  return (request, paymentId) => new LinksOfResponse(gateway, request, paymentId);
}

interface GatewayOfLinks extends LinkMapperSettings {
  readonly usualId: RegExp;
  readonly usualRest: RegExp;
  /** Such as `/berlingroup/v1`, and with the public URL in front. */
  readonly prefix: string;
  readonly publicPrefix: string;
}

interface OwnPath {
  readonly start: string;
  /** Length of what precedes `/{payment-service}`. */
  readonly prefixEnd: number;
}

class LinksOfResponse implements BankLinkMapper {
  readonly #settings: GatewayOfLinks;
  readonly #request: RoutedRequest;
  readonly #paymentId: string | undefined;
  /** The path segment of the payment id at the bank; `undefined` until the first link to a new payment. */
  #payment: string | undefined;
  /** The path segments of authorisations, by id; `undefined` until there is one. */
  #authorisations: Map<string, string> | undefined;
  /** See `#ownPaths`; `undefined` until the first link. */
  #own: readonly OwnPath[] | undefined;
  /** The different beginnings of paths at the bank; `undefined` until the first link. */
  #prefixes: readonly string[] | undefined;

  constructor(settings: GatewayOfLinks, request: RoutedRequest, paymentId: string | undefined) {
    this.#settings = settings;
    this.#request = request;
    this.#paymentId = paymentId;
    if (request.operation.paymentId !== undefined)
      this.#payment = request.bankIds?.payment ?? idToSegment(request.operation.paymentId);
  }

  link(url: string, relation: string): string | undefined {
    const { environment } = this.#request;
    const usual = this.#usualTailOf(url);
    if (usual !== undefined) return this.#settings.publicPrefix + usual;
    if (url.length > maxLinkLength) {
      this.#settings.onKept(environment.name, relation);
      return undefined;
    }
    const parts = partsOf(url);
    if (!parts || (parts.origin !== undefined && parts.origin !== environment.origin)) return undefined;
    const { origin, path, search, fragment } = parts;
    const tail = this.#tailOf(path, search, relation, origin !== undefined);
    if (tail !== undefined) return this.#settings.publicPrefix + tail + search + fragment;
    this.#settings.onKept(environment.name, relation);
    return undefined;
  }

  /**
   * The tail of a link to the payment of the response, in the bank's only prefix and without anything unusual. Nearly all links are such;
   * to match them like a request would take three times as long (a tenth of the CPU time of a payment).
   */
  #usualTailOf(url: string): string | undefined {
    this.#own ??= this.#ownPaths();
    for (const own of this.#own) {
      if (!url.startsWith(own.start) || !this.#settings.usualRest.test(url.slice(own.start.length))) continue;
      this.#payment ??= this.#paymentId;
      return url.slice(own.prefixEnd);
    }
    return undefined;
  }

  /** The beginnings of links to the payment; none if its id or its paths at the bank are not the usual ones. */
  #ownPaths(): readonly OwnPath[] {
    const { environment, operation } = this.#request;
    const id = this.#paymentId;
    const isSpelledOtherwise = this.#payment !== undefined && this.#payment !== id;
    const [prefix, another] = this.#bankPrefixes();
    if (
      id === undefined ||
      !this.#settings.usualId.test(id) ||
      isSpelledOtherwise ||
      prefix === undefined ||
      another !== undefined
    )
      return [];
    const path = `${prefix}/${operation.paymentService}/${operation.paymentProduct}/${id}`;
    return [
      { start: path, prefixEnd: prefix.length },
      { start: environment.origin + path, prefixEnd: environment.origin.length + prefix.length },
    ];
  }

  #bankPrefixes(): readonly string[] {
    this.#prefixes ??= [...new Set(Object.values(this.#request.environment.prefixes))];
    return this.#prefixes;
  }

  payerLink(url: string): string | undefined {
    if (hasScheme.test(url) || url.length > maxLinkLength) return undefined; // nearly all have a scheme
    const { environment, operation } = this.#request;
    if (!uriReference.test(url) || url.startsWith('//')) return undefined;
    if (url.startsWith('/')) return environment.origin + url;
    const base = environment.origin + environment.prefixes[operation.name] + operation.resource;
    return URL.parse(url, base)?.href;
  }

  addAuthorisation(id: string): void {
    if (isId(id) && this.#mayRecordMore()) this.#noteAuthorisation(id, idToSegment(id));
  }

  bankIds(): BankIds | undefined {
    const paymentId = this.#paymentId;
    const isNew =
      this.#request.operation.paymentId === undefined && paymentId !== undefined && isId(paymentId);
    const payment = isNew && this.#payment !== idToSegment(paymentId) ? this.#payment : undefined;
    const authorisations = [...(this.#authorisations ?? [])]
      .filter(([id, segment]) => mustBeRecorded(id, segment))
      .map(([, segment]) => segment);
    if (payment === undefined && authorisations.length === 0) return undefined;
    return { ...(payment !== undefined && { payment }), authorisations };
  }

  /**
   * The end of a path that the gateway accepts below its own prefix: the path after the bank's prefix or, of a relative link, after
   * the last place from which the rest is the path of an operation. Banks omit parts of their own path in relative links.
   */
  #tailOf(path: string, search: string, relation: string, isAbsolute: boolean): string | undefined {
    if (hasDotSegment.test(path)) return undefined;
    for (const prefix of this.#bankPrefixes()) {
      if (!path.startsWith(`${prefix}/`)) continue;
      const tail = path.slice(prefix.length);
      const operation = this.#accepted(tail, search, relation);
      if (operation && this.#request.environment.prefixes[operation.name] === prefix)
        return this.#use(operation, tail);
    }
    if (isAbsolute || this.#settings.hasAnyService) return undefined;
    let tail = '';
    for (const segment of path.split('/').slice(-maxSegments).reverse()) {
      tail = `/${segment}${tail}`;
      const operation = this.#accepted(tail, search, relation);
      if (operation) return this.#use(operation, tail);
    }
    return undefined;
  }

  /**
   * The operation of a link. A link to start something is followed with POST, one to update an authorisation with PUT, any other one
   * with GET, if there is one.
   */
  #accepted(tail: string, search: string, relation: string): Operation | undefined {
    const { match, prefix } = this.#settings;
    const target = prefix + tail + search;
    const preferred = methodFor(relation);
    let found = match(preferred, target);
    if (found.kind === 'wrong-method') found = match(found.allow[0] ?? preferred, target);
    if (found.kind !== 'operation') return undefined;
    const { operation } = found;
    const { queryParameters, query } = this.#request.environment;
    if (queryProblem(operation.search, queryParameters) !== undefined) return undefined;
    return keepsItsQuery(operation.search, query) && this.#isKnown(operation, tail) ? operation : undefined;
  }

  /** Whether the ids are usual, or those of this payment in the spelling that is, or will be, recorded. */
  #isKnown({ paymentId, authorisationId }: Operation, tail: string): boolean {
    const [, , , payment = '', , authorisation = ''] = tail.split('/');
    if (paymentId === undefined) return true;
    if (paymentId === this.#paymentId) {
      if (payment !== (this.#payment ?? payment)) return false;
    } else if (mustBeRecorded(paymentId, payment)) return false;
    if (authorisationId === undefined) return true;
    const known = this.#authorisationSegment(authorisationId);
    if (known !== undefined) return known === authorisation;
    if (!mustBeRecorded(authorisationId, authorisation)) return true;
    return paymentId === this.#paymentId && this.#mayRecordMore();
  }

  #mayRecordMore(): boolean {
    const recorded = this.#request.bankIds?.authorisations.length ?? 0;
    return recorded + (this.#authorisations?.size ?? 0) < maxAuthorisations;
  }

  /** The first spelling of an id counts. An id that need not be recorded is noted only while there are few. */
  #noteAuthorisation(id: string, segment: string): void {
    if (this.#authorisationSegment(id) !== undefined || !this.#mayRecordMore()) return;
    this.#authorisations ??= new Map();
    this.#authorisations.set(id, segment);
  }

  #authorisationSegment(id: string): string | undefined {
    const { bankIds = noBankIds } = this.#request;
    return authorisationSegment(id, bankIds) ?? this.#authorisations?.get(id);
  }

  /** Notes the ids of a link that is rewritten. @returns the tail */
  #use({ paymentId, authorisationId }: Operation, tail: string): string {
    const [, , , payment, , authorisation] = tail.split('/');
    if (paymentId !== undefined && paymentId === this.#paymentId) this.#payment ??= payment;
    if (authorisationId === undefined || authorisation === undefined) return tail;
    this.#noteAuthorisation(authorisationId, authorisation);
    return tail;
  }
}

/** An id of plain characters that is no name of a sub-resource, and what may follow it in a link to its payment. */
function usualFormsOf(
  types: LinkMapperSettings['authorisationTypes'],
): Pick<GatewayOfLinks, 'usualId' | 'usualRest'> {
  const names = (types === 'any' ? [] : types).map((type) => type.replaceAll('.', '\\.'));
  const id = `(?!(?:\\.{1,2}|${['status', ...names].join('|')})$)[\\w.~-]{1,256}`;
  const lists = names.length === 0 ? '' : `|/(?:${names.join('|')})(?:/${id})?`;
  return { usualId: new RegExp(`^${id}$`), usualRest: new RegExp(`^(?:/status${lists})?$`) };
}

/** Whether the bank receives the query of a link, although the gateway sets some parameters. Values in files are those of the bank. */
function keepsItsQuery(search: string, query: Environment['query']): boolean {
  if (search === '' || search === '?') return true;
  const fixed = Object.entries(query).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  );
  return `${withQueryParameters(search, fixed)}&`.startsWith(`${search}&`);
}

/** The parts of a URI reference that may point to the bank's API. */
interface LinkParts {
  /** `undefined` if the link is relative. */
  readonly origin: string | undefined;
  readonly path: string;
  /** With its question mark; empty without a query. */
  readonly search: string;
  /** With its hash; empty without a fragment. */
  readonly fragment: string;
}

/**
 * Splits a link (RFC 3986 appendix B). Programs disagree about user information, network-path references and backslashes, so such
 * links are never rewritten.
 *
 * @returns `undefined` for such a link, for one with another scheme, and for a text that is no link
 */
function partsOf(url: string): LinkParts | undefined {
  if (!uriReference.test(url)) return undefined;
  const [, scheme, authority, path = '', search = '', fragment = ''] = components.exec(url) ?? [];
  if (scheme === undefined && authority === undefined)
    return path === '' ? undefined : { origin: undefined, path, search, fragment };
  if (scheme === undefined || authority === undefined || authority.includes('@')) return undefined;
  const origin = URL.parse(`${scheme}:${authority}`)?.origin;
  return origin?.startsWith('http') ? { origin, path, search, fragment } : undefined;
}

function methodFor(relation: string): Method {
  if (relation.startsWith('startAuthorisation')) return 'POST';
  return relation.startsWith('update') || stepsOfPayer.has(relation) ? 'PUT' : 'GET';
}

/** The relations of `PUT` that do not begin with `update` (OpenAPI 1.3.6 and 1.3.11). */
const stepsOfPayer: ReadonlySet<string> = new Set([
  'selectAuthenticationMethod',
  'authoriseTransaction',
  'confirmation',
]);

const hasScheme = /^[a-z][a-z0-9+.-]*:/i;

/** The characters of RFC 3986, appendix A. */
const uriReference =
  /^(?:[A-Za-z0-9._~:/?[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+(?:#(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?$/;
const components = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(\/\/[^/?#]*)?([^?#]*)(\?[^#]*)?(#.*)?$/;

const hasDotSegment = /(?:^|\/)(?:\.|%2e){1,2}(?:[/;]|$)/i;

/** The head of a request has at most 16 KiB, of which the link must leave some for the fields. */
const maxLinkLength = 8_192;

/** No path of an operation has more segments. */
const maxSegments = Math.max(...operations.map(({ shape }) => shape.split('/').length - 1));

/** Maps the links of a response that was stored when the gateway had another public URL. */
export function createPublicUrlMapper(from: string, to: string, segment: string): LinkMapper {
  const [old, current] = [from, to].map((url) => `${url.replace(/\/+$/, '')}${prefixOf(segment)}/`);
  return {
    link: (url) =>
      old !== undefined && url.startsWith(old) ? `${current}${url.slice(old.length)}` : undefined,
    payerLink: () => undefined,
  };
}

/** Logs once for each environment and relation: a bank repeats its links in every answer. */
export function createKeptLinkLog(log: Log): LinkMapperSettings['onKept'] {
  const logged = new Map<string, Set<string>>();
  return (environment, name) => {
    const relation = plainRelation.test(name) ? name : 'of another name';
    const ofEnvironment = logged.get(environment) ?? new Set();
    logged.set(environment, ofEnvironment);
    if (ofEnvironment.has(relation) || ofEnvironment.size >= maxLogged) return;
    ofEnvironment.add(relation);
    const what =
      'a link of the bank cannot be followed through the gateway, and stays as the bank sent it; ' +
      `if it leads to the API, check environments.${environment}.segment and pathVersion`;
    log('warn', what, { environment, relation });
  };
}

const plainRelation = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** Of each environment: a bank could invent relations. */
const maxLogged = 50;
