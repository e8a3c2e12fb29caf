/** A subscription to the status of a payment: its stored form, and how reads of the status and delivery attempts change it. */

import { z } from 'zod';
import type { Finality } from '../pis/transaction-status.ts';
import { parseStored } from '../state/parse-stored.ts';
import {
  type Authorisation,
  type AuthorisationRead,
  authorisationShape,
  isRunning,
  isStored,
  isUnreported,
  withAuthorisationReads,
} from './authorisations.ts';
import { includesSca, notificationContents, paymentContentOf } from './notification-content.ts';
import type { AttemptResult, NoAttempt } from './post-webhook.ts';
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
  content: z.enum(notificationContents),
  since: z.number(),
  /** When the subscription ends, even if the status is not final. */
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
  /** Those that have not ended, or whose last status is not reported yet. Only for `SCA`. */
  authorisations: z.array(authorisationShape).readonly().optional(),
  /** When the last authorisation was started. */
  authorisedAt: z.number().optional(),
  /** How many reads have failed since the last one that succeeded. */
  failedReads: z.number().optional(),
  /** Why the last of them has failed. */
  readError: z.string().optional(),
  /** The newest message, until it is delivered. */
  message: z
    .object({
      /** `webhook-id` and `X-Request-ID`. */
      id: z.string(),
      sequence: z.number(),
      transactionStatus: z.string(),
      /** Whether no message follows. */
      final: z.boolean(),
      authorisationId: z.string().optional(),
      scaStatus: z.string().optional(),
      since: z.number(),
      /** How often it was sent. */
      attempts: z.number(),
      /** Since it was created, or an operator has sent it again: it is tried less and less often. */
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

/** The results of the reads of one turn; `undefined` if nothing was read, or nothing has changed. */
export interface SubscriptionReads {
  readonly status?: ReadStatus | undefined;
  readonly authorisations?: readonly AuthorisationRead[] | undefined;
}

export interface NewMessage {
  /** A new UUID. */
  readonly messageId: string;
  readonly nowMs: number;
  /** How long a settled status must not have changed to be the last one for `LAST`. Milliseconds. */
  readonly lastAfterMs?: number;
}

/**
 * After a settled status has not changed for this time, `LAST` takes it for the last one: instant payments are credited within seconds,
 * and many banks report nothing after the settlement. Milliseconds.
 */
export const settledForMs = 10 * 60_000;

/** Whether nothing is read any more: the status is final, or the last message is stored. */
export const isOver = ({ status, message }: Pick<Subscription, 'status' | 'message'>): boolean =>
  status?.finality === 'final' || message?.final === true;

/** Whether the reads have failed several times in a row: no webhook is to be expected, and operators get to know it. */
export const isFailing = ({ failedReads = 0 }: Pick<Subscription, 'failedReads'>): boolean =>
  failedReads >= 3;

/** The authorisations to read: those that have not ended, if the TPP has asked for `SCA`. */
export const runningAuthorisations = ({ content, authorisations = [] }: Subscription) =>
  includesSca(content) ? authorisations.filter(isRunning) : [];

/** Whether an authorisation has a status that waits for the delivery of a message about another one. */
export const hasUnreported = ({
  content,
  authorisations = [],
}: Pick<Subscription, 'content' | 'authorisations'>): boolean =>
  includesSca(content) && authorisations.some(isUnreported);

/**
 * Records what was read, and creates a message if something has changed. There is one message at a time: a later one replaces an
 * undelivered one, and is about the same authorisation. A change of another authorisation is reported after its delivery.
 *
 * @returns the same object if nothing changes
 */
export function withReads(
  subscription: Subscription,
  { status: read, authorisations: readAuthorisations = [] }: SubscriptionReads,
  { messageId, nowMs, lastAfterMs = settledForMs }: NewMessage,
): Subscription {
  if (isOver(subscription) && (subscription.message || !hasUnreported(subscription))) return subscription;
  const status =
    !read || read.hash === subscription.status?.hash ? subscription.status : storedStatus(read, nowMs);
  const authorisations =
    readAuthorisations.length > 0
      ? withAuthorisationReads(subscription.authorisations ?? [], readAuthorisations, nowMs)
      : subscription.authorisations;
  const isSame = status === subscription.status && authorisations === subscription.authorisations;
  const next = isSame ? subscription : { ...subscription, status, ...(authorisations && { authorisations }) };
  if (status?.code === undefined) return next;
  const statusNews = newsOfStatus(next, subscription.status?.code, nowMs - lastAfterMs);
  const authorisation = newsOfAuthorisations(next, statusNews !== undefined);
  if (!statusNews && !authorisation) return next;
  const reported =
    authorisation && authorisations ? { authorisations: withReported(authorisations, authorisation) } : {};
  const isLast = statusNews === 'last' || status.finality === 'final';
  const sequence = subscription.sequence + 1;
  const message: Message = {
    id: messageId,
    sequence,
    transactionStatus: status.code,
    final: isLast && !hasUnreported({ ...next, ...reported }),
    ...(authorisation && { authorisationId: authorisation.id, scaStatus: authorisation.scaStatus }),
    since: nowMs,
    attempts: 0,
    failedAttempts: 0,
  };
  return { ...next, ...reported, sequence, message };
}

const storedStatus = ({ hash, code, finality }: ReadStatus, nowMs: number): Subscription['status'] => ({
  hash,
  ...(code !== undefined && { code }),
  finality,
  since: nowMs,
});

/**
 * Whether to send a message about the status, and whether it is the last one.
 *
 * @param knownCode     the code of the previous status
 * @param settledBefore a settled status is the last one if it is known since this time or longer. Milliseconds since 1970
 */
function newsOfStatus(
  { content, status, message, authorisations }: Subscription,
  knownCode: string | undefined,
  settledBefore: number,
): 'change' | 'last' | undefined {
  if (!status) return undefined;
  switch (paymentContentOf(content)) {
    case 'PROCESS':
      return status.code === knownCode ? undefined : 'change';
    case 'LAST': {
      // With another authorisation to report after its delivery, the message that tells the status is not the last one.
      const isTold = message?.transactionStatus === status.code && hasUnreported({ content, authorisations });
      const isSettled = status.finality === 'settled' && status.since <= settledBefore && !isTold;
      const isFinal = status.finality === 'final' && status.code !== knownCode;
      return isSettled || isFinal ? 'last' : undefined;
    }
    case undefined:
      return undefined;
  }
}

/** The authorisation of the next message. While a message about an authorisation is undelivered, the next one is about the same. */
function newsOfAuthorisations(
  { content, authorisations = [], message }: Subscription,
  hasStatusNews: boolean,
): Pick<Authorisation, 'id' | 'scaStatus'> | undefined {
  if (!includesSca(content)) return undefined;
  const unreported = authorisations.filter(isUnreported);
  if (message?.authorisationId === undefined || message.deadSince !== undefined) return unreported[0];
  const { authorisationId, scaStatus } = message;
  const again = unreported.find(({ id }) => id === authorisationId);
  return again ?? (hasStatusNews ? { id: authorisationId, scaStatus } : undefined);
}

const withReported = (
  authorisations: readonly Authorisation[],
  { id, scaStatus }: Pick<Authorisation, 'id' | 'scaStatus'>,
): readonly Authorisation[] =>
  authorisations
    .map((one) => (one.id === id && one.scaStatus === scaStatus ? { ...one, reported: scaStatus } : one))
    .filter(isStored);

/** The subscription after an attempt to deliver its message. */
export interface AttemptOutcome {
  /** `undefined` if the subscription has ended. */
  readonly subscription: Subscription | undefined;
  /** When the message is due again; `undefined` if it is delivered or dead. Milliseconds. */
  readonly retryInMs: number | undefined;
}

/**
 * Records the result of an attempt. If the message was replaced during the attempt, the newer one stays unchanged and is due at once.
 *
 * @param retryForMs `notifications.retryFor`
 */
export function afterAttempt(
  subscription: Subscription,
  messageId: string,
  result: AttemptResult | NoAttempt,
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
  const failed = afterFailure(message, result);
  const leftMs = message.since + retryForMs - nowMs;
  if (leftMs <= 0)
    return {
      subscription: { ...subscription, message: { ...failed, deadSince: nowMs } },
      retryInMs: undefined,
    };
  const retryInMs = Math.min(retryDelayMs(failed.failedAttempts, random), leftMs);
  return { subscription: { ...subscription, message: failed }, retryInMs };
}

/** A message that was not accepted. */
export const afterFailure = (
  message: Message,
  result: Exclude<AttemptResult | NoAttempt, { readonly kind: 'delivered' }>,
): Message => ({
  ...message,
  attempts: message.attempts + (result.kind === 'unsent' ? 0 : 1),
  failedAttempts: message.failedAttempts + 1,
  why: result.kind === 'gone' ? 'the endpoint answered 410' : result.why,
});

export interface AttemptTimes {
  readonly nowMs: number;
  readonly retryForMs: number;
  /** As `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Begins the attempts of a message again, also those of a dead letter, under the same id. */
export function withResend(subscription: Subscription, nowMs: number): Subscription {
  const { message } = subscription;
  if (!message) return subscription;
  const { deadSince, ...resent } = message;
  return { ...subscription, message: { ...resent, since: nowMs, failedAttempts: 0 } };
}

/** The body of a message. @param statusUrl the public URL of the payment's status */
export function messageBody({ paymentId }: Subscription, message: Message, statusUrl: string): Buffer {
  const { transactionStatus, final, sequence, authorisationId, scaStatus } = message;
  const _links = { status: { href: statusUrl } };
  const body = { paymentId, transactionStatus, final, sequence, authorisationId, scaStatus, _links };
  return Buffer.from(JSON.stringify(body));
}
