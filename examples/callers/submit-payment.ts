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
  | { readonly kind: 'rejected'; readonly status: number; readonly code: string };

export interface PaymentStore {
  /** Must have stored the payment durably when it returns, like a committed transaction. */
  save(payment: StoredPayment): Promise<void>;
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
  const payment = { ...order, requestId: randomUUID() };
  await store.save(payment);
  return payment;
}

/** @returns `undefined` if the outcome is not known yet: do not create another payment for the same order */
export async function submitPayment(
  store: PaymentStore,
  payment: StoredPayment,
  gateway: Gateway,
): Promise<Outcome | undefined> {
  const sent = { ...payment, firstSentAt: payment.firstSentAt ?? Date.now() };
  await store.save(sent);
  const repeatUntil = sent.firstSentAt + repeatableMs;
  if (Date.now() > repeatUntil) return undefined; // the gateway would take a repeat for a new payment
  const giveUpAt = Math.min(Date.now() + gateway.patienceMs, repeatUntil);
  for (let attempt = 1; ; attempt += 1) {
    const isFirst = attempt === 1 && payment.firstSentAt === undefined;
    const answer = await send(sent, gateway);
    const outcome = outcomeOf(answer, isFirst);
    if (outcome) {
      await store.save({ ...sent, outcome });
      return outcome;
    }
    const waitMs = pauseMs(answer, attempt);
    if (Date.now() + waitMs > giveUpAt) return undefined;
    await setTimeout(waitMs);
  }
}

/** After a restart, and regularly: repeats the payments whose outcome is not known, each with its own X-Request-ID. */
export async function resumePayments(store: PaymentStore, gateway: Gateway): Promise<void> {
  for (const payment of await store.unfinished()) await submitPayment(store, payment, gateway);
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
 * @param isFirst whether no earlier attempt can have reached the bank. The gateway checks the request before it looks for an
 *   earlier attempt, so a refusal of this one says nothing about the earlier one
 * @returns `undefined` if the same request must be repeated
 */
function outcomeOf(answer: Answer | undefined, isFirst: boolean): Outcome | undefined {
  if (!answer) return undefined;
  const { status, headers } = answer;
  const code = headers.get('Penstock-Error');
  if (code === null && !headers.has('Penstock-Environment')) return undefined; // of a proxy, not of the gateway
  if (headers.get('Penstock-Outcome') === 'unknown' || status >= 500) return undefined;

  const content = contentOf(answer);
  const paymentId = paymentIdIn(content, headers);
  if (paymentId) return { kind: 'accepted', paymentId }; // also with 401, and with 409 DUPLICATE_IN_DOUBT
  if (code === 'DUPLICATE_MISMATCH')
    throw new Error('This X-Request-ID belongs to another request, which may have made a payment.');
  if (code !== null)
    return isFirst && needsCorrection(status, code) ? { kind: 'rejected', status, code } : undefined;
  if (status === 401 || status === 429) return undefined;
  return status >= 400 || isRefusal(content) ? { kind: 'rejected', status, code: 'of the bank' } : undefined;
}

/** Whether the gateway refuses each repeat of this request. It has not sent this attempt to the bank. */
export const needsCorrection = (status: number, code: string): boolean =>
  status < 500 && status !== 408 && status !== 429 && !code.startsWith('DUPLICATE_');

interface Content {
  readonly paymentId?: string;
  readonly transactionStatus?: string;
  readonly tppMessages?: readonly { readonly category?: string }[];
  readonly _links?: { readonly self?: { readonly href?: string } };
}

/** @returns `undefined` if the body is not JSON */
function contentOf({ body }: Answer): Content | undefined {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** In the body, or else in a link to the payment. */
function paymentIdIn(content: Content | undefined, headers: Headers): string | undefined {
  if (content?.paymentId) return content.paymentId;
  const link = headers.get('Location') ?? content?._links?.self?.href ?? '';
  const [, id] = /payments\/[^/]+\/([^/?]+)/.exec(link) ?? [];
  return id && querystring.unescape(id);
}

const isRefusal = (content: Content | undefined): boolean =>
  content?.transactionStatus === 'RJCT' ||
  [content?.tppMessages].flat().some((message) => message?.category === 'ERROR');

/** As long as the gateway says; otherwise longer with each attempt, up to a minute. */
function pauseMs(answer: Answer | undefined, attempt: number): number {
  const retryAfterMs = Number(answer?.headers.get('Retry-After') ?? 0) * 1_000;
  return retryAfterMs || Math.min(60_000, 500 * 2 ** attempt);
}
