/** The 304 of the gateway, for a status that the TPP already has. */

import { lowerCase } from '../pis/headers.ts';
import { emptyBody } from '../request/body-buffer.ts';
import type { PisResponse } from '../request/messages.ts';
import { hasTag } from '../request/status-tag.ts';

/** Whether a 200 has one of the tags of the TPP. */
export const hasKnownTag = ({ status, headers }: PisResponse, tags: readonly string[] | undefined): boolean =>
  status === 200 && tags !== undefined && hasTag(headers, tags);

/** The 304 in place of a 200, with the fields of RFC 9110 section 15.4.5 and those about the cache. */
export const notModified = (response: PisResponse): PisResponse => ({
  ...response,
  status: 304,
  headers: response.headers.filter(([name]) => keptFields.has(lowerCase(name))),
  body: emptyBody,
});

const keptFields: ReadonlySet<string> = new Set([
  ...['cache-control', 'content-location', 'date', 'etag', 'expires', 'vary'],
  ...['age', 'cache-status'],
]);
