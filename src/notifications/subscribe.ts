/**
 * The stage of writes that subscribes to the status of a payment (Resource Status Notification Service, 1.3.11). The subscription is
 * stored before the TPP gets the response.
 */

import { randomUUID } from 'node:crypto';
import { type HeaderFields, headerValues } from '../pis/headers.ts';
import { finalityOf } from '../pis/transaction-status.ts';
import { asGatewayError } from '../request/errors.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import { isAccepted } from '../request/meaning.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import { contentOf, transactionStatusIn } from '../request/read-content.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { type Log, safeStack } from '../telemetry/log.ts';
import {
  authorisationTypeOf,
  type StartedAuthorisation,
  startedAuthorisationIn,
  withStarted,
} from './authorisations.ts';
import {
  includesSca,
  type NotificationContent,
  parseContentPreferred,
  paymentContentOf,
} from './notification-content.ts';
import { arePreferencesSigned, withoutPreferences, withSupport } from './notification-fields.ts';
import { isAllowedUrl, parseNotificationUrl } from './notification-url.ts';
import { needEncryption, pollHeadersOf } from './poll-target.ts';
import { isOver, type Subscription } from './subscription.ts';
import { type SubscriptionStore, subscriptionIdOf } from './subscription-store.ts';

export interface SubscribeDependencies {
  /** The URLs that a client may name; `undefined` if it may not have webhooks. */
  readonly urlsOf: (client: string) => readonly string[] | undefined;
  readonly store: Pick<SubscriptionStore, 'read' | 'change' | 'replace'>;
  /** The key of a payment in the cache. */
  readonly paymentKeyOf: (environmentId: string, paymentId: string) => string;
  /** Whether stored fields of the TPP are protected: encrypted, or in the memory of this process. */
  readonly mayStoreCredentials: boolean;
  /** Whether the gateway can read the status of this payment for the TPP. */
  readonly canPoll: (request: RoutedRequest, paymentId: string) => boolean;
  /** Whether the gateway can read authorisations of this type. */
  readonly canReadAuthorisations: (request: RoutedRequest, paymentId: string, type: string) => boolean;
  /** Whether the tenant has reached `notifications.maxSubscriptions`: then no other payment can be subscribed. */
  readonly isFull: (tenantId: string) => Promise<boolean>;
  /** When the subscription is read next; `undefined` if nothing is to be read. Milliseconds. */
  readonly firstReadMs: (subscription: Subscription) => number | undefined;
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
    if (uris.length === 0 || arePreferencesSigned(request.headers))
      return observe(dependencies, request, next);
    const [uri = ''] = uris;
    const url = uris.length === 1 ? parseNotificationUrl(uri) : undefined;
    const content = parseContentPreferred(
      headerValues(request.headers, 'tpp-notification-content-preferred'),
    );
    request.headers = withoutPreferences(request.headers);
    const { headers } = request; // the request has no body and no headers of its own after the response
    return next(request).then((response) => {
      if (!isAccepted(response)) return response;
      const wanted = url && isAllowedUrl(url, allowed) ? { url: url.href, content, headers } : undefined;
      if (!wanted) logReason(dependencies, request, urlReason);
      return wanted
        ? trySubscribe(dependencies, request, response, wanted).then((sent) => withSupport(response, sent))
        : observe(dependencies, request, async () => withSupport(response, undefined));
    });
  };
}

/** For a request that does not subscribe: if its payment has a subscription, adds the authorisation that this request starts. */
function observe(
  dependencies: SubscribeDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  if (request.operation.paymentId === undefined) return next(request);
  return next(request).then((response) =>
    isAccepted(response) ? addAuthorisation(dependencies, request, response).then(() => response) : response,
  );
}

interface WantedSubscription extends Pick<Subscription, 'url' | 'content'> {
  /** Those of the request. */
  readonly headers: HeaderFields;
}

/** As `subscribeTo`, but never rejects: the bank has executed the request. */
async function trySubscribe(
  ...wanted: Parameters<typeof subscribeTo>
): Promise<NotificationContent | undefined> {
  try {
    return await subscribeTo(...wanted);
  } catch (thrown) {
    const [dependencies, request] = wanted;
    logUnsubscribed(dependencies, request, thrown);
    return undefined;
  }
}

/**
 * Stores a subscription. It replaces an earlier one of the same payment, and continues its sequence numbers.
 *
 * @returns the content that the gateway sends; `undefined` if the subscription is not stored
 */
async function subscribeTo(
  dependencies: SubscribeDependencies,
  request: RoutedRequest,
  response: PisResponse,
  { url, content: preferred, headers: requestHeaders }: WantedSubscription,
): Promise<NotificationContent | undefined> {
  const { store, mayStoreCredentials, canPoll, firstReadMs, keepForMs } = dependencies;
  const { operation, client } = request;
  const paymentId = operation.paymentId ?? response.meaning?.paymentId;
  const headers = pollHeadersOf(requestHeaders, request.environment);
  const refuse = (why: string) => logReason(dependencies, request, why);
  if (paymentId === undefined) return undefined; // an accepted initiation names one
  if (!canPoll(request, paymentId)) return refuse(signedReason);
  if (!mayStoreCredentials && needEncryption(headers, request.environment)) return refuse(tokenReason);
  if (!areStorable(headers)) return refuse(`its credentials exceed ${maxHeaderBytes} bytes`);
  const content = readableContent(dependencies, request, paymentId, preferred);
  if (!content) return refuse('the gateway cannot read its authorisations');
  const { tenant, environmentId, id } = ownerOf(dependencies, request, paymentId);
  const started = await startedAuthorisationIn(operation, response);
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
  if ((await dependencies.isFull(tenant)) && !(await store.read(id))) {
    const why = 'the tenant has reached notifications.maxSubscriptions';
    dependencies.log('warn', unsubscribed, { requestId: request.requestId, client: client.name, why });
    return undefined;
  }
  const sequence = operation.createsPayment ? 0 : laterSequence(nowMs);
  const shown = await firstStatus(operation, response);
  const change = (current: Subscription | undefined) => {
    const subscription: Subscription = withAuthorisation(
      current
        ? {
            ...current,
            ...created,
            ...keptMessage(current, nowMs),
            failedReads: undefined,
            readError: undefined,
          }
        : { ...created, id: randomUUID(), sequence, ...shown },
      started,
      nowMs,
    );
    const inMs = isOver(subscription) ? 0 : (firstReadMs(subscription) ?? keepForMs); // one that is over ends with its turn
    // An undelivered message is due at a new endpoint. A dead letter remains one.
    const isMoved = current?.message && current.message.deadSince === undefined && current.url !== url;
    return { subscription, read: { inMs }, delivery: isMoved ? { inMs: 0 } : undefined };
  };
  await store.replace(id, change, operation.createsPayment);
  return content;
}

/**
 * The first sequence number of a subscription that does not begin with the initiation: the payment may have had another subscription,
 * and receivers ignore lower numbers. The time in seconds is higher than each number before.
 */
const laterSequence = (nowMs: number) => Math.floor(nowMs / 1_000);

/** The maximum size of the header fields that a subscription stores, so that a tenant cannot fill the database with long tokens. */
const maxHeaderBytes = 8 * 1_024;

export const areStorable = (headers: HeaderFields): boolean =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0) <= maxHeaderBytes;

const unsubscribed = 'a payment status is not subscribed';
const urlReason = 'TPP-Notification-URI is not below one of clients[].notifications.urls';
const signedReason =
  'the TPP signs its requests, and environments.NAME.signing is not set: the gateway cannot read the status';
const tokenReason =
  'access tokens, and the fields that callerHeaders and pollHeaders of the environment name, are stored only with state.encryptionKeyFile';

/** The TPP only gets `ASPSP-Notification-Support: false`; its operators find the reason by the X-Request-ID. */
function logReason(
  { log }: SubscribeDependencies,
  { requestId, client: { name: client } }: RoutedRequest,
  why: string,
): undefined {
  log('info', unsubscribed, { requestId, client, why });
}

function logUnsubscribed(
  { log }: SubscribeDependencies,
  { requestId, client: { name: client } }: RoutedRequest,
  thrown: unknown,
): void {
  const { code, message } = asGatewayError(thrown);
  if (code === 'INTERNAL') log('error', unsubscribed, { requestId, client, stack: safeStack(thrown) });
  else log('warn', unsubscribed, { requestId, client, why: message });
}

/** The part of the preferred content that the gateway can read; `undefined` if it can read nothing of it. */
function readableContent(
  { canReadAuthorisations }: SubscribeDependencies,
  request: RoutedRequest,
  paymentId: string,
  preferred: NotificationContent,
): NotificationContent | undefined {
  const canReadSca =
    includesSca(preferred) &&
    canReadAuthorisations(request, paymentId, authorisationTypeOf(request.operation));
  return canReadSca ? preferred : paymentContentOf(preferred);
}

function ownerOf({ paymentKeyOf }: SubscribeDependencies, request: RoutedRequest, paymentId: string) {
  const tenant = currentTenantId(request);
  const environmentId = identitiesOf(request).environmentIdOf(request.environment.name);
  return { tenant, environmentId, id: subscriptionIdOf(tenant, paymentKeyOf(environmentId, paymentId)) };
}

/** Adds the authorisation that a response has started to the subscription of its payment, if there is one. Never rejects. */
async function addAuthorisation(
  dependencies: SubscribeDependencies,
  request: RoutedRequest,
  response: PisResponse,
): Promise<void> {
  const { store, firstReadMs } = dependencies;
  const started = await startedAuthorisationIn(request.operation, response);
  if (!started) return;
  const { id } = ownerOf(dependencies, request, request.operation.paymentId ?? '');
  const add = (current: Subscription | undefined) => {
    if (!current || isOver(current)) return undefined;
    const subscription = withAuthorisation(current, started, Date.now());
    const inMs = firstReadMs(subscription);
    return { subscription, read: inMs === undefined ? undefined : { inMs } };
  };
  await store.change(id, add).catch((thrown: unknown) => {
    dependencies.log('warn', 'an authorisation is not added to the subscription of its payment', {
      requestId: request.requestId,
      client: request.client.name,
      why: asGatewayError(thrown).message,
    });
  });
}

/** @param nowMs milliseconds since 1970 */
function withAuthorisation(
  subscription: Subscription,
  started: StartedAuthorisation | undefined,
  nowMs: number,
): Subscription {
  if (!started) return subscription;
  const { content, authorisations = [] } = subscription;
  const added = includesSca(content) ? { authorisations: withStarted(authorisations, started, nowMs) } : {};
  return { ...subscription, ...added, authorisedAt: nowMs };
}

/** A dead letter is kept as long as the new subscription. */
const keptMessage = ({ message }: Subscription, nowMs: number): Pick<Subscription, 'message'> =>
  message?.deadSince === undefined ? {} : { message: { ...message, deadSince: nowMs } };

/** The status in the response to an initiation. The TPP already knows it, so no message about it is needed. */
async function firstStatus(
  { createsPayment, paymentService }: RoutedRequest['operation'],
  response: PisResponse,
): Promise<Pick<Subscription, 'status'>> {
  if (!createsPayment) return {};
  const code = transactionStatusIn(await contentOf(response));
  if (code === undefined) return {};
  return { status: { hash: '', code, finality: finalityOf(paymentService, code), since: Date.now() } };
}
