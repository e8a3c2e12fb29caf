/**
 * The entity tags that the gateway gives to statuses (RFC 9110 section 8.8.3). They are weak: responses with equal statuses have
 * equal tags, whatever their format.
 */

import { type HeaderFields, headerValue, headerValues } from '../pis/headers.ts';

/** @param hash 22 characters of base64url */
export const statusTagOf = (hash: string): string => `W/"penstock-${hash}"`;

/** Whether an `ETag` has the form of the gateway's tags. A bank behind another Penstock sends such tags, too. */
export const isStatusTag = (tag: string): boolean => form.test(tag);

const form = /^(?:W\/)?"penstock-[\w-]{22}"$/;

/** The tags in `If-None-Match`; `undefined` if the field is absent, or has a member that is not a tag of the gateway. */
export function statusTagsIn(headers: HeaderFields): readonly string[] | undefined {
  const values = headerValues(headers, 'if-none-match');
  const members = values.flatMap((value) => value.split(',')).map((member) => member.trim());
  const tags = members.filter((member) => member !== '');
  return tags.length > 0 && tags.every(isStatusTag) ? tags : undefined;
}

/** Whether the `ETag` of a response is one of these tags, in the weak comparison (RFC 9110 section 8.8.3.2). */
export function hasTag(headers: HeaderFields, tags: readonly string[]): boolean {
  const tag = headerValue(headers, 'etag');
  return tag !== undefined && tags.some((one) => opaque(one) === opaque(tag));
}

const opaque = (tag: string) => tag.replace(/^W\//, '');
