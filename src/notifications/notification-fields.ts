/** The header fields of the Resource Status Notification Service (1.3.11), in requests and responses. */

import { type HeaderFields, withoutFields } from '../pis/headers.ts';
import type { PisResponse } from '../request/messages.ts';
import { type NotificationContent, serializeContent } from './notification-content.ts';
import { isCovered } from './tpp-signature.ts';

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

/** Whether the TPP's own signature covers one of the fields about notifications: then they must pass unchanged. */
export const arePreferencesSigned = (headers: HeaderFields): boolean => isCovered(headers, requestFields);

/** The response without the bank's answer about notifications. */
export const withoutSupport = (response: PisResponse): PisResponse => ({
  ...response,
  headers: withoutFields(response.headers, responseFields),
});

/** The response with the gateway's answer in place of the bank's. @param content of the subscription; `undefined` if there is none */
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
