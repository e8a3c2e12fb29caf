/**
 * STAGE 2. One X-Request-ID, one effect at the bank.
 *
 * The first request claims its id and is carried out to its end, whatever the TPP's connection does. Every repeat gets
 * what the first one got, or is told that it runs, or that nobody knows what became of it: it never reaches the bank,
 * unless the first one provably has not.
 */

import { asGatewayError, errorTable, GatewayError, outcomeUnknown } from '../request/errors.ts';
import type { Client, PisRequest, PisResponse } from '../request/messages.ts';
import type { LedgerVerdict } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import type { Log } from '../telemetry/log.ts';
import type { Claim } from './claim.ts';
import type { ClaimResult, Ledger } from './ledger.ts';
import { type HappenedEntry, statusPathOf, storedResponse } from './ledger-entry.ts';
import { identityOf } from './request-identity.ts';

/** What the stage works with. */
export interface IdempotencyDependencies {
  readonly ledger: Ledger;
  readonly entryChanges: ChangeWaiter;
  /** How long a repeat waits for the first one, and how long late answers are listened for. Milliseconds. */
  readonly waitMs: number;
  readonly lateAnswerMs: number;
  readonly ifStateFails: 'refuse' | 'allow';
  /** Where TPP systems reach the gateway. */
  readonly publicUrl: string;
  readonly log: Log;
}

/** @throws GatewayError with a code of `DUPLICATE_...`, or STATE_UNAVAILABLE if it cannot be known whether it is one */
export function enforceIdempotency(guard: IdempotencyDependencies): Stage<PisRequest> {
  return async (request, next) => {
    if (request.operation.lane !== 'write') return next(request);
    const identity = identityOf(request);
    const askedAtMs = performance.now();
    const waitUntilMs = Math.min(askedAtMs + guard.waitMs, request.deadlineAtMs);
    const find = () => guard.ledger.claim(identity, request);
    let found = await find().catch(continueUnprotectedIfAllowed(guard, request));
    while (found.kind === 'running' && performance.now() < waitUntilMs) {
      await guard.entryChanges.nextChange(identity.id);
      found = await find(); // there is a first one: without the state nothing goes on, whatever is allowed
    }
    const waitedMs = performance.now() - askedAtMs;
    request.recordEvent?.({ what: 'ledger', verdict: verdicts[found.kind], waitedMs });
    switch (found.kind) {
      case 'unknown':
        return next(request);
      case 'free':
        return answerByDeadline(guard, found.claim, request, next);
      case 'answered':
        return replayAllowed(storedResponse(found.entry), request.client);
      case 'another-request':
        throw mismatchError();
      case 'happened':
        throw happenedError(found.entry, guard.publicUrl);
      case 'in-doubt':
        throw inDoubtError(found.environment);
      case 'running':
        throw inFlightError();
    }
  };
}

const verdicts: Readonly<Record<ClaimResult['kind'] | 'unknown', LedgerVerdict>> = {
  free: 'claimed',
  answered: 'replayed',
  running: 'running',
  'in-doubt': 'in-doubt',
  happened: 'happened',
  'another-request': 'another-request',
  unknown: 'unprotected',
};

/** The transport looks at the deadline first: what has not left by then does not leave any more. Milliseconds. */
const deadlineGraceMs = 5;

/** Answers by the deadline; what the bank says later is recorded all the same. */
async function answerByDeadline(
  guard: IdempotencyDependencies,
  claim: Claim,
  request: PisRequest,
  next: Handler<PisRequest>,
): Promise<PisResponse> {
  const outcome = runToCompletion(guard, claim, request, next);
  const isInTime = await settlesBefore(outcome, request.deadlineAtMs + deadlineGraceMs);
  const environment = claim.sendingTo();
  if (isInTime || environment === undefined) return outcome; // what was not sent fails by itself at the deadline
  const error = outcomeUnknown(environment);
  request.recordEvent?.({ what: 'recorded', as: 'in-doubt' });
  await claim.markInDoubt(reasonText(error));
  outcome.then(
    ({ status }) => request.recordEvent?.({ what: 'late-answer', status }),
    () => {}, // it stays in doubt
  );
  throw error;
}

/** Carries a request out, and records what came of it before anybody is told. */
async function runToCompletion(
  guard: IdempotencyDependencies,
  claim: Claim,
  request: PisRequest,
  next: Handler<PisRequest>,
): Promise<PisResponse> {
  const markSending = async (environment: string) =>
    claim.markSending(environment).catch((thrown: unknown) => {
      continueUnprotectedIfAllowed(guard, request)(thrown);
      return claim.markSendingUnrecorded(environment);
    });
  const writeAheadMark = { markSending, lateAnswerUntilMs: request.deadlineAtMs + guard.lateAnswerMs };
  try {
    const response = await next({ ...request, writeAheadMark });
    // Too many requests: the bank has done nothing, and asks for the same request later.
    const isDone = response.status !== 429;
    request.recordEvent?.({ what: 'recorded', as: isDone ? 'answered' : 'released' });
    await (isDone ? claim.recordResponse(response) : claim.release());
    return response;
  } catch (thrown) {
    const error = asGatewayError(thrown);
    const mayHaveReached = claim.sendingTo() !== undefined && errorTable[error.code].reachedBank === 'maybe';
    request.recordEvent?.({ what: 'recorded', as: mayHaveReached ? 'in-doubt' : 'released' });
    await (mayHaveReached ? claim.markInDoubt(reasonText(error)) : claim.release());
    throw thrown;
  }
}

/** As operators are told. */
const reasonText = ({ code, message }: GatewayError) => `${code}: ${message}`;

/** Whether something has come to an end by a time. @param atMs milliseconds of `performance.now()` */
async function settlesBefore(outcome: Promise<unknown>, atMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, atMs - performance.now(), false);
  const ended = outcome.then(
    () => true,
    () => true,
  );
  return Promise.race([ended, late]).finally(() => clearTimeout(timer));
}

/** Where the configuration allows it, a payment goes on without the ledger, and loudly. */
function continueUnprotectedIfAllowed(
  { ifStateFails, log }: IdempotencyDependencies,
  { requestId }: PisRequest,
) {
  return (thrown: unknown): { readonly kind: 'unknown' } => {
    const { code, message } = asGatewayError(thrown);
    if (code !== 'STATE_UNAVAILABLE' || ifStateFails === 'refuse') throw thrown;
    const what = 'a payment goes on without protection from duplicates, as idempotency.ifStateFails allows';
    log('warn', what, { requestId, why: message });
    return { kind: 'unknown' };
  };
}

function replayAllowed(response: PisResponse, { environments }: Client): PisResponse {
  if (environments.includes(response.environment)) return response;
  throw new GatewayError(
    'ENVIRONMENT_FORBIDDEN',
    'This client may not use the environment that the first request with this X-Request-ID went to.',
  );
}

function mismatchError(): GatewayError {
  const text = 'This X-Request-ID stood on another request before; give every new request a new one.';
  return new GatewayError('DUPLICATE_MISMATCH', text, { field: 'X-Request-ID' });
}

function inFlightError(): GatewayError {
  const text =
    'The first request with this X-Request-ID is still under way; ask again with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}

function inDoubtError(environment?: string): GatewayError {
  const text =
    'It is not known what became of the first request with this X-Request-ID; nothing was sent again.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment });
}

function happenedError(entry: HappenedEntry, publicUrl: string): GatewayError {
  const path = statusPathOf(entry);
  const privateDetail = path && `It is the payment ${entry.paymentId}: read ${publicUrl}${path}.`;
  const text = 'The bank has carried out the first request with this X-Request-ID; its answer is lost.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment: entry.environment, privateDetail });
}
