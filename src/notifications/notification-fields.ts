/** The header fields of the Resource Status Notification Service (1.3.11), in requests and responses. */

import { type HeaderFields, headerValues, lowerCase, withoutFields } from '../pis/headers.ts';
import type { PisResponse } from '../request/messages.ts';
import { type NotificationContent, serializeContent } from './notification-content.ts';

const requestFields: ReadonlySet<string> = new Set([
  'tpp-notification-uri',
  'tpp-notification-content-preferred',
]);
const responseFields: ReadonlySet<string> = new Set([
  'aspsp-notification-support',
  'aspsp-notification-content',
]);

/** The fields of a request without those about notifications. */
export const withoutPreferences = (headers: HeaderFields): HeaderFields =>
  withoutFields(headers, requestFields);

/** Whether the TPP's own signature covers one of the fields of the request (draft-cavage-http-signatures, `headers`). */
export function isSignedByTpp(headers: HeaderFields): boolean {
  return headerValues(headers, 'signature').some((signature) => {
    const [, covered = ''] = /(?:^|[\s,])headers\s*=\s*"([^"]*)"/i.exec(signature) ?? [];
    return covered.split(/\s+/).some((name) => requestFields.has(lowerCase(name)));
  });
}

/** The response without the bank's answer about notifications. */
export const withoutSupport = (response: PisResponse): PisResponse => ({
  ...response,
  headers: withoutFields(response.headers, responseFields),
});

/** The response with the gateway's answer in place of the bank's. @param content what is sent; `undefined` if nothing is */
export function withSupport(response: PisResponse, content: NotificationContent | undefined): PisResponse {
  const headers = withoutFields(response.headers, responseFields);
  const fields: HeaderFields = content
    ? [
        ['ASPSP-Notification-Support', 'true'],
        ['ASPSP-Notification-Content', serializeContent(content)],
      ]
    : [['ASPSP-Notification-Support', 'false']];
  return { ...response, headers: [...headers, ...fields] };
}
