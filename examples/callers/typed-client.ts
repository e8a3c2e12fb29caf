/**
 * Pays, follows the payment and cancels it, with types for every header and body. The types are made from docs/tpp-openapi.yaml:
 * docs/callers/typed-client.md.
 */

import { randomUUID } from 'node:crypto';
import querystring from 'node:querystring';
import { setTimeout } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, paths } from './penstock-api.d.ts';

type Schemas = components['schemas'];
export type Payment = Schemas['SinglePayment'];
export type Status = Schemas['TransactionStatus'];
type Client = ReturnType<typeof createTypedClient>;

/** Store all of it before the first attempt: docs/callers/submit-payments.md. */
export interface Order {
  readonly requestId: string;
  readonly payment: Payment;
  /** Whether an earlier attempt may have been sent, also before a crash. */
  readonly wasSent: boolean;
}

/** The payment, and the answer of the bank unless it was lost. */
export interface Paid {
  readonly paymentId: string;
  readonly initiated?: Schemas['PaymentInitiated'];
}

/** The payment may have been made. Repeat the same order, at the earliest after this time. */
export interface NotKnown {
  readonly paymentId?: never;
  readonly retryAfterMs: number;
}

/** @param url of the gateway, with the segment of the standard: `https://gateway.example/berlingroup/v1` */
export function createTypedClient(url: string, apiKey: string) {
  const client = createClient<paths, 'application/json'>({
    baseUrl: url,
    headers: { 'X-API-Key': apiKey },
    redirect: 'manual', // a redirect of the bank leads to one of its pages
  });
  client.use({
    onResponse({ response: { status, headers } }) {
      const isFromGateway = headers.has('Penstock-Error') || headers.has('Penstock-Environment');
      if (!isFromGateway) throw new Error(`the answer with ${status} is not from the gateway`);
    },
  });
  return client;
}

const service = { 'payment-service': 'payments', 'payment-product': 'sepa-credit-transfers' } as const;

/**
 * One attempt. Repeat it with the same order and `wasSent: true` while its outcome is not known, never with another `requestId`.
 *
 * @throws Error if the payment was refused, or the `requestId` belongs to another request
 */
export async function pay(client: Client, { requestId, payment, wasSent }: Order): Promise<Paid | NotKnown> {
  const sent = client.POST('/{payment-service}/{payment-product}', {
    params: {
      path: service,
      header: {
        'X-Request-ID': requestId,
        'PSU-IP-Address': '192.0.2.7',
        'TPP-Redirect-URI': 'https://tpp.example/authorised',
        'TPP-Explicit-Authorisation-Preferred': true,
      },
    },
    body: payment,
    signal: AbortSignal.timeout(60_000),
  });
  const answer = await sent.catch(() => undefined); // none, an incomplete one, or not from the gateway
  if (!answer) return { retryAfterMs: 0 };
  const { data, error, response } = answer;
  const { status, headers } = response;
  const notKnown = { retryAfterMs: retryAfterMsIn(headers) };
  if (isUnknown(response)) return notKnown;

  const content: Content | undefined = data ?? error;
  const paymentId = paymentIdIn(content, headers);
  if (paymentId) return { paymentId, ...(data && { initiated: data }) }; // also with 401, and with 409 DUPLICATE_IN_DOUBT
  if (typeof content?.paymentId === 'number') return notKnown; // made, but JSON.parse has rounded the number
  if (mustBeRepeated(response, wasSent)) return notKnown;
  if (status < 400 && !isRefusal(data)) return notKnown;
  throw new Error(`the payment was refused: ${status} ${JSON.stringify(data ?? error)}`);
}

const isUnknown = ({ status, headers }: Response) =>
  headers.get('Penstock-Outcome') === 'unknown' || status >= 500;

/** @throws Error if the request must not be sent again, because another one has its `X-Request-ID` */
function mustBeRepeated({ status, headers }: Response, wasSent: boolean): boolean {
  const code = headers.get('Penstock-Error');
  if (code === null) return status === 401 || status === 429;
  if (code === 'DUPLICATE_MISMATCH')
    throw new Error('This X-Request-ID belongs to another request, which may have made a payment.');
  return wasSent || !needsCorrection(status, code);
}

/** Whether the gateway refuses each repeat of this request. It has not sent this attempt to the bank. */
const needsCorrection = (status: number, code: string) =>
  status < 500 && status !== 408 && status !== 429 && !code.startsWith('DUPLICATE_');

interface Content {
  readonly paymentId?: string | number;
  readonly transactionStatus?: Status;
  readonly tppMessages?: readonly { readonly category?: string }[];
  readonly _links?: { readonly self?: string | Schemas['Link'] };
}

/** What follows the payment product in a path. Some banks send `{"href":"..."}` in `Location`. */
const idInLink = /^(?:[^?#]*[^/]\/|\/)?payments\/[^/?#]+\/([^/?#"}]+)/;

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

/** @returns 0 unless the gateway or the bank says how many seconds to wait */
function retryAfterMsIn(headers: Headers): number {
  const waitMs = Number(headers.get('Retry-After')) * 1_000;
  return Number.isFinite(waitMs) ? waitMs : 0;
}

/**
 * Repeats the same order until its outcome is known. submit-payment.ts also stores it, and continues after a crash.
 *
 * @param patienceMs until people look at it, and much less than the 23 hours after which it must not be repeated
 * @returns `undefined` if the outcome is not known yet
 */
export async function payOnce(client: Client, order: Order, patienceMs = 60_000): Promise<Paid | undefined> {
  const giveUpAt = Date.now() + patienceMs;
  let answer = await pay(client, order);
  for (let pauseMs = 500; answer.paymentId === undefined; pauseMs = Math.min(60_000, 2 * pauseMs)) {
    const waitMs = Math.max(answer.retryAfterMs, pauseMs);
    if (Date.now() + waitMs > giveUpAt) return undefined;
    await setTimeout(waitMs);
    answer = await pay(client, { ...order, wasSent: true });
  }
  return answer;
}

/** A single payment with one of these statuses changes no more. */
const finalStatuses: readonly Status[] = ['RJCT', 'CANC', 'ACCC'];

/**
 * Waits until the payment has one of these statuses. The gateway answers each read when the status changes.
 *
 * @param patienceMs until the wait ends
 * @returns that status, or a final one, after which none of them can follow; `undefined` if there is none of them yet
 * @throws Error if the gateway or the bank refuses the read
 */
export async function waitForStatus(
  client: Client,
  paymentId: string,
  wanted: readonly Status[],
  patienceMs = 600_000,
): Promise<Status | undefined> {
  const giveUpAt = Date.now() + patienceMs;
  let tag: string | null = null;
  while (Date.now() < giveUpAt) {
    const read = await readStatus(client, paymentId, tag);
    if (read.status && [...wanted, ...finalStatuses].includes(read.status)) return read.status;
    tag = read.tag;
    await setTimeout(1_000); // the gateway answers early if it cannot wait
  }
  return undefined;
}

/**
 * @param tag of the last status, so that no change is missed
 * @returns no status if it is still that one, or cannot be read at the moment
 */
async function readStatus(
  client: Client,
  paymentId: string,
  tag: string | null,
): Promise<{ readonly status?: Status; readonly tag: string | null }> {
  const sent = client.GET('/{payment-service}/{payment-product}/{paymentId}/status', {
    params: {
      path: { ...service, paymentId },
      header: {
        'X-Request-ID': randomUUID(),
        Prefer: 'wait=50',
        ...(tag !== null && { 'If-None-Match': tag }),
      },
    },
    signal: AbortSignal.timeout(60_000),
  });
  const answer = await sent.catch(() => undefined); // none, an incomplete one, or not from the gateway
  if (!answer) return { tag };
  const { data, error, response } = answer;
  if (response.status === 304 || response.status === 429 || response.status >= 500) return { tag };
  if (data) return { status: data.transactionStatus, tag: response.headers.get('ETag') };
  throw new Error(`the status was refused: ${response.status} ${JSON.stringify(error)}`);
}

/** Store all of it before the first attempt, as for a payment. */
export interface Cancellation {
  readonly requestId: string;
  readonly paymentId: string;
  /** Whether an earlier attempt may have been sent, also before a crash. */
  readonly wasSent: boolean;
}

/**
 * One attempt. Repeat it with the same `requestId` and `wasSent: true` while its outcome is not known.
 *
 * @returns `to be authorised` if the payer must authorise the cancellation
 * @throws Error if the cancellation was refused, or the `requestId` belongs to another request
 */
export async function cancel(
  client: Client,
  { requestId, paymentId, wasSent }: Cancellation,
): Promise<'cancelled' | 'to be authorised' | 'not known'> {
  const sent = client.DELETE('/{payment-service}/{payment-product}/{paymentId}', {
    params: { path: { ...service, paymentId }, header: { 'X-Request-ID': requestId } },
    signal: AbortSignal.timeout(60_000),
  });
  const answer = await sent.catch(() => undefined);
  if (!answer || isUnknown(answer.response)) return 'not known';
  const { data, error, response } = answer;
  if (response.status === 204 || data?.transactionStatus === 'CANC') return 'cancelled';
  if (response.ok && !isRefusal(data)) return 'to be authorised';
  const code = response.headers.get('Penstock-Error');
  const content: Content | undefined = error;
  if (code === 'DUPLICATE_IN_DOUBT' && content?.paymentId) return 'cancelled'; // an operator has said so
  if (response.status === 401 || mustBeRepeated(response, wasSent)) return 'not known';
  throw new Error(`the cancellation was refused: ${response.status} ${JSON.stringify(data ?? error)}`);
}
