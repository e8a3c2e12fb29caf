/** Maps URLs of the bank's API to the URLs under which TPPs reach the same resources through the gateway. */

import { prefixOf } from '../pis/operations.ts';
import type { Environment, RoutedRequest } from '../request/messages.ts';

/** The public URL for a URL of the bank, or `undefined` if it must not change. Never throws. */
export type ToPublicUrl = (url: string) => string | undefined;

/**
 * Each response has its own mapping: relative URLs are resolved against the URL of the request at the bank (RFC 3986
 * section 5.1.3).
 *
 * A URL is mapped only if it points into the bank's API: same origin, and a path below `<basePath>/<segment>/v1/`. Banks
 * omit a part of that: the segment (`<basePath>/v1/`), and in relative URLs also the base path (`/<segment>/v1/`) or both
 * (`/v1/payments/1` in the examples of 1.3.6). Query and fragment are kept.
 */
export function createUrlMapper(
  publicUrl: string,
  segment: string,
): (request: Pick<RoutedRequest, 'environment' | 'operation'>) => ToPublicUrl {
  const prefix = prefixOf(segment);
  const publicPrefix = `${publicUrl.replace(/\/+$/, '')}${prefix}/`;
  const prefixesOfEnvironments = new WeakMap<object, BankPrefixes>();

  const prefixesOf = ({ origin, basePath }: Environment): BankPrefixes => {
    const complete = `${origin}${basePath}${prefix}/`;
    const withoutSegment = `${origin}${basePath}/v1/`;
    // Without a base path, `/v1/` of the bank's origin may be another API. With a segment that begins with `v1`, the rest of
    // an absolute URL may begin with the rest of the segment and be another version.
    const isOwn = basePath !== '' && !prefix.startsWith('/v1/');
    return {
      absolute: isOwn ? [complete, withoutSegment] : [complete],
      relative: [complete, withoutSegment, `${origin}${prefix}/`, `${origin}/v1/`],
    };
  };

  return ({ environment, operation }) => {
    const known = prefixesOfEnvironments.get(environment);
    const prefixes = known ?? prefixesOf(environment);
    if (!known) prefixesOfEnvironments.set(environment, prefixes);
    const { origin, basePath } = environment;

    return (url) => {
      const normal = normalHref(url, origin);
      if (normal === undefined && beyondRfc3986.test(url)) return undefined;
      const href = normal ?? URL.parse(url, `${origin}${basePath}${operation.path}`)?.href ?? '';
      for (const prefix of prefixesFor(url, prefixes))
        if (href.startsWith(prefix)) return `${publicPrefix}${href.slice(prefix.length)}`;
      return undefined;
    };
  };
}

/** The beginnings of the URLs of one environment's API. */
interface BankPrefixes {
  readonly absolute: readonly string[];
  readonly relative: readonly string[];
}

/**
 * The whole URL for a path or for a URL of the bank's origin that is written as the URL parser would write it; `undefined` for
 * all others.
 *
 * The parser normalizes host, default port and dot segments, `%2e%2e` included. Its result is compared from the first
 * character: neither a foreign host nor user information (`https://api.bank.example@evil.example/`) matches.
 */
function normalHref(url: string, origin: string): string | undefined {
  const isAbsolute = url.startsWith(origin);
  const path = isAbsolute ? url.slice(origin.length) : url;
  if (!normalPath.test(path) || path.includes('/.') || (!isAbsolute && path.startsWith('//')))
    return undefined;
  return isAbsolute ? url : origin + url;
}

const normalPath = /^\/[\w.~\-/=:@+,!$*]*$/;

/** Maps the links of a response that was stored when the gateway had another public URL. */
export function createPublicUrlMapper(from: string, to: string, segment: string): ToPublicUrl {
  const [old, current] = [from, to].map((url) => `${url.replace(/\/+$/, '')}${prefixOf(segment)}/`);
  return (url) =>
    old !== undefined && url.startsWith(old) ? `${current}${url.slice(old.length)}` : undefined;
}

/** Characters that the URL parser repairs silently and other parsers read differently. */
const beyondRfc3986 = /[\s\\\p{Cc}]/u;
const withAuthority = /^(?:https?:)?\/\/[^/?#]/i;
const withoutAuthority = /^(?![a-z][a-z0-9+.-]*:|\/\/)./i;

function prefixesFor(url: string, { absolute, relative }: BankPrefixes): readonly string[] {
  if (withAuthority.test(url)) return absolute;
  return withoutAuthority.test(url) ? relative : [];
}
