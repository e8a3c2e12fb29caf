/** How one status read is answered: from what is kept, by sharing a question that is under way, or by asking the bank. */

import { createHash } from 'node:crypto';
import { decodedBody } from '../flow/content-coding.ts';
import { asGatewayError, type ErrorCode } from '../flow/errors.ts';
import type { PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Handler } from '../flow/stage.ts';
import { headerValue, without } from '../pis/headers.ts';
import { transactionStatusIn } from '../pis/status-body.ts';
import { type CachedAnswer, cacheAnswer, type Verdict } from './cache-answer.ts';
import { ageOnArrivalMs, allowedMs, mayBeKept } from './directives.ts';
import type { Entry, StatusDocument } from './document.ts';
import type { StatusEntries } from './entries.ts';
import { type FreshnessSettings, ttlOf } from './freshness.ts';
import type { Place, Places } from './place.ts';
import type { SharedFlights } from './shared-flight.ts';

type Next = Handler<RoutedRequest>;

/** Each throws what `next` throws, if nothing better is known. */
export interface StatusReads {
  /** From the cache if it is fresh there, else from the bank. */
  answer(request: RoutedRequest, next: Next): Promise<PisResponse>;
  /** From the bank, whatever is kept; equal questions at the same time are one. */
  ask(request: RoutedRequest, next: Next): Promise<PisResponse>;
  /** From the cache alone; `undefined` if it is not fresh there. */
  known(request: RoutedRequest): Promise<PisResponse | undefined>;
  /** From the bank; nothing is kept or shared. */
  pass(request: RoutedRequest, next: Next): Promise<PisResponse>;
}

interface Parts {
  readonly places: Places;
  readonly entries: StatusEntries;
  readonly flights: SharedFlights;
  readonly settings: FreshnessSettings & { readonly staleTtl: number };
  readonly count: (verdict: Verdict, environment: string) => void;
}

/** How often an answer that turns out to be outdated is fetched again. */
const mostAttempts = 3;
/** What a call to the bank needs at least, of a deadline that is spent waiting for another instance. Milliseconds. */
const callMs = 1_000;

export function createStatusReads({ places, entries, flights, settings, count }: Parts): StatusReads {
  async function through(request: RoutedRequest, next: Next, wish: 'any' | 'fresh'): Promise<PisResponse> {
    const place = await places.of(request).catch(() => undefined);
    if (!place) return pass(request, next);
    const { joined, landing } = flights.share(`${place.key} ${place.variant} ${wish}`, () =>
      wish === 'any' ? lookOrAsk(request, next, place) : askBank(request, next, place, 'request'),
    );
    const landed = await landing;
    if (joined && !landed.shareable) return pass(request, next);
    return told(joined && landed.verdict === 'miss' ? { ...landed, verdict: 'shared' } : landed);
  }

  async function lookOrAsk(request: RoutedRequest, next: Next, place: Place): Promise<CachedAnswer> {
    const document = await entries.read(place.key).catch(() => undefined);
    if (!document) return cacheAnswer(await next(request), 'miss');
    const hit = freshIn(document, place, request, 'hit');
    if (hit) return hit;
    return flights.acrossInstances(place.key, `${place.variant}:${document.generation}`, {
      look: async () => {
        const now = await entries.read(place.key).catch(() => undefined);
        return now && freshIn(now, place, request, 'shared');
      },
      ask: () => askBank(request, next, place, 'miss'),
      untilMs: request.deadlineAtMs - callMs,
    });
  }

  async function askBank(
    request: RoutedRequest,
    next: Next,
    place: Place,
    why: 'miss' | 'request',
    attempt = 1,
  ): Promise<CachedAnswer> {
    const document = await entries.read(place.key).catch(() => undefined);
    let response: PisResponse;
    try {
      response = await next(request);
    } catch (thrown) {
      const stale = bankFailed(asGatewayError(thrown).code) ? await staleFor(request, place, why) : undefined;
      if (stale) return stale;
      throw thrown;
    }
    if (response.status >= 500) return (await staleFor(request, place, why)) ?? cacheAnswer(response, why);
    if (response.status === 401 || response.status === 403) {
      await entries.dropCredential(place.key, place.credential).catch(() => {});
    }
    if (response.status !== 200 || !document) return cacheAnswer(response, why);
    if (!mayBeKept(response)) return { ...cacheAnswer(response, why), shareable: false };

    const kept = await answerToKeep(request, response, place, document);
    const keeping = await entries.keep(place.key, document.generation, kept).catch(() => 'current' as const);
    if (keeping === 'outdated' && attempt < mostAttempts)
      return askBank(request, next, place, why, attempt + 1);
    return cacheAnswer(response, why);
  }

  async function answerToKeep(
    { operation }: RoutedRequest,
    response: PisResponse,
    { variant, credential }: Place,
    document: StatusDocument,
  ) {
    const body = (await decodedBody(response)) ?? response.body;
    const status = transactionStatusIn(body, headerValue(response.headers, 'content-type'));
    const standing = status ?? createHash('sha256').update(body).digest('base64url');
    const ageMs = ageOnArrivalMs(response.headers);
    const fetchedAt = Date.now() - ageMs;
    const restedMs = document.standing === standing ? fetchedAt - document.since : 0;
    const ttlMs = Math.min(
      ttlOf(settings, operation.paymentService, status, restedMs),
      allowedMs(response.headers),
    );
    const headers = without(response.headers, ownFields);
    return {
      variant,
      standing,
      entry: { headers, body: response.body.toString('base64'), fetchedAt, ttlMs, credential },
    };
  }

  async function staleFor(request: RoutedRequest, place: Place, why: 'miss' | 'request') {
    if (why === 'request') return undefined;
    const document = await entries.read(place.key).catch(() => undefined);
    const entry = document?.entries[place.variant];
    return entry && ageOf(entry) <= settings.staleTtl
      ? cacheAnswer(responseOf(entry, request), 'stale', entry)
      : undefined;
  }

  async function pass(request: RoutedRequest, next: Next): Promise<PisResponse> {
    return told({ ...cacheAnswer(await next(request), 'bypass'), shareable: false });
  }

  function told({ verdict, response }: CachedAnswer): PisResponse {
    count(verdict, response.environment);
    return response;
  }

  return {
    answer: (request, next) => through(request, next, 'any'),
    ask: (request, next) => through(request, next, 'fresh'),
    pass,
    async known(request) {
      const place = await places.of(request).catch(() => undefined);
      const document = place && (await entries.read(place.key).catch(() => undefined));
      const found = document && freshIn(document, place, request, 'hit');
      return found && told(found);
    },
  };
}

/** What is of this one answer only: the age is told anew, and every caller gets his own id. */
const ownFields: ReadonlySet<string> = new Set(['age', 'x-request-id']);

const failures: ReadonlySet<ErrorCode> = new Set([
  ...(['QUEUE_FULL', 'QUEUE_TIMEOUT', 'CIRCUIT_OPEN'] as const),
  ...(['UPSTREAM_UNREACHED', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN'] as const),
]);
const bankFailed = (code: ErrorCode) => failures.has(code);

/** Negative if a clock was set back meanwhile: such an entry is not believed to be fresh. */
const ageOf = ({ fetchedAt }: Entry) => Date.now() - fetchedAt;

function freshIn(document: StatusDocument, { variant }: Place, request: RoutedRequest, verdict: Verdict) {
  const entry = document.entries[variant];
  if (!entry || ageOf(entry) < 0 || ageOf(entry) >= entry.ttlMs) return undefined;
  return cacheAnswer(responseOf(entry, request), verdict, entry);
}

function responseOf({ headers, body }: Entry, { environment }: RoutedRequest): PisResponse {
  return {
    status: 200,
    headers,
    body: Buffer.from(body, 'base64'),
    servedFrom: 'cache',
    environment: environment.name,
  };
}
