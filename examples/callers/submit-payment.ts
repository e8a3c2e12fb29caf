/** Submits payments so that each is made at most once, whatever fails. docs/callers/submit-payments.md explains it. */

import { randomUUID } from 'node:crypto';
import querystring from 'node:querystring';
import { setTimeout } from 'node:timers/promises';

/** A payment as your system stores it. */
export interface StoredPayment {
  /** Created once for this payment, and sent with every attempt. */
  readonly requestId: string;
  readonly path: string;
  /** Without `X-Request-ID`, `X-API-Key` and `Authorization`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes of every attempt. */
  readonly body: string;
  /** Attempts that were started, also those before a crash and those of other instances of your system. */
  readonly attempts: number;
  /** Milliseconds since 1970; missing until the first attempt. */
  readonly firstSentAt?: number;
  /** Missing while the outcome is not known. */
  readonly outcome?: Outcome;
}

export type Outcome =
  /** The bank has made the payment. Read its status: it may need an authorisation, or be rejected. */
  | { readonly kind: 'accepted'; readonly paymentId: string }
  /**
   * No payment was made. A corrected payment is a new one, with an X-Request-ID of its own. The code is that of the gateway's error, or
   * `of the bank`.
   */
  | { readonly kind: 'rejected'; readonly status: number; readonly code: string }
  /** The X-Request-ID belongs to another request, which may have made a payment. Find the mistake in your system. */
  | { readonly kind: 'mismatch' };

/** Must have stored a payment durably when it returns, like a committed transaction. */
export interface PaymentStore {
  create(payment: StoredPayment): Promise<void>;
  /**
   * Replaces the stored payment by a changed one, in one transaction: nothing else changes it in between (`SELECT ... FOR UPDATE`).
   *
   * @returns the payment as it is stored then
   */
  update(requestId: string, change: (stored: StoredPayment) => StoredPayment): Promise<StoredPayment>;
  /** The payments without an outcome. */
  unfinished(): Promise<readonly StoredPayment[]>;
}

export interface Gateway {
  readonly url: string;
  readonly apiKey: string;
  /** The bank's access token. It may differ between attempts. */
  readonly accessToken: () => Promise<string>;
  /** How long to repeat a payment before people look at it, in milliseconds. `resumePayments` continues later. */
  readonly patienceMs: number;
}

/** Stores a new payment. Call this once for each payment that a payer confirms, not once for each attempt. */
export async function createPayment(
  store: PaymentStore,
  order: Pick<StoredPayment, 'path' | 'headers' | 'body'>,
): Promise<StoredPayment> {
  const payment = { ...order, requestId: randomUUID(), attempts: 0 };
  await store.create(payment);
  return payment;
}

/** @returns `undefined` if the outcome is not known yet: do not create another payment for the same order */
export async function submitPayment(
  store: PaymentStore,
  { requestId }: StoredPayment, // the rest may be older than what is stored
  gateway: Gateway,
): Promise<Outcome | undefined> {
  const giveUpAt = Date.now() + gateway.patienceMs;
  for (let attempt = 1; ; attempt += 1) {
    const payment = await store.update(requestId, startAttempt);
    if (payment.outcome) return payment.outcome;
    const repeatUntil = (payment.firstSentAt ?? 0) + repeatableMs;
    if (Date.now() > repeatUntil) return undefined; // the gateway would take a repeat for a new payment
    const answer = await send(payment, gateway);
    const { outcome } = await store.update(requestId, (stored) => finishAttempt(stored, answer));
    if (outcome) return outcome;
    const waitMs = pauseMs(answer, attempt);
    if (Date.now() + waitMs > Math.min(giveUpAt, repeatUntil)) return undefined;
    await setTimeout(waitMs);
  }
}

/**
 * After a restart, and regularly: repeats the payments whose outcome is not known, each with its own X-Request-ID.
 *
 * @throws AggregateError after all of them, if some could not be repeated
 */
export async function resumePayments(store: PaymentStore, gateway: Gateway): Promise<void> {
  const errors: unknown[] = [];
  for (const payment of await store.unfinished())
    await submitPayment(store, payment, gateway).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} payments could not be repeated`);
}

const startAttempt = (stored: StoredPayment): StoredPayment => ({
  ...stored,
  attempts: stored.attempts + 1,
  firstSentAt: stored.firstSentAt ?? Date.now(),
});

/** The first outcome stays. While this attempt ran, another process may have stored one, or started an attempt. */
function finishAttempt(stored: StoredPayment, answer: Answer | undefined): StoredPayment {
  const outcome = stored.outcome ?? outcomeOf(answer, stored);
  return outcome ? { ...stored, outcome } : stored;
}

/** The gateway recognises a repeat for 24 h (`idempotency.window`); an hour is left for clocks and pauses. */
const repeatableMs = 23 * 3_600_000;

/** Longer than the gateway's own deadline, so that usually the gateway reports a timeout. */
const responseTimeoutMs = 60_000;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** @returns `undefined` if there is no complete response: it is not known what happened */
async function send(payment: StoredPayment, gateway: Gateway): Promise<Answer | undefined> {
  const authorization = `Bearer ${await gateway.accessToken()}`;
  try {
    const response = await fetch(gateway.url + payment.path, {
      method: 'POST',
      headers: {
        ...payment.headers,
        'X-Request-ID': payment.requestId,
        'X-API-Key': gateway.apiKey,
        Authorization: authorization,
      },
      body: payment.body,
      redirect: 'manual',
      signal: AbortSignal.timeout(responseTimeoutMs),
    });
    return { status: response.status, headers: response.headers, body: await response.text() };
  } catch {
    return undefined;
  }
}

/**
 * The gateway checks a request before it looks for an earlier attempt. If there is one, a refusal says nothing about the payment.
 *
 * @returns `undefined` if the same request must be repeated
 */
function outcomeOf(answer: Answer | undefined, { attempts }: StoredPayment): Outcome | undefined {
  if (!answer) return undefined;
  const { status, headers } = answer;
  const code = headers.get('Penstock-Error');
  if (code === null && !headers.has('Penstock-Environment')) return undefined; // of a proxy, not of the gateway
  if (headers.get('Penstock-Outcome') === 'unknown' || status >= 500) return undefined;

  const content = contentOf(answer);
  const paymentId = paymentIdIn(content, headers);
  if (paymentId) return { kind: 'accepted', paymentId }; // also with 401, and with 409 DUPLICATE_IN_DOUBT
  if (typeof content?.paymentId === 'number') return undefined; // made, but JSON.parse has rounded the number
  if (code === 'DUPLICATE_MISMATCH') return { kind: 'mismatch' };
  if (code !== null)
    return attempts === 1 && needsCorrection(status, code) ? { kind: 'rejected', status, code } : undefined;
  if (status === 401 || status === 429) return undefined;
  return status >= 400 || isRefusal(content) ? { kind: 'rejected', status, code: 'of the bank' } : undefined;
}

/** Whether the gateway refuses each repeat of this request. It has not sent this attempt to the bank. */
export const needsCorrection = (status: number, code: string): boolean =>
  status < 500 && status !== 408 && status !== 429 && !code.startsWith('DUPLICATE_');

interface Content {
  readonly paymentId?: string | number;
  readonly transactionStatus?: string;
  readonly tppMessages?: readonly { readonly category?: string }[];
  readonly _links?: { readonly self?: string | { readonly href?: string } };
}

/** @returns `undefined` if the body is not JSON */
function contentOf({ body }: Answer): Content | undefined {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** What follows the payment product in a path. Some banks send `{"href":"..."}` in `Location`. */
const idInLink = /^(?:[^?#]*[^/]\/|\/)?(?:bulk-|periodic-)?payments\/[^/?#]+\/([^/?#"}]+)/;

/** In the body, or else in a link to the payment. */
function paymentIdIn(content: Content | undefined, headers: Headers): string | undefined {
  const paymentId = content?.paymentId;
  if (typeof paymentId === 'string' && paymentId !== '') return paymentId;
  if (Number.isSafeInteger(paymentId)) return String(paymentId);
  const self = content?._links?.self;
  for (const link of [headers.get('Location'), typeof self === 'string' ? self : self?.href]) {
    const id = idInLink.exec(link ?? '')?.[1];
    if (id) return querystring.unescape(id);
  }
  return undefined;
}

const isRefusal = (content: Content | undefined): boolean =>
  content?.transactionStatus === 'RJCT' ||
  [content?.tppMessages].flat().some((message) => message?.category === 'ERROR');

/** Longer with each attempt, up to a minute; at least as long as the gateway says. */
function pauseMs(answer: Answer | undefined, attempt: number): number {
  const retryAfterMs = Number(answer?.headers.get('Retry-After')) * 1_000;
  const ownPauseMs = Math.min(60_000, 500 * 2 ** attempt);
  return Number.isFinite(retryAfterMs) ? Math.max(retryAfterMs, ownPauseMs) : ownPauseMs;
}
