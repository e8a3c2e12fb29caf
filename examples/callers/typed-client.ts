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

/** @param url of the gateway, with the segment of the standard: `https://gateway.example/berlingroup/v1` */
export function createTypedClient(url: string, apiKey: string) {
  const client = createClient<paths, 'application/json'>({
    baseUrl: url,
    headers: { 'X-API-Key': apiKey },
    redirect: 'manual', // a redirect of the bank leads to one of its pages
  });
  client.use({
    onResponse({ response: { status, ok, headers } }) {
      const isFromGateway = headers.has('Penstock-Error') || headers.has('Penstock-Environment');
      if (!isFromGateway) throw new Error(`the answer with ${status} is not from the gateway`);
      if (ok && headers.get('Content-Type')?.startsWith('text/html'))
        throw new Error(`the bank answered ${status} with a web page`);
    },
  });
  return client;
}

const service = { 'payment-service': 'payments', 'payment-product': 'sepa-credit-transfers' } as const;

/**
 * One attempt. Repeat it with the same order and `wasSent: true` while it returns `undefined`, never with another `requestId`.
 *
 * @throws Error if the payment was refused, or the `requestId` belongs to another request
 */
export async function pay(client: Client, { requestId, payment, wasSent }: Order): Promise<Paid | undefined> {
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
  if (!answer) return undefined;
  const { data, error, response } = answer;
  const { status, headers } = response;
  const code = headers.get('Penstock-Error');
  if (headers.get('Penstock-Outcome') === 'unknown' || status >= 500) return undefined;

  const paymentId = paymentIdIn(data ?? error, headers);
  if (paymentId) return { paymentId, ...(data && { initiated: data }) }; // also with 401, and with 409 DUPLICATE_IN_DOUBT
  if (code === 'DUPLICATE_MISMATCH')
    throw new Error('This X-Request-ID belongs to another request, which may have made a payment.');
  if (code !== null && (wasSent || !needsCorrection(status, code))) return undefined;
  if (code === null && (status === 401 || status === 429)) return undefined;
  if (status < 400 && !isRefusal(data)) return undefined;
  throw new Error(`the payment was refused: ${status} ${JSON.stringify(data ?? error)}`);
}

/** Whether the gateway refuses each repeat of this request. It has not sent this attempt to the bank. */
const needsCorrection = (status: number, code: string) =>
  status < 500 && status !== 408 && status !== 429 && !code.startsWith('DUPLICATE_');

interface Content {
  readonly paymentId?: string;
  readonly _links?: Schemas['Links'];
}

/** In the body, or else in a link to the payment. */
function paymentIdIn(content: Content | undefined, headers: Headers): string | undefined {
  if (content?.paymentId) return content.paymentId;
  const link = headers.get('Location') ?? content?._links?.self?.href ?? '';
  const [, id] = /payments\/[^/]+\/([^/?]+)/.exec(link) ?? [];
  return id && querystring.unescape(id);
}

const isRefusal = (data: Schemas['PaymentInitiated'] | undefined) =>
  data?.transactionStatus === 'RJCT' ||
  [data?.tppMessages].flat().some((message) => message?.category === 'ERROR');

/**
 * Repeats the same order until its outcome is known. submit-payment.ts also stores it, and continues after a crash.
 *
 * @param patienceMs until people look at it, and much less than the 23 hours after which it must not be repeated
 * @returns `undefined` if the outcome is not known yet
 */
export async function payOnce(client: Client, order: Order, patienceMs = 60_000): Promise<Paid | undefined> {
  const giveUpAt = Date.now() + patienceMs;
  let paid = await pay(client, order);
  for (let waitMs = 500; !paid && Date.now() + waitMs < giveUpAt; waitMs = Math.min(60_000, 2 * waitMs)) {
    await setTimeout(waitMs);
    paid = await pay(client, { ...order, wasSent: true });
  }
  return paid;
}

/** A single payment with one of these statuses changes no more. */
const finalStatuses: readonly Status[] = ['RJCT', 'CANC', 'ACCC'];

/**
 * Waits until the payment has one of these statuses. The gateway answers each read when the status changes.
 *
 * @returns that status, or a final one, after which none of them can follow
 */
export async function waitForStatus(
  client: Client,
  paymentId: string,
  wanted: readonly Status[],
): Promise<Status> {
  let tag: string | null = null;
  for (;;) {
    const read = await readStatus(client, paymentId, tag);
    if (read.status && [...wanted, ...finalStatuses].includes(read.status)) return read.status;
    tag = read.tag;
    await setTimeout(1_000); // the gateway answers early if it cannot wait
  }
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
  const { data, error, response } = await client.GET(
    '/{payment-service}/{payment-product}/{paymentId}/status',
    {
      params: {
        path: { ...service, paymentId },
        header: {
          'X-Request-ID': randomUUID(),
          Prefer: 'wait=50',
          ...(tag !== null && { 'If-None-Match': tag }),
        },
      },
    },
  );
  if (response.status === 304 || response.status === 429 || response.status >= 500) return { tag };
  if (data) return { status: data.transactionStatus, tag: response.headers.get('ETag') };
  throw new Error(`the status was refused: ${response.status} ${JSON.stringify(error)}`);
}

/** @returns whether the payment is cancelled; otherwise, the payer must authorise the cancellation (202) */
export async function cancel(client: Client, paymentId: string, requestId: string): Promise<boolean> {
  const { data, error, response } = await client.DELETE('/{payment-service}/{payment-product}/{paymentId}', {
    params: { path: { ...service, paymentId }, header: { 'X-Request-ID': requestId } },
  });
  if (response.status === 204) return true;
  if (data) return data.transactionStatus === 'CANC';
  throw new Error(`the cancellation was refused: ${response.status} ${JSON.stringify(error)}`);
}
