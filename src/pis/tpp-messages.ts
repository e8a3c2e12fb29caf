/** Error bodies in the two formats of the standard. */

/** Media types of the formats, the default first. */
export const errorFormats = ['application/json', 'application/problem+json'] as const;

export type ErrorFormat = (typeof errorFormats)[number];

export interface TppError {
  /** Code of the gateway, such as `PATH_MALFORMED`. */
  readonly code: string;
  /** Message code of the standard, such as `FORMAT_ERROR`. */
  readonly tppCode: string;
  /** What happened and what to do next; cut off after 500 characters. */
  readonly text: string;
  /** The header or field that is wrong, if it is one. */
  readonly field?: string | undefined;
  /** The payment that the request has made, or concerns, with its address at the gateway. */
  readonly payment?: { readonly id: string; readonly url: string } | undefined;
}

/**
 * The error as JSON: `tppMessages`, or problem details. Both name the payment as the response to an initiation does.
 *
 * Source: `tppMessages` and `Error400_NG_PIS` of the OpenAPI files 1.3.6 and 1.3.11; RFC 9457 section 3.
 */
export function errorBody(error: TppError, format: ErrorFormat): string {
  const body = format === 'application/json' ? tppMessages(error) : problemDetails(error);
  return JSON.stringify({ ...body, ...(error.payment && paymentMembers(error.payment)) });
}

const paymentMembers = ({ id, url }: NonNullable<TppError['payment']>) => ({
  paymentId: id,
  _links: { self: { href: url }, status: { href: `${url}/status` } },
});

function tppMessages({ code, tppCode, field, text }: TppError) {
  const path = field === undefined ? {} : { path: field };
  return {
    tppMessages: [{ category: 'ERROR', code: tppCode, ...path, text: truncate(500, `${code}: ${text}`) }],
  };
}

function problemDetails({ code, tppCode, text }: TppError) {
  const title = `${code.charAt(0)}${code.slice(1).toLowerCase().replaceAll('_', ' ')}`;
  return {
    type: truncate(70, `urn:penstock:error:${code}`),
    title: truncate(70, title),
    detail: truncate(500, text),
    code: tppCode,
  };
}

/** Counts characters, not UTF-16 code units: no character is cut in half. */
function truncate(limit: number, text: string): string {
  const characters = Array.from(text);
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join('')}…`;
}
