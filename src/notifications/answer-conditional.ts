/** Answers status reads that are conditional on the gateway's own tags: the bank does not know these tags. */

import { type HeaderFields, lowerCase, withoutFields } from '../pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import { hasTag, statusTagsIn } from '../request/status-tag.ts';

interface ConditionalReads {
  /** Whether the status cache is in use: without it, responses have no tags of the gateway. */
  readonly enabled: boolean;
  readonly isBypassed: (headers: HeaderFields) => boolean;
}

/**
 * Reads the status without the condition, and returns 304 if it has one of the tags (RFC 9110 section 13.1.2). A read with any
 * other condition, or with a tag of another origin, passes unchanged.
 */
export function answerConditional({ enabled, isBypassed }: ConditionalReads): Stage<RoutedRequest> {
  return (request, next) => {
    if (!request.isConditional || !enabled) return next(request);
    const tags = statusTagsIn(request.headers);
    const unconditional = withoutFields(request.headers, conditionFields);
    if (!tags || isBypassed(unconditional)) return next(request);
    request.headers = unconditional;
    return next(request).then((response) =>
      response.status === 200 && hasTag(response.headers, tags) ? notModified(response) : response,
    );
  };
}

const conditionFields: ReadonlySet<string> = new Set(['if-none-match']);

/** The 304 in place of a 200, with the fields of RFC 9110 section 15.4.5 and those about the cache. */
export const notModified = (response: PisResponse): PisResponse => ({
  ...response,
  status: 304,
  headers: response.headers.filter(([name]) => notModifiedFields.has(lowerCase(name))),
  body: emptyBody,
});

const notModifiedFields: ReadonlySet<string> = new Set([
  ...['cache-control', 'content-location', 'date', 'etag', 'expires', 'vary'],
  ...['age', 'cache-status'],
]);

const emptyBody = Buffer.alloc(0);
