/**
 * Pays, follows the payment and cancels it, with types for every header and body. The types are made from docs/tpp-openapi.yaml:
 * docs/callers/typed-client.md.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, paths } from './penstock-api.d.ts';

type Schemas = components['schemas'];
export type Payment = Schemas['SinglePayment'];
export type Status = Schemas['TransactionStatus'];
type Client = ReturnType<typeof createTypedClient>;

/** Store both before the first attempt: docs/callers/submit-payments.md. */
export interface Order {
  readonly requestId: string;
  readonly payment: Payment;
}

/** @param url of the gateway, with the segment of the standard: `https://gateway.example/berlingroup/v1` */
export const createTypedClient = (url: string, apiKey: string) =>
  createClient<paths, 'application/json'>({
    baseUrl: url,
    headers: { 'X-API-Key': apiKey },
    redirect: 'manual', // a redirect of the bank leads to one of its pages
  });

const service = { 'payment-service': 'payments', 'payment-product': 'sepa-credit-transfers' } as const;

/** One attempt. Repeat it with the same order while it returns `undefined`, never with another `requestId`. */
export async function pay(
  client: Client,
  { requestId, payment }: Order,
): Promise<Schemas['PaymentInitiated'] | undefined> {
  try {
    const { data, error, response } = await client.POST('/{payment-service}/{payment-product}', {
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
    if (response.headers.get('Penstock-Outcome') === 'unknown') return undefined;
    if (data) return data;
    if (isUnknownOrBusy(response)) return undefined;
    throw new Error(error?.tppMessages[0]?.text ?? `the payment was refused with ${response.status}`);
  } catch (problem) {
    if (problem instanceof TypeError || isTimeout(problem)) return undefined; // no response
    throw problem;
  }
}

const isTimeout = (problem: unknown) => problem instanceof DOMException && problem.name === 'TimeoutError';

/** Whether the bank may have made the payment, or may make it at the next attempt. */
function isUnknownOrBusy({ status, headers }: Response): boolean {
  const code = headers.get('Penstock-Error');
  if (code === 'DUPLICATE_IN_DOUBT' || code === 'DUPLICATE_IN_FLIGHT') return true;
  return status >= 500 || status === 401 || status === 408 || status === 429;
}

/** Repeats the same order until its outcome is known. submit-payment.ts also handles crashes, and errors of later attempts. */
export async function payOnce(client: Client, order: Order): Promise<Schemas['PaymentInitiated']> {
  for (let waitMs = 500; ; waitMs = Math.min(60_000, 2 * waitMs)) {
    const initiated = await pay(client, order);
    if (initiated) return initiated;
    await setTimeout(waitMs);
  }
}

/** Waits until the payment has one of these statuses. The gateway answers each read when the status changes. */
export async function waitForStatus(
  client: Client,
  paymentId: string,
  wanted: readonly Status[],
): Promise<Status> {
  let tag: string | null = null;
  for (;;) {
    const read = await readStatus(client, paymentId, tag);
    if (read.status && wanted.includes(read.status)) return read.status;
    tag = read.tag;
  }
}

/** @param tag of the last status, so that no change is missed. @returns no status if it is still that one */
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
  if (response.status === 304) return { tag };
  if (data) return { status: data.transactionStatus, tag: response.headers.get('ETag') };
  throw new Error(error?.tppMessages[0]?.text ?? `the status was refused with ${response.status}`);
}

/** @returns whether the payment is cancelled; otherwise, the payer must authorise the cancellation (202) */
export async function cancel(client: Client, paymentId: string, requestId: string): Promise<boolean> {
  const { data, error, response } = await client.DELETE('/{payment-service}/{payment-product}/{paymentId}', {
    params: { path: { ...service, paymentId }, header: { 'X-Request-ID': requestId } },
  });
  if (response.status === 204) return true;
  if (data) return data.transactionStatus === 'CANC';
  throw new Error(error?.tppMessages[0]?.text ?? `the cancellation was refused with ${response.status}`);
}
