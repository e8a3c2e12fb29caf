/**
 * Records observations of other operations than status reads before the TPP receives the response: the status of the
 * payment, or that an authorisation has ended.
 */

import { createHash } from 'node:crypto';
import { headerValue } from '../pis/headers.ts';
import { endsAuthorisation, scaStatusIn, transactionStatusIn } from '../pis/transaction-status.ts';
import { decodeIfKnown } from '../request/content-coding.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Clock } from './cache-control.ts';
import type { CacheStore, Invalidation } from './cache-store.ts';
import type { Observation } from './observation-rules.ts';

/** Never fails: if the shared state is unavailable, queues an invalidation of the payment. */
export type ObservePayment = (
  request: RoutedRequest,
  response: PisResponse,
  paymentKey: string,
) => Promise<void>;

interface ObservePaymentDependencies {
  readonly store: Pick<CacheStore, 'recordObservation'>;
  readonly invalidation: Pick<Invalidation, 'defer'>;
  readonly now: Clock;
}

export function createObservePayment(dependencies: ObservePaymentDependencies): ObservePayment {
  const { store, invalidation, now } = dependencies;
  return async ({ operation }, response, paymentKey) => {
    if (response.status !== 200) return;
    const body = await decodedBodyOf(response);
    const contentType = headerValue(response.headers, 'content-type');
    const observation =
      operation.showsStatus === 'scaStatus'
        ? endedAuthorisation(paymentKey, operation.path, scaStatusIn(body, contentType))
        : observedStatus(paymentKey, transactionStatusIn(body, contentType), now());
    if (observation)
      await store.recordObservation(paymentKey, observation).catch(() => invalidation.defer(paymentKey));
  };
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

/** The body without its content codings; as it is if it cannot be decoded. */
export const decodedBodyOf = (response: PisResponse): Promise<Buffer> =>
  decodeIfKnown(response).catch(() => response.body);

/** Equal for equal observations of one payment. Only the hash is stored, because the bank may forbid to store the response. */
export const observationHash = (paymentKey: string, observed: string | Buffer): string =>
  createHash('sha256').update(paymentKey).update(observed).digest('base64url').slice(0, 22);
