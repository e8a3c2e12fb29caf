/**
 * STAGE 2. One X-Request-ID, one effect at the bank.
 *
 * The first request claims its id and is carried out to its end, whatever the TPP's connection does. Every repeat gets
 * what the first one got, or is told that it runs, or that nobody knows what became of it: it never reaches the bank,
 * unless the first one provably has not.
 */

import { asGatewayError, GatewayError, kinds, unanswered } from '../flow/errors.ts';
import type { Client, PisRequest, PisResponse } from '../flow/messages.ts';
import type { Handler, Stage } from '../flow/stage.ts';
import type { LedgerVerdict } from '../flow/trail.ts';
import type { Changes } from '../state/changes.ts';
import type { Log } from '../telemetry/log.ts';
import type { Claim } from './claim.ts';
import { answerOf, type Happened, statusPathOf } from './entry.ts';
import { identityOf } from './fingerprint.ts';
import type { Found, Ledger } from './ledger.ts';

/** What the stage works with. */
export interface Guard {
  readonly ledger: Ledger;
  readonly changes: Changes;
  /** How long a repeat waits for the first one, and how long late answers are listened for. Milliseconds. */
  readonly waitMs: number;
  readonly lateAnswerMs: number;
  readonly ifStateFails: 'refuse' | 'allow';
  /** Where TPP systems reach the gateway. */
  readonly publicUrl: string;
  readonly log: Log;
}

/** @throws GatewayError with a code of `DUPLICATE_...`, or STATE_UNAVAILABLE if it cannot be known whether it is one */
export function guardDuplicates(guard: Guard): Stage<PisRequest> {
  return async (request, next) => {
    if (request.operation.lane !== 'write') return next(request);
    const identity = identityOf(request);
    const askedAtMs = performance.now();
    const waitUntilMs = Math.min(askedAtMs + guard.waitMs, request.deadlineAtMs);
    const find = () => guard.ledger.find(identity, request);
    let found = await find().catch(withoutStateIfAllowed(guard, request));
    while (found.kind === 'running' && performance.now() < waitUntilMs) {
      await guard.changes.to(identity.id);
      found = await find(); // there is a first one: without the state nothing goes on, whatever is allowed
    }
    const waitedMs = performance.now() - askedAtMs;
    request.note?.({ what: 'ledger', verdict: verdicts[found.kind], waitedMs });
    switch (found.kind) {
      case 'unknown':
        return next(request);
      case 'free':
        return carryOut(guard, found.claim, request, next);
      case 'answered':
        return replayed(answerOf(found.entry), request.client);
      case 'another-request':
        throw anotherRequest();
      case 'happened':
        throw happened(found.entry, guard.publicUrl);
      case 'in-doubt':
        throw inDoubt(found.environment);
      case 'running':
        throw inFlight();
    }
  };
}

const verdicts: Readonly<Record<Found['kind'] | 'unknown', LedgerVerdict>> = {
  free: 'claimed',
  answered: 'replayed',
  running: 'running',
  'in-doubt': 'in-doubt',
  happened: 'happened',
  'another-request': 'another-request',
  unknown: 'unprotected',
};

/** The transport looks at the deadline first: what has not left by then does not leave any more. Milliseconds. */
const laterMs = 5;

/** Answers by the deadline; what the bank says later is recorded all the same. */
async function carryOut(
  guard: Guard,
  claim: Claim,
  request: PisRequest,
  next: Handler<PisRequest>,
): Promise<PisResponse> {
  const outcome = toItsEnd(guard, claim, request, next);
  const isInTime = await inTime(outcome, request.deadlineAtMs + laterMs);
  const environment = claim.environment();
  if (isInTime || environment === undefined) return outcome; // what was not sent fails by itself at the deadline
  const error = unanswered(environment);
  request.note?.({ what: 'recorded', as: 'in-doubt' });
  await claim.doubt(whyOf(error));
  outcome.then(
    ({ status }) => request.note?.({ what: 'late-answer', status }),
    () => {}, // it stays in doubt
  );
  throw error;
}

/** Carries a request out, and records what came of it before anybody is told. */
async function toItsEnd(
  guard: Guard,
  claim: Claim,
  request: PisRequest,
  next: Handler<PisRequest>,
): Promise<PisResponse> {
  const pass = async (environment: string) =>
    claim.pass(environment).catch((thrown: unknown) => {
      withoutStateIfAllowed(guard, request)(thrown);
      return claim.passUnrecorded(environment);
    });
  const fence = { pass, listenUntilMs: request.deadlineAtMs + guard.lateAnswerMs };
  try {
    const response = await next({ ...request, fence });
    // Too many requests: the bank has done nothing, and asks for the same request later.
    const isDone = response.status !== 429;
    request.note?.({ what: 'recorded', as: isDone ? 'answered' : 'released' });
    await (isDone ? claim.answered(response) : claim.release());
    return response;
  } catch (thrown) {
    const error = asGatewayError(thrown);
    const mayHaveReached = claim.environment() !== undefined && kinds[error.code].reached === 'maybe';
    request.note?.({ what: 'recorded', as: mayHaveReached ? 'in-doubt' : 'released' });
    await (mayHaveReached ? claim.doubt(whyOf(error)) : claim.release());
    throw thrown;
  }
}

/** As operators are told. */
const whyOf = ({ code, message }: GatewayError) => `${code}: ${message}`;

/** Whether something has come to an end by a time. @param atMs milliseconds of `performance.now()` */
async function inTime(outcome: Promise<unknown>, atMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, atMs - performance.now(), false);
  const ended = outcome.then(
    () => true,
    () => true,
  );
  return Promise.race([ended, late]).finally(() => clearTimeout(timer));
}

/** Where the configuration allows it, a payment goes on without the ledger, and loudly. */
function withoutStateIfAllowed({ ifStateFails, log }: Guard, { requestId }: PisRequest) {
  return (thrown: unknown): { readonly kind: 'unknown' } => {
    const { code, message } = asGatewayError(thrown);
    if (code !== 'STATE_UNAVAILABLE' || ifStateFails === 'refuse') throw thrown;
    const what = 'a payment goes on without protection from duplicates, as idempotency.ifStateFails allows';
    log('warn', what, { requestId, why: message });
    return { kind: 'unknown' };
  };
}

function replayed(response: PisResponse, { environments }: Client): PisResponse {
  if (environments.includes(response.environment)) return response;
  throw new GatewayError(
    'ENVIRONMENT_FORBIDDEN',
    'This client may not use the environment that the first request with this X-Request-ID went to.',
  );
}

function anotherRequest(): GatewayError {
  const text = 'This X-Request-ID stood on another request before; give every new request a new one.';
  return new GatewayError('DUPLICATE_MISMATCH', text, { field: 'X-Request-ID' });
}

function inFlight(): GatewayError {
  const text =
    'The first request with this X-Request-ID is still under way; ask again with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}

function inDoubt(environment?: string): GatewayError {
  const text =
    'It is not known what became of the first request with this X-Request-ID; nothing was sent again.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment });
}

function happened(entry: Happened, publicUrl: string): GatewayError {
  const path = statusPathOf(entry);
  const besides = path && `It is the payment ${entry.paymentId}: read ${publicUrl}${path}.`;
  const text = 'The bank has carried out the first request with this X-Request-ID; its answer is lost.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment: entry.environment, besides });
}
