/**
 * Records observations of other operations than status reads before the TPP receives the response: the status of the
 * payment, or that an authorisation has ended.
 */

import { createHash, hash } from 'node:crypto';
import { headerValue } from '../pis/headers.ts';
import type { Operation } from '../pis/operations.ts';
import { endsAuthorisation, scaStatusIn, transactionStatusIn } from '../pis/transaction-status.ts';
import { decodeIfKnown, isEncoded } from '../request/content-coding.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import type { StatusEvents } from '../request/statuses.ts';
import type { Clock } from './cache-control.ts';
import { paymentKeyIn } from './cache-key.ts';
import type { CacheStore, Invalidation, StoredPayment } from './cache-store.ts';
import type { Observation } from './observation-rules.ts';

interface ObservePaymentDependencies {
  readonly store: Pick<CacheStore, 'readsAtOnce' | 'readUnflushed' | 'recordObservation'>;
  readonly invalidation: Pick<Invalidation, 'defer'>;
  readonly events: Pick<StatusEvents, 'publish'>;
  readonly now: Clock;
}

/**
 * Records what the bank's response shows before the TPP receives it. If the shared state is unavailable, queues an invalidation
 * of the payment.
 *
 * The payment is read while the bank works, so that the response does not wait for the state. It is read after the request was
 * sent, not before: every response that is stored under a later generation then belongs to a request that began even later (ADR 78).
 */
export function createObservePayment(dependencies: ObservePaymentDependencies): Stage<RoutedRequest> {
  const { store, invalidation, events, now } = dependencies;

  return (request, next) => {
    const paymentKey = paymentKeyIn(request);
    let before: Promise<StoredPayment> | undefined;
    const onSent = () => {
      before = store.readUnflushed(paymentKey);
      before.catch(() => {}); // if there is an observation, the failure is handled below
    };

    function record(response: PisResponse, body: Buffer): PisResponse | Promise<PisResponse> {
      const observation = observationIn(request.operation, paymentKey, response, body, now());
      const recorded = observation && store.recordObservation(paymentKey, observation, before);
      if (!recorded) return response;
      const onRecorded = (mayHaveChanged: boolean) => {
        if (!mayHaveChanged) return;
        const what = observation.what === 'status' ? 'changed' : 'written';
        events.publish({ what, paymentKey, tenantId: currentTenantId(request) });
      };
      return recorded.then(onRecorded, () => invalidation.defer(paymentKey)).then(() => response);
    }

    // Most reads of an authorisation show that it has not ended. That is no observation, so the payment is not read in advance.
    const readsWhileBankWorks = !store.readsAtOnce && request.operation.showsStatus === 'transactionStatus';
    if (readsWhileBankWorks) request.onSent = onSent;
    return next(request).then((response) => {
      if (response.status !== 200) return response;
      const body = decodedBodyOf(response);
      return body instanceof Promise
        ? body.then((decoded) => record(response, decoded))
        : record(response, body);
    });
  };
}

/** @param nowMs milliseconds since 1970 */
function observationIn(
  { showsStatus, path }: Operation,
  paymentKey: string,
  { headers }: PisResponse,
  body: Buffer,
  nowMs: number,
): Observation | undefined {
  const contentType = headerValue(headers, 'content-type');
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

/** The body without its content codings; as it is if it cannot be decoded. A promise only if it has one. */
export function decodedBodyOf(response: PisResponse): Buffer | Promise<Buffer> {
  if (!isEncoded(response)) return response.body;
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
