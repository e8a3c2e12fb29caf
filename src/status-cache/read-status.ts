/** How one status read is answered: from what is kept, by sharing a question that is under way, or by asking the bank. */

import type { PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Handler } from '../flow/stage.ts';
import { idleTime } from '../state/idle-time.ts';
import type { AskBank } from './ask-bank.ts';
import { type CachedAnswer, toldAnswer } from './cache-answer.ts';
import type { Clock } from './clock.ts';
import type { StatusDocument } from './document.ts';
import type { StatusEntries } from './entries.ts';
import { isFresh, responseOf } from './entry.ts';
import type { Forgetting } from './forgetting.ts';
import { documentKey, type Place, type Places } from './place.ts';
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
  readonly entries: Pick<StatusEntries, 'read'>;
  readonly flights: SharedFlights;
  readonly askBank: AskBank;
  readonly forgetting: Pick<Forgetting, 'later'>;
  readonly now: Clock;
}

/** What a call to the bank needs at least, of a deadline that is spent waiting for another instance. Milliseconds. */
const callMs = 1_000;
/** A shared state that takes longer to answer is not asked for a lease as well: the read has waited enough. Milliseconds. */
const promptMs = 15;

export function createStatusReads(parts: Parts): StatusReads {
  const { places, entries, flights, askBank, forgetting, now } = parts;
  const readIfPossible = (key: string) => entries.read(key).catch(() => undefined);
  const placeOf = (request: RoutedRequest) => places.of(request).catch(() => undefined);

  async function through(asked: RoutedRequest, next: Next, wish: 'any' | 'fresh'): Promise<PisResponse> {
    const request = { ...asked, signal: undefined }; // others may wait for the answer: it is fetched although the TPP leaves
    const place = await placeOf(request);
    if (!place) return blindly(request, next);
    for (;;) {
      const { joined, landing } = flights.share(`${place.key} ${place.variant} ${wish}`, () =>
        wish === 'any' ? lookOrAsk(request, next, place) : askAnyway(request, next, place),
      );
      const landed = await landing;
      if (!joined) return told(request, landed);
      if (!landed.shareable) return pass(request, next);
      if (landed.asOfMs >= request.arrivedAtMs) return told(request, asShared(landed));
    }
  }

  async function lookOrAsk(request: RoutedRequest, next: Next, place: Place): Promise<CachedAnswer> {
    const question = { request, next, place, why: 'miss' } as const;
    const asOfMs = performance.now();
    const tookMs = idleTime();
    let document = await readIfPossible(place.key);
    const hit = document && freshIn(document, place, request);
    if (hit) return { ...hit, verdict: 'hit', asOfMs };
    if (!document || tookMs() > promptMs) return askBank(question, document);
    return flights.acrossInstances(place.key, `${place.variant}:${document.generation}`, {
      async look() {
        const lookedAtMs = performance.now();
        document = await readIfPossible(place.key);
        const fresh = document && freshIn(document, place, request);
        return fresh && { ...fresh, verdict: 'shared', asOfMs: lookedAtMs };
      },
      ask: () => askBank(question, document),
      untilMs: request.deadlineAtMs - callMs,
    });
  }

  const askAnyway = async (request: RoutedRequest, next: Next, place: Place) =>
    askBank({ request, next, place, why: 'request' }, await readIfPossible(place.key));

  async function pass(request: RoutedRequest, next: Next): Promise<PisResponse> {
    const place = await placeOf(request);
    if (!place) return blindly(request, next);
    const question = { request, next, place, why: 'bypass' } as const;
    return told(request, await askBank(question, await readIfPossible(place.key)));
  }

  /** While not even the secret is known: what is kept may be older than this answer, and cannot be compared with it. */
  async function blindly(request: RoutedRequest, next: Next): Promise<PisResponse> {
    const response = await next(request);
    forgetting.later(documentKey(request.environment.name, request.operation.paymentId ?? ''));
    return told(request, { response, verdict: 'bypass', shareable: false, asOfMs: 0 });
  }

  function freshIn(document: StatusDocument, { variant }: Place, { environment }: RoutedRequest) {
    const entry = document.entries[variant];
    if (!entry || !isFresh(entry, now())) return undefined;
    return { response: responseOf(entry, environment.name), entry, shareable: true };
  }

  function told({ note }: RoutedRequest, answer: CachedAnswer): PisResponse {
    note?.({ what: 'cache', verdict: answer.verdict });
    return toldAnswer(answer, now());
  }

  return {
    answer: (request, next) => through(request, next, 'any'),
    ask: (request, next) => through(request, next, 'fresh'),
    pass,
    async known(request) {
      const place = await placeOf(request);
      const document = place && (await readIfPossible(place.key));
      const found = document && freshIn(document, place, request);
      return found && told(request, { ...found, verdict: 'hit', asOfMs: request.arrivedAtMs });
    },
  };
}

/** As whoever had to wait for it is told; what was kept already is a hit for everybody. */
function asShared(landed: CachedAnswer): CachedAnswer {
  const isNews = landed.verdict === 'miss' || landed.verdict === 'request';
  return isNews ? { ...landed, verdict: 'shared' } : landed;
}
