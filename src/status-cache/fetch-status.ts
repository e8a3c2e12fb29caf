/**
 * Fetches a status from the bank and records it: the response is stored if the bank allows that, and a changed status
 * invalidates all earlier responses even if the bank does not.
 */

import { initialAgeMs } from '../pis/delta-seconds.ts';
import { headerValue, withoutFields } from '../pis/headers.ts';
import { finalityOf } from '../pis/transaction-status.ts';
import { asGatewayError, type ErrorCode } from '../request/errors.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import { type Content, contentOf, transactionStatusIn } from '../request/read-content.ts';
import type { Handler } from '../request/stage.ts';
import type { ShownStatus, StatusEvents } from '../request/statuses.ts';
import {
  type Clock,
  type FreshnessSettings,
  forbidsStale,
  freshnessLifetimeMs,
  isStorable,
  lacksFields,
  statusTtlMs,
  varyOutsideKeyIn,
} from './cache-control.ts';
import type { CacheResult } from './cache-headers.ts';
import type { CacheKey, CacheKeys } from './cache-key.ts';
import type { CacheStore, Invalidation, StoredPayment } from './cache-store.ts';
import { ageMsOf, toPisResponse } from './cached-payment.ts';
import type { RecordOutcome, StatusRead } from './observation-rules.ts';
import { observationHash } from './observe-payment.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

/** A status read to forward to the bank. */
export interface StatusFetch {
  readonly request: RoutedRequest;
  readonly next: Handler<RoutedRequest>;
  readonly key: CacheKey;
  /** Nothing fresh is cached; the request refuses the cache; the response is for this request only. */
  readonly reason: 'miss' | 'request' | 'bypass';
}

/**
 * @param before what is stored of the payment; `undefined` if that is unknown
 * @throws what `next` throws
 */
export type FetchStatus = (fetch: StatusFetch, before: StoredPayment | undefined) => Promise<CacheResult>;

interface FetchStatusDependencies {
  readonly store: CacheStore;
  readonly invalidation: Invalidation;
  readonly tagOf: CacheKeys['tagOf'];
  readonly events: Pick<StatusEvents, 'publish'>;
  readonly reportUnreadable: ReportUnreadable;
  readonly settings: FreshnessSettings & { readonly staleTtl: number };
  readonly now: Clock;
}

/** How often a response that turns out to be outdated is fetched again. */
const maxFetches = 3;

export function createFetchStatus(dependencies: FetchStatusDependencies): FetchStatus {
  const { store, invalidation, tagOf, events, reportUnreadable, settings, now } = dependencies;

  async function fetchStatus(
    fetch: StatusFetch,
    before: StoredPayment | undefined,
    attempt = 1,
  ): Promise<CacheResult> {
    const { request, next, key, reason } = fetch;
    const { paymentKey } = key;
    const startedAtMs = performance.now();
    const [outcome] = await Promise.allSettled([next(request)]);
    const stale = before && bankFailed(outcome) && (await staleResult(fetch));
    if (stale) return stale;
    if (outcome.status === 'rejected') throw outcome.reason;

    const answer = outcome.value;
    if (answer.status === 401 || answer.status === 403)
      await store.deleteCredential(paymentKey, key.credential).catch(() => invalidation.defer(paymentKey));
    if (answer.status > 299)
      return { response: answer, verdict: reason, shareable: true, asOfMs: performance.now() };

    const content = await contentOf(answer);
    reportUnreadable(request, paymentKey, content);
    const shown = shownStatus(request, paymentKey, answer, content);
    const response = withTag(answer, tagOf(request, paymentKey, shown.hash));
    const recordedAtMs = performance.now();
    const recorded = before ? await record(fetch, response, shown, before) : 'unknown';
    if (recorded === 'outdated' && reason !== 'bypass' && attempt < maxFetches)
      return fetchStatus(fetch, await store.tryRead(paymentKey), attempt + 1);
    if (recorded === 'outdated') await invalidation.invalidateOrDefer(paymentKey); // it may be newer than what is stored
    // What the other instances have cached may be older.
    if (recorded === 'unknown' || before?.isOwn) invalidation.defer(paymentKey);
    if (recorded === 'changed')
      events.publish({ what: 'changed', paymentKey, tenantId: currentTenantId(request) });
    const shareable = isStorable(request, response);
    const isNewest = recorded === 'newest' && !before?.isOwn; // the own place may have missed a read
    const asOfMs = isNewest ? recordedAtMs : startedAtMs;
    return { response, verdict: reason, shareable, asOfMs };
  }

  async function record(
    fetch: StatusFetch,
    response: PisResponse,
    shown: ShownStatus,
    before: StoredPayment,
  ): Promise<RecordOutcome | 'unknown'> {
    const read = statusReadOf(fetch, response, shown, before);
    return store.recordRead(fetch.key.paymentKey, before, read).catch(() => 'unknown' as const);
  }

  function statusReadOf(
    { request, key, reason }: StatusFetch,
    response: PisResponse,
    { code: status, hash: statusHash, finality }: ShownStatus,
    before: StoredPayment,
  ): StatusRead {
    const { headers } = response;
    const nowMs = now();
    const observedAtMs = nowMs - initialAgeMs(headers);
    const isFinal = finality === 'final';
    if (reason === 'bypass' || !isStorable(request, response))
      return { statusHash, isFinal, observedAtMs, responses: {} };

    const unchangedForMs = before.statusHash === statusHash ? observedAtMs - before.statusSinceMs : 0;
    const ttlMs = Math.min(
      statusTtlMs(settings, request.operation.paymentService, status, unchangedForMs),
      freshnessLifetimeMs(headers, nowMs),
    );
    const absentFields = varyOutsideKeyIn(headers, request.environment.callerHeaders);
    const cached = {
      headers: withoutFields(headers, perResponseFields),
      body: response.body,
      fetchedAtMs: observedAtMs,
      ttlMs,
      credential: key.credential,
      publicUrl: response.publicUrl,
      ...(absentFields.length > 0 && { absentFields }),
    };
    return { statusHash, isFinal, observedAtMs, responses: { [key.variant]: cached } };
  }

  async function staleResult({ request, key, reason }: StatusFetch): Promise<CacheResult | undefined> {
    if (reason !== 'miss') return undefined;
    const asOfMs = performance.now();
    const payment = await store.tryRead(key.paymentKey);
    const cached = payment?.responses[key.variant];
    if (!cached || ageMsOf(cached, now()) >= settings.staleTtl || forbidsStale(cached.headers))
      return undefined;
    if (cached.absentFields && !lacksFields(request, cached.absentFields)) return undefined;
    const response = toPisResponse(cached, request.environment.name);
    return { response, verdict: 'stale', cached, shareable: true, asOfMs };
  }

  return fetchStatus;
}

/**
 * The status that a successful response to a status read shows.
 *
 * @param content of the response
 */
export function shownStatus(
  { operation }: RoutedRequest,
  paymentKey: string,
  { body }: PisResponse,
  content: Content,
): ShownStatus {
  const code = transactionStatusIn(content);
  const finality = code === undefined ? 'pending' : finalityOf(operation.paymentService, code);
  return { hash: observationHash(paymentKey, code ?? content.text ?? body), code, finality };
}

/** A 200 without an `ETag` of the bank gets one of the gateway. */
function withTag(response: PisResponse, tag: string | undefined): PisResponse {
  const { status, headers } = response;
  if (status !== 200 || tag === undefined || headerValue(headers, 'etag') !== undefined) return response;
  return { ...response, headers: [...headers, ['ETag', tag]] };
}

/** Not stored: the age is computed for each response, and each caller gets its own id. */
const perResponseFields: ReadonlySet<string> = new Set(['age', 'x-request-id']);

const bankFailureCodes: ReadonlySet<ErrorCode> = new Set([
  ...(['QUEUE_FULL', 'QUEUE_TIMEOUT', 'CIRCUIT_OPEN'] as const),
  ...(['UPSTREAM_UNREACHED', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN'] as const),
]);

const bankFailed = (outcome: PromiseSettledResult<PisResponse>) =>
  outcome.status === 'rejected'
    ? bankFailureCodes.has(asGatewayError(outcome.reason).code)
    : outcome.value.status >= 500;
