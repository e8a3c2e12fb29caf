/**
 * Records observations of other operations than status reads before the TPP receives the response: the status of the
 * payment, or that an authorisation has ended.
 */

import { createHash, hash } from 'node:crypto';
import { headerValue } from '../pis/headers.ts';
import { endsAuthorisation, scaStatusIn, transactionStatusIn } from '../pis/transaction-status.ts';
import { decodeIfKnown } from '../request/content-coding.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Clock } from './cache-control.ts';
import { paymentKeyIn } from './cache-key.ts';
import type { CacheStore, Invalidation } from './cache-store.ts';
import type { Observation } from './observation-rules.ts';

/**
 * Never fails: if the shared state is unavailable, queues an invalidation of the payment.
 *
 * @returns `undefined` if there is nothing to wait for
 */
export type ObservePayment = (request: RoutedRequest, response: PisResponse) => Promise<void> | undefined;

interface ObservePaymentDependencies {
  readonly store: Pick<CacheStore, 'recordObservation'>;
  readonly invalidation: Pick<Invalidation, 'defer'>;
  readonly now: Clock;
}

export function createObservePayment(dependencies: ObservePaymentDependencies): ObservePayment {
  const { store, invalidation, now } = dependencies;

  function record(request: RoutedRequest, response: PisResponse, body: Buffer): Promise<void> | undefined {
    const paymentKey = paymentKeyIn(request);
    const observation = observationIn(request, response, body, now());
    const recorded = observation && store.recordObservation(paymentKey, observation);
    return recorded?.catch(() => invalidation.defer(paymentKey));
  }

  return (request, response) => {
    if (response.status !== 200) return undefined;
    const body = decodedBodyOf(response);
    if (!(body instanceof Promise)) return record(request, response, body);
    return body.then((decoded) => record(request, response, decoded));
  };
}

/** @param nowMs milliseconds since 1970 */
function observationIn(
  request: RoutedRequest,
  { headers }: PisResponse,
  body: Buffer,
  nowMs: number,
): Observation | undefined {
  const { showsStatus, path } = request.operation;
  const contentType = headerValue(headers, 'content-type');
  const paymentKey = paymentKeyIn(request);
  return showsStatus === 'scaStatus'
    ? endedAuthorisation(paymentKey, path, scaStatusIn(body, contentType))
    : observedStatus(paymentKey, transactionStatusIn(body, contentType), nowMs);
}

function observedStatus(
  paymentKey: string,
  status: string | undefined,
  observedAtMs: number,
): Observation | undefined {
  if (status === undefined) return undefined;
  return { what: 'status', statusHash: observationHash(paymentKey, status), observedAtMs };
}

function endedAuthorisation(
  paymentKey: string,
  path: string,
  scaStatus: string | undefined,
): Observation | undefined {
  if (scaStatus === undefined || !endsAuthorisation(scaStatus)) return undefined;
  return { what: 'authorisation-ended', authorisation: observationHash(paymentKey, path) };
}

/** The body without its content codings; as it is if it cannot be decoded. Without a promise if it has none. */
export function decodedBodyOf(response: PisResponse): Buffer | Promise<Buffer> {
  if (headerValue(response.headers, 'content-encoding') === undefined) return response.body;
  return decodeIfKnown(response).catch(() => response.body);
}

/** Equal for equal observations of one payment. Only the hash is stored, because the bank may forbid to store the response. */
export function observationHash(paymentKey: string, observed: string | Buffer): string {
  const digest =
    typeof observed === 'string'
      ? hash('sha256', paymentKey + observed, 'base64url')
      : createHash('sha256').update(paymentKey).update(observed).digest('base64url');
  return digest.slice(0, 22);
}
