/**
 * Asks the bank for a status, and notes what it says: an answer is kept if it may be, and a status that nobody has seen
 * before makes all earlier answers forgotten, whether or not the new one is kept.
 */

import { createHash } from 'node:crypto';
import { headerValue, withoutFields } from '../pis/headers.ts';
import { transactionStatusIn } from '../pis/transaction-status.ts';
import { decodeBody } from '../request/content-coding.ts';
import { asGatewayError, type ErrorCode } from '../request/errors.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler } from '../request/stage.ts';
import {
  type Clock,
  type FreshnessSettings,
  forbidsStale,
  freshnessLifetimeMs,
  initialAgeMs,
  isStorable,
  statusTtlMs,
} from './cache-control.ts';
import type { CacheResult } from './cache-headers.ts';
import type { CacheKey } from './cache-key.ts';
import type { CacheStore, Invalidation, StoredPayment } from './cache-store.ts';
import { ageMsOf, type Observation, toPisResponse } from './cached-payment.ts';

/** Why the bank is asked: nothing fresh is known, the TPP wants it so, or its read is for itself alone. */
export type FetchReason = 'miss' | 'request' | 'bypass';

/** A read that is on its way to the bank. */
export interface StatusFetch {
  readonly request: RoutedRequest;
  readonly next: Handler<RoutedRequest>;
  readonly place: CacheKey;
  readonly why: FetchReason;
}

/** @param document what is kept of the payment; `undefined` if that cannot be found out. @throws what `next` throws */
export type FetchStatus = (
  question: StatusFetch,
  document: StoredPayment | undefined,
) => Promise<CacheResult>;

interface FetchStatusDependencies {
  readonly store: CacheStore;
  readonly invalidation: Invalidation;
  readonly settings: FreshnessSettings & { readonly staleTtl: number };
  readonly now: Clock;
}

/** How often an answer that turns out to be outdated is fetched again. */
const maxFetches = 3;

export function createFetchStatus({
  store,
  invalidation,
  settings,
  now,
}: FetchStatusDependencies): FetchStatus {
  async function ask(
    question: StatusFetch,
    document: StoredPayment | undefined,
    attempt = 1,
  ): Promise<CacheResult> {
    const { request, next, place, why } = question;
    const askedAtMs = performance.now();
    const [outcome] = await Promise.allSettled([next(request)]);
    const stale = document && bankFailed(outcome) && (await staleFor(question));
    if (stale) return stale;
    if (outcome.status === 'rejected') throw outcome.reason;

    const response = outcome.value;
    const answer = { response, verdict: why, shareable: true };
    if (response.status === 401 || response.status === 403)
      await store.dropCredential(place.key, place.credential).catch(() => invalidation.later(place.key));
    if (response.status > 299) return { ...answer, asOfMs: performance.now() };

    const notedAtMs = performance.now();
    const noting = document ? await note(question, response, document) : 'unknown';
    if (noting === 'outdated' && why !== 'bypass' && attempt < maxFetches)
      return ask(question, await store.read(place.key).catch(() => undefined), attempt + 1);
    if (noting === 'outdated') await invalidation.invalidateOrDefer(place.key); // or it may be newer than what is kept
    if (noting === 'unknown') invalidation.later(place.key);
    const shareable = isStorable(request, response);
    return { ...answer, shareable, asOfMs: noting === 'current' ? notedAtMs : askedAtMs };
  }

  async function note(question: StatusFetch, response: PisResponse, document: StoredPayment) {
    const sighting = await sightingIn(question, response, document);
    return store.record(question.place.key, document, sighting).catch(() => 'unknown' as const);
  }

  async function sightingIn(
    { request, place, why }: StatusFetch,
    response: PisResponse,
    document: StoredPayment,
  ): Promise<Observation> {
    const { headers } = response;
    const body = (await decodeBody(response).catch(() => undefined)) ?? response.body;
    const status = transactionStatusIn(body, headerValue(headers, 'content-type'));
    const standing = statusHashOf(place.key, status ?? body);
    const nowMs = now();
    const seenAt = nowMs - initialAgeMs(headers);
    if (why === 'bypass' || !isStorable(request, response)) return { standing, seenAt, entries: {} };

    const restedMs = document.standing === standing ? seenAt - document.since : 0;
    const ttlMs = Math.min(
      statusTtlMs(settings, request.operation.paymentService, status, restedMs),
      freshnessLifetimeMs(headers, nowMs),
    );
    const entry = {
      headers: withoutFields(headers, perResponseFields),
      body: response.body.toString('base64'),
      fetchedAt: seenAt,
      ttlMs,
      credential: place.credential,
    };
    return { standing, seenAt, entries: { [place.variant]: entry } };
  }

  async function staleFor({ request, place, why }: StatusFetch): Promise<CacheResult | undefined> {
    if (why !== 'miss') return undefined;
    const asOfMs = performance.now();
    const document = await store.read(place.key).catch(() => undefined);
    const entry = document?.entries[place.variant];
    if (!entry || ageMsOf(entry, now()) >= settings.staleTtl || forbidsStale(entry.headers)) return undefined;
    const response = toPisResponse(entry, request.environment.name);
    return { response, verdict: 'stale', entry, shareable: true, asOfMs };
  }

  return ask;
}

/** What is of this one answer only: the age is told anew, and every caller gets his own id. */
const perResponseFields: ReadonlySet<string> = new Set(['age', 'x-request-id']);

const bankFailureCodes: ReadonlySet<ErrorCode> = new Set([
  ...(['QUEUE_FULL', 'QUEUE_TIMEOUT', 'CIRCUIT_OPEN'] as const),
  ...(['UPSTREAM_UNREACHED', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN'] as const),
]);
const bankFailed = (outcome: PromiseSettledResult<PisResponse>) =>
  outcome.status === 'rejected'
    ? bankFailureCodes.has(asGatewayError(outcome.reason).code)
    : outcome.value.status >= 500;

/** Enough to tell one status from another; of an answer that may not be stored, nothing else stays. */
const statusHashOf = (key: string, status: string | Buffer) =>
  createHash('sha256').update(key).update(status).digest('base64url').slice(0, 22);
