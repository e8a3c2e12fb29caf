/**
 * The stage of writes that subscribes to the status of a payment (Resource Status Notification Service, 1.3.11). The subscription is
 * stored before the response says so.
 */

import { randomUUID } from 'node:crypto';
import { type HeaderFields, headerValues, lowerCase, withoutFields } from '../pis/headers.ts';
import { finalityOf } from '../pis/transaction-status.ts';
import { asGatewayError } from '../request/errors.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import { paymentIdOf } from '../request/payment-id.ts';
import type { Stage } from '../request/stage.ts';
import type { Log } from '../telemetry/log.ts';
import { type NotificationContent, parseContentPreferred, serializeContent } from './notification-content.ts';
import { isAllowedUrl, parseNotificationUrl } from './notification-url.ts';
import type { Subscription } from './subscription.ts';
import { queueNames, type SubscriptionStore, subscriptionKeyOf } from './subscription-store.ts';

export interface SubscribeDependencies {
  /** The URLs that a client may name; `undefined` if it may not have webhooks. */
  readonly urlsOf: (client: string) => readonly string[] | undefined;
  readonly store: SubscriptionStore;
  /** The key of a payment in the shared state. */
  readonly paymentKeyOf: (environmentId: string, paymentId: string) => string;
  /** The fields of a request with which the status of its payment can be read. */
  readonly pollHeadersOf: (headers: HeaderFields) => HeaderFields;
  /** Whether stored credentials are protected: encrypted, or in the memory of this process. */
  readonly mayStoreCredentials: boolean;
  /** Whether the gateway can read the status of this payment for the TPP. */
  readonly canPoll: (request: RoutedRequest, paymentId: string) => boolean;
  /** When the status is read for the first time. Milliseconds. */
  readonly firstPollMs: (subscription: Subscription) => number;
  /** `notifications.keepFor` in milliseconds. */
  readonly keepForMs: number;
  readonly log: Log;
}

export function subscribe(dependencies: SubscribeDependencies): Stage<RoutedRequest> {
  const { urlsOf } = dependencies;
  return (request, next) => {
    const allowed = urlsOf(request.client.name);
    if (!allowed) return next(request);
    const uris = headerValues(request.headers, 'tpp-notification-uri');
    if (uris.length === 0 || isSigned(request.headers)) return next(request);
    const [uri = ''] = uris;
    const url = uris.length === 1 ? parseNotificationUrl(uri) : undefined;
    const content = parseContentPreferred(
      headerValues(request.headers, 'tpp-notification-content-preferred'),
    );
    request.headers = withoutFields(request.headers, requestFields);
    const { headers } = request; // the request has no body and no headers of its own after the response
    return next(request).then((response) => {
      if (response.status >= 300) return response;
      const wanted = url && isAllowedUrl(url, allowed) ? { url: url.href, content, headers } : undefined;
      return wanted
        ? subscribeTo(dependencies, request, response, wanted).then((isStored) =>
            withSupport(response, isStored ? content : undefined),
          )
        : withSupport(response, undefined);
    });
  };
}

const requestFields: ReadonlySet<string> = new Set([
  'tpp-notification-uri',
  'tpp-notification-content-preferred',
]);
const responseFields: ReadonlySet<string> = new Set([
  'aspsp-notification-support',
  'aspsp-notification-content',
]);

/** Whether the TPP's own signature covers one of the fields (draft-cavage-http-signatures, `headers`). */
function isSigned(headers: HeaderFields): boolean {
  return headerValues(headers, 'signature').some((signature) => {
    const [, covered = ''] = /(?:^|[\s,])headers\s*=\s*"([^"]*)"/i.exec(signature) ?? [];
    return covered.split(/\s+/).some((name) => requestFields.has(lowerCase(name)));
  });
}

/** @param content what is sent; `undefined` if nothing is */
function withSupport(response: PisResponse, content: NotificationContent | undefined): PisResponse {
  const headers = withoutFields(response.headers, responseFields);
  const fields: HeaderFields = content
    ? [
        ['ASPSP-Notification-Support', 'true'],
        ['ASPSP-Notification-Content', serializeContent(content)],
      ]
    : [['ASPSP-Notification-Support', 'false']];
  return { ...response, headers: [...headers, ...fields] };
}

interface WantedSubscription extends Pick<Subscription, 'url' | 'content'> {
  /** Those of the request. */
  readonly headers: HeaderFields;
}

/** Stores a subscription. It replaces an earlier one of the same payment, and continues its numbers. @returns whether it is stored */
async function subscribeTo(
  { store, log, ...dependencies }: SubscribeDependencies,
  request: RoutedRequest,
  response: PisResponse,
  { url, content, headers: requestHeaders }: WantedSubscription,
): Promise<boolean> {
  const { paymentKeyOf, pollHeadersOf, mayStoreCredentials, canPoll, firstPollMs, keepForMs } = dependencies;
  const { operation, client, environment } = request;
  const paymentId = operation.paymentId ?? (await paymentIdOf(response));
  const headers = pollHeadersOf(requestHeaders);
  const hasCredentials = headerValues(headers, 'authorization').length > 0;
  if (paymentId === undefined || !canPoll(request, paymentId) || (hasCredentials && !mayStoreCredentials))
    return false;
  const [tenant, environmentId] = [
    currentTenantId(request),
    identitiesOf(request).environmentIdOf(environment.name),
  ];
  const nowMs = Date.now();
  const created = {
    v: 1,
    tenant,
    environment: environmentId,
    client: client.name,
    paymentService: operation.paymentService,
    paymentProduct: operation.paymentProduct,
    paymentId,
    url,
    content,
    since: nowMs,
    until: nowMs + keepForMs,
    headers,
  } as const;
  try {
    await store.change(subscriptionKeyOf(tenant, paymentKeyOf(environmentId, paymentId)), (current) => {
      const subscription: Subscription = current
        ? { ...current, ...created, suspended: undefined }
        : { ...created, id: randomUUID(), sequence: 0, ...firstStatus(operation, response) };
      const pollQueue = queueNames.poll(subscription);
      const inMs = firstPollMs(subscription);
      const moved = current && current.url !== url ? movedDelivery(current) : [];
      return { subscription, due: [...moved, { queue: pollQueue, inMs }] };
    });
    return true;
  } catch (thrown) {
    log('warn', 'a payment status is not subscribed: the shared state is unavailable', {
      requestId: request.requestId,
      client: client.name,
      why: asGatewayError(thrown).message,
    });
    return false;
  }
}

/** A message that the former endpoint has not accepted is due at the new one. A dead letter stays dead. */
const movedDelivery = (current: Subscription) => [
  { queue: queueNames.endpoint(current), inMs: undefined },
  ...(current.message && current.message.deadSince === undefined
    ? [{ queue: queueNames.delivery(current.tenant), inMs: 0 }]
    : []),
];

/** The status in the response to an initiation: the TPP knows it, so that no message is sent for it. */
function firstStatus(
  { createsPayment, paymentService }: RoutedRequest['operation'],
  { json }: PisResponse,
): Pick<Subscription, 'status'> {
  if (!createsPayment || typeof json !== 'object' || json === null) return {};
  const code: unknown = Object.getOwnPropertyDescriptor(json, 'transactionStatus')?.value;
  if (typeof code !== 'string') return {};
  return { status: { hash: '', code, finality: finalityOf(paymentService, code), since: Date.now() } };
}
