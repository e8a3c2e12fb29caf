/** Recognises the formats of the standard in a `Content-Type`, regardless of case and parameters (RFC 9110 section 8.3.1). */

/** application/json, or a type based on it, such as application/problem+json (RFC 6839 section 3.1). */
export function isJson(contentType: string | undefined): boolean {
  const type = essenceOf(contentType);
  return type === 'application/json' || type.endsWith('+json');
}

/** A web page. */
export const isHtml = (contentType: string | undefined): boolean => essenceOf(contentType) === 'text/html';

const essenceOf = (contentType = '') => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
