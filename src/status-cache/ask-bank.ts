/**
 * Asks the bank for a status, and notes what it says: an answer is kept if it may be, and a status that nobody has seen
 * before makes all earlier answers forgotten, whether or not the new one is kept.
 */

import { createHash } from 'node:crypto';
import { decodedBody } from '../flow/content-coding.ts';
import { asGatewayError, type ErrorCode } from '../flow/errors.ts';
import type { PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Handler } from '../flow/stage.ts';
import { headerValue, without } from '../pis/headers.ts';
import { transactionStatusIn } from '../pis/status-body.ts';
import type { CachedAnswer } from './cache-answer.ts';
import type { Clock } from './clock.ts';
import { ageOnArrivalMs, allowedMs, forbidsStale, mayBeKept } from './directives.ts';
import type { Sighting } from './document.ts';
import type { KeptDocument, StatusEntries } from './entries.ts';
import { ageMsOf, responseOf } from './entry.ts';
import type { Forgetting } from './forgetting.ts';
import { type FreshnessSettings, ttlOf } from './freshness.ts';
import type { Place } from './place.ts';

/** Why the bank is asked: nothing fresh is known, the TPP wants it so, or its read is for itself alone. */
export type Why = 'miss' | 'request' | 'bypass';

/** A read that is on its way to the bank. */
export interface Question {
  readonly request: RoutedRequest;
  readonly next: Handler<RoutedRequest>;
  readonly place: Place;
  readonly why: Why;
}

/** @param document what is kept of the payment; `undefined` if that cannot be found out. @throws what `next` throws */
export type AskBank = (question: Question, document: KeptDocument | undefined) => Promise<CachedAnswer>;

interface Parts {
  readonly entries: StatusEntries;
  readonly forgetting: Forgetting;
  readonly settings: FreshnessSettings & { readonly staleTtl: number };
  readonly now: Clock;
}

/** How often an answer that turns out to be outdated is fetched again. */
const mostAttempts = 3;

export function createAskBank({ entries, forgetting, settings, now }: Parts): AskBank {
  async function ask(
    question: Question,
    document: KeptDocument | undefined,
    attempt = 1,
  ): Promise<CachedAnswer> {
    const { request, next, place, why } = question;
    const askedAtMs = performance.now();
    const [outcome] = await Promise.allSettled([next(request)]);
    const stale = document && bankFailed(outcome) && (await staleFor(question));
    if (stale) return stale;
    if (outcome.status === 'rejected') throw outcome.reason;

    const response = outcome.value;
    const answer = { response, verdict: why, shareable: true };
    if (response.status === 401 || response.status === 403)
      await entries.dropCredential(place.key, place.credential).catch(() => forgetting.later(place.key));
    if (response.status > 299) return { ...answer, asOfMs: performance.now() };

    const notedAtMs = performance.now();
    const noting = document ? await note(question, response, document) : 'unknown';
    if (noting === 'outdated' && why !== 'bypass' && attempt < mostAttempts)
      return ask(question, await entries.read(place.key).catch(() => undefined), attempt + 1);
    if (noting === 'outdated') await forgetting.nowOrLater(place.key); // or it may be newer than what is kept
    if (noting === 'unknown') forgetting.later(place.key);
    const shareable = mayBeKept(request, response);
    return { ...answer, shareable, asOfMs: noting === 'current' ? notedAtMs : askedAtMs };
  }

  async function note(question: Question, response: PisResponse, document: KeptDocument) {
    const sighting = await sightingIn(question, response, document);
    return entries.note(question.place.key, document, sighting).catch(() => 'unknown' as const);
  }

  async function sightingIn(
    { request, place, why }: Question,
    response: PisResponse,
    document: KeptDocument,
  ): Promise<Sighting> {
    const { headers } = response;
    const body = (await decodedBody(response).catch(() => undefined)) ?? response.body;
    const status = transactionStatusIn(body, headerValue(headers, 'content-type'));
    const standing = standingOf(place.key, status ?? body);
    const nowMs = now();
    const seenAt = nowMs - ageOnArrivalMs(headers);
    if (why === 'bypass' || !mayBeKept(request, response)) return { standing, seenAt, entries: {} };

    const restedMs = document.standing === standing ? seenAt - document.since : 0;
    const ttlMs = Math.min(
      ttlOf(settings, request.operation.paymentService, status, restedMs),
      allowedMs(headers, nowMs),
    );
    const entry = {
      headers: without(headers, ownFields),
      body: response.body.toString('base64'),
      fetchedAt: seenAt,
      ttlMs,
      credential: place.credential,
    };
    return { standing, seenAt, entries: { [place.variant]: entry } };
  }

  async function staleFor({ request, place, why }: Question): Promise<CachedAnswer | undefined> {
    if (why !== 'miss') return undefined;
    const asOfMs = performance.now();
    const document = await entries.read(place.key).catch(() => undefined);
    const entry = document?.entries[place.variant];
    if (!entry || ageMsOf(entry, now()) >= settings.staleTtl || forbidsStale(entry.headers)) return undefined;
    const response = responseOf(entry, request.environment.name);
    return { response, verdict: 'stale', entry, shareable: true, asOfMs };
  }

  return ask;
}

/** What is of this one answer only: the age is told anew, and every caller gets his own id. */
const ownFields: ReadonlySet<string> = new Set(['age', 'x-request-id']);

const failures: ReadonlySet<ErrorCode> = new Set([
  ...(['QUEUE_FULL', 'QUEUE_TIMEOUT', 'CIRCUIT_OPEN'] as const),
  ...(['UPSTREAM_UNREACHED', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN'] as const),
]);
const bankFailed = (outcome: PromiseSettledResult<PisResponse>) =>
  outcome.status === 'rejected'
    ? failures.has(asGatewayError(outcome.reason).code)
    : outcome.value.status >= 500;

/** Enough to tell one status from another; of an answer that may not be stored, nothing else stays. */
const standingOf = (key: string, status: string | Buffer) =>
  createHash('sha256').update(key).update(status).digest('base64url').slice(0, 22);
