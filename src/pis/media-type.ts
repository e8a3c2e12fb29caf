/** Recognises the formats of the standard in a `Content-Type`, regardless of case and parameters (RFC 9110 section 8.3.1). */

/** application/json, or a type based on it, such as application/problem+json (RFC 6839 section 3.1). */
export function isJson(contentType: string | undefined): boolean {
  const type = essenceOf(contentType);
  return type === 'application/json' || type.endsWith('+json');
}

/** application/xml, text/xml, or a type based on them (RFC 7303 sections 9.1, 9.2 and 4.2). */
export function isXml(contentType: string | undefined): boolean {
  const type = essenceOf(contentType);
  return type === 'application/xml' || type === 'text/xml' || type.endsWith('+xml');
}

const essenceOf = (contentType = '') => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
