/** Delivers the messages of subscriptions: at least once, one at a time for each payment, and always under the same id. */

import { setTimeout as delay } from 'node:timers/promises';
import type { WebhookSecrets } from '../config/webhook-secrets.ts';
import { isOutage } from '../store/database.ts';
import type { SubscriptionTable } from '../store/subscriptions.ts';
import { createEndpointGate } from './endpoint-gate.ts';
import { isAllowedUrl, parseNotificationUrl } from './notification-url.ts';
import type { AttemptResult, NoAttempt, PostWebhook } from './post-webhook.ts';
import { createQueueWorker, type LeasedWork, type QueueWorker } from './queue-worker.ts';
import {
  afterAttempt,
  afterFailure,
  hasUnreported,
  isOver,
  type Message,
  messageBody,
  type Subscription,
} from './subscription.ts';
import {
  endpointOf,
  type KnownSubscription,
  type NotedMessage,
  otherInstanceDelayMs,
  type SubscriptionChange,
  type SubscriptionStore,
} from './subscription-store.ts';
import type { WebhookClient } from './webhook-config.ts';
import { signWebhook } from './webhook-signature.ts';

export interface DeliveryDependencies {
  readonly table: Pick<SubscriptionTable, 'take' | 'extend' | 'reschedule' | 'promote'>;
  readonly store: SubscriptionStore;
  readonly post: PostWebhook;
  /** The identities of the tenants whose messages are delivered. */
  readonly tenantIds: () => readonly string[];
  /** `undefined` if the settings of this instance have no such client of this tenant, or it may not have webhooks. */
  readonly clientOf: (
    subscription: Pick<Subscription, 'client' | 'tenant'>,
  ) => Pick<WebhookClient, 'urls' | 'secrets'> | undefined;
  /** The public URL of the payment's status. */
  readonly statusUrlOf: (subscription: Subscription) => string;
  /** `notifications.retryFor` in milliseconds. */
  readonly retryForMs: () => number;
  readonly onAttempt: (subscription: Subscription, message: Message, result: AttemptResult) => void;
  readonly onBug: (thrown: unknown) => void;
}

/** Attempts that one instance makes at the same time, and those of one tenant: several tenants with slow endpoints do not delay the others. */
const maxAtOnce = 512;
const maxPerQueue = 64;
/** How many failed messages of an endpoint become due with each success, so that their rate grows while the endpoint works. */
const promotedPerSuccess = 2;
/** The minimum time between two searches for failed messages after an endpoint has accepted a new message. Milliseconds. */
const promoteEveryMs = 5_000;
/** The time between two attempts to record a result while the database is unavailable. Milliseconds. */
const recordAgainMs = 1_000;

export function createDeliveries({
  table,
  store,
  post,
  tenantIds,
  clientOf,
  statusUrlOf,
  retryForMs,
  onAttempt,
  onBug,
}: DeliveryDependencies): QueueWorker {
  const gate = createEndpointGate(() => performance.now());
  /** When failed messages of an endpoint were last searched for. The settings of the clients bound the number of endpoints. */
  const promotions = new Map<string, number>();

  async function deliver(leased: LeasedWork): Promise<void> {
    const known = store.known(leased.taken);
    const { subscription } = known;
    if (!subscription) return leased.leave(otherInstanceDelayMs(known, Date.now()));
    const { message } = subscription;
    if (!message || message.deadSince !== undefined) return leased.leave(undefined);
    const attempt = { subscription, message, known };
    const client = clientOf(subscription);
    const url = parseNotificationUrl(subscription.url);
    if (!client || !url || !isAllowedUrl(url, client.urls)) {
      const why = 'the settings of the client do not allow its URL';
      return record(leased, attempt, { kind: 'unsent', why });
    }

    const endpoint = endpointOf(subscription);
    const admission = await gate.enter(endpoint, leased.signal);
    switch (admission.kind) {
      case 'busy':
        return leased.leave(leased.signal.aborted ? 0 : admission.inMs);
      case 'failing': {
        const why = 'the last attempts at this endpoint failed, and another message is being tried';
        return record(leased, attempt, { kind: 'unsent', why });
      }
      case 'send': {
        let result: AttemptResult | undefined;
        try {
          result = await send(url, client.secrets, subscription, message, leased.signal);
        } finally {
          admission.leave(result !== undefined && result.kind !== 'failed');
        }
        if (leased.isLost()) return;
        if (leased.signal.aborted && result.kind === 'failed') return leased.leave(0);
        onAttempt(subscription, message, result);
        await record(leased, attempt, result);
        if (result.kind === 'delivered' && isPromotionDue(endpoint, message))
          await table.promote(endpoint, promotedPerSuccess);
      }
    }
  }

  /**
   * After each delivery of a message that had failed, and every few seconds after that of a new one: otherwise, failed messages whose
   * next attempt is due in hours would wait although the endpoint works.
   */
  function isPromotionDue(endpoint: string, { failedAttempts }: Message): boolean {
    const nowMs = performance.now();
    const lastMs = promotions.get(endpoint) ?? Number.NEGATIVE_INFINITY;
    if (failedAttempts === 0 && nowMs - lastMs < promoteEveryMs) return false;
    promotions.set(endpoint, nowMs);
    return true;
  }

  function send(
    url: URL,
    secrets: WebhookSecrets,
    subscription: Subscription,
    message: Message,
    signal: AbortSignal,
  ): Promise<AttemptResult> {
    const body = messageBody(subscription, message, statusUrlOf(subscription));
    const timestamp = Math.floor(Date.now() / 1_000);
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'Penstock',
      'X-Request-ID': message.id,
      'webhook-id': message.id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signWebhook(secrets, message.id, timestamp, body),
    };
    return post(url, headers, body, signal);
  }

  /** Records a result. While the database is unavailable, tries again until this instance stops or loses the lease. */
  async function record(
    leased: LeasedWork,
    attempt: Attempt,
    result: AttemptResult | NoAttempt,
  ): Promise<void> {
    const { id, lease } = leased.taken;
    for (let first: KnownSubscription | undefined = attempt.known; !leased.isLost(); first = undefined) {
      const mayBeRecorded = first === undefined;
      try {
        return await store.change(
          id,
          (current) =>
            current && mayBeRecorded && isRecorded(current, attempt)
              ? undefined
              : current && changeAfter(lease, current, attempt, result),
          first,
        );
      } catch (thrown) {
        if (!isOutage(thrown)) throw thrown;
        await delay(recordAgainMs, undefined, { signal: leased.signal });
      }
    }
  }

  function changeAfter(
    lease: string,
    current: Subscription,
    { subscription: attempted, message }: Attempt,
    result: AttemptResult | NoAttempt,
  ): SubscriptionChange {
    // If the TPP has subscribed again during the attempt, only a delivery counts; otherwise the message is due at the new endpoint.
    const isCurrent =
      current.id === attempted.id && (current.since === attempted.since || result.kind === 'delivered');
    const { subscription, retryInMs } = isCurrent
      ? afterAttempt(current, message.id, result, { nowMs: Date.now(), retryForMs: retryForMs() })
      : { subscription: withAttempt(current, message.id, result), retryInMs: current.message && 0 };
    // If the endpoint has ended the subscription, a later message, which is never sent, ends with it.
    const isLater = !subscription && current.message && current.message.id !== message.id;
    const noted: NotedMessage =
      isLater && current.message
        ? { to: current, message: current.message, state: 'ended' }
        : notedAfter({ subscription: attempted, message }, subscription, result);
    if (!subscription) return { subscription, message: noted };
    const isReadDue = !subscription.message && (hasUnreported(subscription) || isOver(subscription));
    return {
      subscription,
      delivery: { inMs: retryInMs, lease },
      read: isReadDue ? { inMs: 0 } : undefined,
      message: noted,
    };
  }

  return createQueueWorker({
    work: 'delivery',
    table,
    queues: () => tenantIds().map((tenant) => ({ tenant })),
    maxAtOnce,
    maxPerQueue,
    handle: deliver,
    onBug,
  });
}

/** A message that is sent, and its subscription when it was taken. */
interface Attempt {
  readonly subscription: Subscription;
  readonly message: Message;
  readonly known: KnownSubscription;
}

/** Whether a failed attempt has been recorded although the answer of the database was lost. After a delivery, there is no message. */
const isRecorded = ({ message: current }: Subscription, { message }: Attempt): boolean =>
  current?.id === message.id && current.attempts > message.attempts;

/** Counts an attempt at a former URL. */
function withAttempt(
  subscription: Subscription,
  messageId: string,
  result: AttemptResult | NoAttempt,
): Subscription {
  const { message } = subscription;
  if (message?.id !== messageId || result.kind === 'unsent') return subscription;
  return { ...subscription, message: { ...message, attempts: message.attempts + 1 } };
}

/** What operators see of a message after an attempt. @param after the subscription; `undefined` if it has ended */
function notedAfter(
  { subscription: to, message }: Pick<Attempt, 'subscription' | 'message'>,
  after: Subscription | undefined,
  result: AttemptResult | NoAttempt,
): NotedMessage {
  if (result.kind === 'delivered')
    return { to, message: { ...message, attempts: message.attempts + 1 }, state: 'delivered' };
  const failed = afterFailure(message, result);
  if (!after) return { to, message: failed, state: 'ended' };
  const isDead = after.message?.id === message.id && after.message.deadSince !== undefined;
  return { to, message: failed, state: isDead ? 'dead' : 'undelivered' };
}
