/** Finds the id of a payment in a link of the bank. */

import { isNamed } from './headers.ts';

/**
 * The id in a link to a payment, its status or its authorisations: the path ends in `/{payment-service}/{payment-product}/{paymentId}`,
 * optionally followed by `/status` or `/authorisations...`. Banks write links as full URLs, as paths, or without the leading slash.
 *
 * @param url            as the bank wrote it
 * @param paymentService of the request: a link to another service names no payment of it
 * @param paymentProduct that the link must name; `undefined` for any
 * @returns the id, percent-decoded once; `undefined` if the link has another form
 */
export function paymentIdInLink(
  url: string,
  paymentService: string,
  paymentProduct?: string,
): string | undefined {
  const path = url.length > maxLinkLength ? undefined : pathOf(url);
  if (path === undefined) return undefined;
  const segments = path.split('/');
  if (segments.at(-1) === '') segments.pop(); // a slash at the end
  for (let at = segments.length - 3; at >= Math.max(0, segments.length - 5); at--) {
    const [service, product = '', id = '', next] = segments.slice(at, at + 4);
    if (service !== paymentService || product === '' || id === '' || isSubResource(id)) continue;
    if (paymentProduct !== undefined && product !== paymentProduct) continue;
    if (next !== undefined && !isSubResource(next)) continue;
    if (next !== undefined && isNamed(next, 'status') && segments.length > at + 4) continue;
    return decoded(id);
  }
  return undefined;
}

/** An id has at most 1,024 characters, each of which may be percent-encoded. */
const maxLinkLength = 8_192;

/** The path with its percent-encodings, without query and fragment. */
function pathOf(url: string): string | undefined {
  const base = 'http://bank.invalid/';
  if (!URL.canParse(url, base)) return undefined;
  const { protocol, pathname } = new URL(url, base);
  return protocol === 'https:' || protocol === 'http:' ? pathname : undefined;
}

/** `authorizations` is not in the standard, but some banks write it. */
const isSubResource = (segment: string) => /^(?:status|(?:cancellation-)?authori[sz]ations)$/i.test(segment);

function decoded(id: string): string | undefined {
  try {
    const text = decodeURIComponent(id);
    return text.trim() === '' ? undefined : text;
  } catch {
    return undefined;
  }
}
