/**
 * Records observations of other operations than status reads before the TPP receives the response: the status of the
 * payment, or that an authorisation has ended.
 */

import { createHash, hash } from 'node:crypto';
import type { Operation } from '../pis/operations.ts';
import { endsAuthorisation } from '../pis/transaction-status.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import { type Content, contentOf, scaStatusIn, transactionStatusIn } from '../request/read-content.ts';
import type { Stage } from '../request/stage.ts';
import type { StatusEvents } from '../request/statuses.ts';
import type { Clock } from './cache-control.ts';
import { paymentKeyIn } from './cache-key.ts';
import type { CacheStore, Invalidation, StoredPayment } from './cache-store.ts';
import type { Observation } from './observation-rules.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

interface ObservePaymentDependencies {
  readonly store: Pick<CacheStore, 'readUnflushed' | 'recordObservation'>;
  readonly invalidation: Pick<Invalidation, 'defer'>;
  readonly events: Pick<StatusEvents, 'publish'>;
  readonly reportUnreadable: ReportUnreadable;
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
  const { store, invalidation, events, reportUnreadable, now } = dependencies;

  return (request, next) => {
    const paymentKey = paymentKeyIn(request);
    let before: Promise<StoredPayment> | undefined;
    const onSent = () => {
      before = store.readUnflushed(paymentKey);
      before.catch(() => {}); // if there is an observation, the failure is handled below
    };

    function record(response: PisResponse, content: Content): PisResponse | Promise<PisResponse> {
      reportUnreadable(request, paymentKey, content);
      const observation = observationIn(request.operation, paymentKey, content, now());
      if (!observation) return response;
      const onRecorded = (mayHaveChanged: boolean) => {
        if (!mayHaveChanged) return;
        const what = observation.what === 'status' ? 'changed' : 'written';
        events.publish({ what, paymentKey, tenantId: currentTenantId(request) });
      };
      return store
        .recordObservation(paymentKey, observation, before)
        .then(onRecorded, () => invalidation.defer(paymentKey))
        .then(() => response);
    }

    // Most reads of an authorisation show that it has not ended. That is no observation, so the payment is not read in advance.
    if (request.operation.showsStatus === 'transactionStatus') request.onSent = onSent;
    return next(request).then((response) => {
      if (response.status !== 200) return response;
      const content = contentOf(response);
      return content instanceof Promise
        ? content.then((read) => record(response, read))
        : record(response, content);
    });
  };
}

/** @param nowMs milliseconds since 1970 */
function observationIn(
  { showsStatus, path }: Operation,
  paymentKey: string,
  content: Content,
  nowMs: number,
): Observation | undefined {
  return showsStatus === 'scaStatus'
    ? endedAuthorisation(paymentKey, path, scaStatusIn(content))
    : observedStatus(paymentKey, transactionStatusIn(content), nowMs);
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

/** Equal for equal observations of one payment. Only the hash is stored, because the bank may forbid to store the response. */
export function observationHash(paymentKey: string, observed: string | Buffer): string {
  const digest =
    typeof observed === 'string'
      ? hash('sha256', paymentKey + observed, 'base64url')
      : createHash('sha256').update(paymentKey).update(observed).digest('base64url');
  return digest.slice(0, 22);
}
