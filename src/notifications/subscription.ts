/** A subscription of a payment's status: what is stored of it, and how statuses and attempts to deliver change it. */

import { z } from 'zod';
import type { Finality } from '../pis/transaction-status.ts';
import { parseStored } from '../state/parse-stored.ts';
import type { AttemptResult } from './post-webhook.ts';
import { retryDelayMs } from './retry-schedule.ts';

const finality = z.enum(['final', 'settled', 'pending']);

/** Readers ignore unknown fields. Times are milliseconds since 1970. */
const subscriptionShape = z.object({
  v: z.literal(1),
  /** Random; a new subscription of the same payment gets another one. */
  id: z.string(),
  /** The identities of the tenant and of the environment, not their names. */
  tenant: z.string(),
  environment: z.string(),
  /** The name of the client: its secrets sign the messages, and its settings must allow the URL at each attempt. */
  client: z.string(),
  paymentService: z.string(),
  paymentProduct: z.string(),
  paymentId: z.string(),
  url: z.string(),
  content: z.enum(['PROCESS', 'LAST']),
  since: z.number(),
  /** When it ends, whatever the status. */
  until: z.number(),
  /** The fields with which the status is read, the credentials of the TPP among them. */
  headers: z.array(z.tuple([z.string(), z.string()]).readonly()).readonly(),
  /** The number of the last message. */
  sequence: z.number(),
  /** The last status that was read, and since when it is known. */
  status: z
    .object({ hash: z.string(), code: z.string().optional(), finality, since: z.number() })
    .readonly()
    .optional(),
  /** How many reads have failed since the last one that succeeded. */
  failedReads: z.number().optional(),
  /** Set while the bank refuses the credentials: the status is not read until the TPP reads it with others. */
  suspended: z.literal(true).optional(),
  /** The newest message, until it is delivered. */
  message: z
    .object({
      /** `webhook-id` and `X-Request-ID`. */
      id: z.string(),
      sequence: z.number(),
      transactionStatus: z.string(),
      final: z.boolean(),
      since: z.number(),
      failedAttempts: z.number(),
      /** Why the last attempt failed. */
      why: z.string().optional(),
      /** When it became a dead letter. */
      deadSince: z.number().optional(),
    })
    .readonly()
    .optional(),
});

export type Subscription = Readonly<z.output<typeof subscriptionShape>>;
export type Message = NonNullable<Subscription['message']>;

/** A status that was read. */
interface ReadStatus {
  /** Equal for equal statuses of one payment. */
  readonly hash: string;
  readonly code: string | undefined;
  readonly finality: Finality;
}

export const serializeSubscription = (subscription: Subscription): string => JSON.stringify(subscription);

/** @returns `undefined` if the text is something else, such as one that cannot be decrypted */
export const parseSubscription = (text: string): Subscription | undefined =>
  parseStored(subscriptionShape, text);

/**
 * Records a status that was read. A message replaces one that is not delivered yet.
 *
 * @param messageId a new UUID
 * @returns the same object if nothing changes
 */
export function withStatus(
  subscription: Subscription,
  { hash, code, finality }: ReadStatus,
  { messageId, nowMs }: { readonly messageId: string; readonly nowMs: number },
): Subscription {
  const { status: known, content } = subscription;
  if (known?.hash === hash || known?.finality === 'final') return subscription;
  const status = { hash, ...(code !== undefined && { code }), finality, since: nowMs };
  const next = { ...subscription, status };
  const isWanted = content === 'PROCESS' || finality !== 'pending';
  if (!isWanted || code === undefined || code === known?.code) return next;
  const sequence = subscription.sequence + 1;
  const news = { transactionStatus: code, final: finality === 'final', since: nowMs, failedAttempts: 0 };
  return { ...next, sequence, message: { id: messageId, sequence, ...news } };
}

/** What follows from an attempt to deliver a message. */
export interface AttemptOutcome {
  /** `undefined` if the subscription has ended. */
  readonly subscription: Subscription | undefined;
  /** When the message is due again; `undefined` if it is delivered or dead. Milliseconds. */
  readonly retryInMs: number | undefined;
}

/**
 * Records an attempt. Has no effect on a newer message, which is due at once.
 *
 * @param retryForMs `notifications.retryFor`
 */
export function afterAttempt(
  subscription: Subscription,
  messageId: string,
  result: AttemptResult,
  { nowMs, retryForMs, random }: AttemptTimes,
): AttemptOutcome {
  if (result.kind === 'gone') return { subscription: undefined, retryInMs: undefined };
  const { message, ...withoutMessage } = subscription;
  if (message?.id !== messageId)
    return { subscription, retryInMs: message && message.deadSince === undefined ? 0 : undefined };
  if (result.kind === 'delivered')
    return {
      subscription: message.final || nowMs >= subscription.until ? undefined : withoutMessage,
      retryInMs: undefined,
    };
  const failedAttempts = message.failedAttempts + 1;
  const failed = { ...message, failedAttempts, why: result.why };
  const leftMs = message.since + retryForMs - nowMs;
  if (leftMs <= 0)
    return {
      subscription: { ...subscription, message: { ...failed, deadSince: nowMs } },
      retryInMs: undefined,
    };
  const retryInMs = Math.min(retryDelayMs(failedAttempts, random), leftMs);
  return { subscription: { ...subscription, message: failed }, retryInMs };
}

export interface AttemptTimes {
  readonly nowMs: number;
  readonly retryForMs: number;
  /** As `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** A dead letter that an operator sends again: under the same id. */
export function withResend(subscription: Subscription, nowMs: number): Subscription {
  const { message } = subscription;
  if (message?.deadSince === undefined) return subscription;
  const { deadSince, ...resent } = message;
  return { ...subscription, message: { ...resent, since: nowMs, failedAttempts: 0 } };
}

/** The body of a message. @param statusUrl the public URL of the payment's status */
export function messageBody({ paymentId }: Subscription, message: Message, statusUrl: string): Buffer {
  const { transactionStatus, final, sequence } = message;
  const _links = { status: { href: statusUrl } };
  const body = { paymentId, transactionStatus, final, sequence, _links };
  return Buffer.from(JSON.stringify(body));
}
