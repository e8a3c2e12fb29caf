/**
 * STAGE 3. One X-Request-ID has at most one effect at the bank.
 *
 * The first request claims its X-Request-ID and runs to completion, even if the TPP disconnects. A repeat gets the
 * response of the first request, or an error if that is still running or its outcome is unknown. A repeat reaches the
 * bank only if the first request provably did not.
 */

import type { Config } from '../config/schema.ts';
import { asGatewayError, errorTable, GatewayError, outcomeUnknown } from '../request/errors.ts';
import { type Identities, identitiesOf } from '../request/identities.ts';
import { isAccepted } from '../request/meaning.ts';
import type { Client, PisRequest, PisResponse, WriteAheadMark } from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import type { Log } from '../telemetry/log.ts';
import type { Claim } from './claim.ts';
import { type ClaimResult, createLedger, type Ledger, type LedgerServices } from './ledger.ts';
import { type HappenedEntry, statusPathOf, storedResponse } from './ledger-entry.ts';
import { withMergedTenants } from './merged-tenants.ts';
import type { IdentifyRequest, RequestIdentity } from './request-identity.ts';
import type { Resolve } from './resolve.ts';
import { createResolveByReads, type ResolveByReads } from './resolve-by-reads.ts';
import { shortenResponse, storedBytesOf } from './shorten-response.ts';
import type { StorageBudget } from './storage-budget.ts';

export interface IdempotencyDependencies {
  readonly identify: IdentifyRequest;
  readonly ledger: Ledger;
  readonly entryChanges: ChangeWaiter;
  readonly resolveByReads: ResolveByReads;
  /** How long a repeat waits for the first request, in milliseconds. */
  readonly waitMs: number;
  /** How long after the deadline a late response is recorded, in milliseconds. */
  readonly lateAnswerMs: number;
  /** Of a longer response, only a part is stored. Bytes of headers and body. */
  readonly maxStoredBytes: number;
  readonly storageBudget: Pick<StorageBudget, 'check'>;
  readonly ifStateFails: 'refuse' | 'allow';
  readonly publicUrl: string;
  readonly log: Log;
}

export function createIdempotencyDependencies(
  { idempotency, listen }: Config,
  services: LedgerServices,
  resolve: Resolve,
): IdempotencyDependencies {
  return {
    ledger: withMergedTenants(createLedger(services, idempotency), services),
    identify: services.identify,
    entryChanges: services.entryChanges,
    resolveByReads: createResolveByReads(services.inDoubt, resolve),
    waitMs: idempotency.wait,
    lateAnswerMs: idempotency.lateAnswer,
    maxStoredBytes: idempotency.maxStoredAnswer,
    storageBudget: services.storageBudget,
    ifStateFails: idempotency.ifStateFails,
    publicUrl: listen.publicUrl,
    log: services.log,
  };
}

/** Brings a stored response up to date: it may have links of an earlier configuration. */
type UpdateResponse = (response: PisResponse) => PisResponse | Promise<PisResponse>;

interface StageDependencies extends IdempotencyDependencies {
  readonly updateResponse: UpdateResponse;
}

/** @throws GatewayError with a `DUPLICATE_...` code, or STATE_UNAVAILABLE if the ledger cannot be read */
export function enforceIdempotency(
  idempotency: IdempotencyDependencies,
  updateResponse: UpdateResponse = (response) => response,
): Stage<PisRequest> {
  const dependencies: StageDependencies = { ...idempotency, updateResponse };
  const { ledger, identify } = dependencies;
  return (request, next) => {
    const startedAtMs = performance.now();
    const identity = identify(request);
    const onResult = (result: ClaimResult) => {
      if (result.kind !== 'running') return respond(dependencies, request, next, { result, startedAtMs });
      return waitForFirst(dependencies, request, { identity, startedAtMs }).then((later) =>
        respond(dependencies, request, next, { result: later, startedAtMs }),
      );
    };
    const onFailure = (thrown: unknown) => {
      const result = continueUnprotectedIfAllowed(dependencies, request.requestId, thrown);
      return respond(dependencies, request, next, { result, startedAtMs });
    };
    const claimed = resultIfAdmitted(request, ledger.claim(identity, request));
    if (claimed instanceof Promise) return claimed.then(onResult, onFailure);
    try {
      return onResult(claimed);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  };
}

/** Returns the result of a claim when the quota has admitted the request. If the quota is used up, releases the claim. */
function resultIfAdmitted(
  request: PisRequest,
  result: ClaimResult | Promise<ClaimResult>,
): ClaimResult | Promise<ClaimResult> {
  const { quota } = request;
  if (!quota) return result;
  request.quota = undefined;
  const claimed = Promise.resolve(result);
  claimed.catch(() => {}); // awaited after the quota
  const release = (result: ClaimResult) => (result.kind === 'claimed' ? result.claim.release() : undefined);
  return quota.then(
    () => claimed,
    (refusal: unknown) => {
      const refuse = () => {
        throw refusal;
      };
      return claimed.then(release).then(refuse, refuse);
    },
  );
}

/** Waits for the first request with this X-Request-ID; claims it if the first one is released. */
async function waitForFirst(
  { ledger, entryChanges, waitMs }: IdempotencyDependencies,
  request: PisRequest,
  { identity, startedAtMs }: { readonly identity: RequestIdentity; readonly startedAtMs: number },
): Promise<ClaimResult> {
  const waitUntilMs = Math.min(startedAtMs + waitMs, request.deadlineAtMs);
  request.permit?.release(); // others may use it in the meantime
  let result: ClaimResult = { kind: 'running' };
  while (result.kind === 'running' && performance.now() < waitUntilMs) {
    await entryChanges.nextChange(identity.id);
    result = await ledger.claim(identity, request); // a first request exists: `ifStateFails` does not apply
  }
  return result;
}

function respond(
  dependencies: StageDependencies,
  request: PisRequest,
  next: Handler<PisRequest>,
  claimed: { readonly result: ClaimResult | Unprotected; readonly startedAtMs: number },
): Promise<PisResponse> {
  const { result, startedAtMs } = claimed;
  const { environmentNameOf } = identitiesOf(request);
  const waitedMs = performance.now() - startedAtMs;
  const verdict = result.kind === 'answered' ? 'replayed' : result.kind;
  request.recordEvent?.({ what: 'ledger', verdict, waitedMs });
  switch (result.kind) {
    case 'unprotected':
      return next(request);
    case 'claimed':
      return new Execution(dependencies, result.claim, request).run(request, next);
    case 'answered': {
      const stored = storedResponse(result.entry, environmentNameOf(result.entry.environment));
      return Promise.resolve(dependencies.updateResponse(replay(stored, request.client)));
    }
    case 'another-request':
      throw mismatchError(result.difference);
    case 'happened':
      throw happenedError(result.entry, environmentNameOf(result.entry.environment), dependencies.publicUrl);
    case 'in-doubt':
      throw inDoubtError(result.environment && environmentNameOf(result.environment));
    case 'running':
      throw inFlightError();
  }
}

/**
 * Executes the request, and records the outcome before the TPP gets a response. At the deadline the TPP gets OUTCOME_UNKNOWN if
 * the request was sent; the call continues, and a later response of the bank is recorded for repeats.
 */
class Execution implements WriteAheadMark {
  readonly lateAnswerMs: number;
  readonly followsReleasedAttempt: boolean;
  readonly #dependencies: IdempotencyDependencies;
  readonly #claim: Claim;
  readonly #requestId: string;
  readonly #tenant: string;
  readonly #identities: Identities;
  readonly #recordEvent: RecordEvent | undefined;
  readonly #response = Promise.withResolvers<PisResponse>();
  #isLate = false;
  #recordedWithOwner: boolean | Promise<boolean> = false;

  constructor(dependencies: IdempotencyDependencies, claim: Claim, request: PisRequest) {
    this.lateAnswerMs = dependencies.lateAnswerMs;
    this.followsReleasedAttempt = claim.followsReleasedAttempt;
    this.#dependencies = dependencies;
    this.#claim = claim;
    this.#requestId = request.requestId;
    this.#tenant = request.client.tenant;
    this.#identities = identitiesOf(request);
    this.#recordEvent = request.recordEvent;
  }

  run(request: PisRequest, next: Handler<PisRequest>): Promise<PisResponse> {
    request.writeAheadMark = this;
    try {
      this.#dependencies.storageBudget.check(this.#tenant);
      next(request).then(
        (response) => this.#onResponse(response),
        (thrown: unknown) => this.#onFailure(thrown),
      );
    } catch (thrown) {
      this.#onFailure(thrown);
    }
    return this.#response.promise;
  }

  markSending(environment: string): number | Promise<number> {
    const { storageBudget, ifStateFails } = this.#dependencies;
    try {
      storageBudget.check(this.#tenant); // again: other writes of the tenant were stored while this one waited in the queue
    } catch (refusal) {
      return Promise.reject(refusal);
    }
    const environmentId = this.#identities.environmentIdOf(environment);
    const marked = this.#claim.markSending(environmentId);
    if (ifStateFails === 'refuse' || !(marked instanceof Promise)) return marked;
    return marked.catch((thrown: unknown) => {
      continueUnprotectedIfAllowed(this.#dependencies, this.#requestId, thrown);
      return this.#claim.markSendingUnrecorded(environmentId);
    });
  }

  onDeadline(): void {
    const environmentId = this.#claim.sendingTo();
    if (environmentId === undefined) return; // an unsent request fails by itself at the deadline
    this.#isLate = true;
    const error = outcomeUnknown(this.#identities.environmentNameOf(environmentId));
    this.#recordEvent?.({ what: 'recorded', as: 'in-doubt' });
    const { reject } = this.#response;
    this.#claim.markInDoubt(reasonText(error)).then(() => reject(error), reject);
  }

  recordWithOwner(response: PisResponse, isOwnerSet: Promise<boolean>): void {
    if (!isAccepted(response) || storedBytesOf(response) > this.#dependencies.maxStoredBytes) return;
    this.#recordedWithOwner = this.#claim.recordResponseAfter(isOwnerSet, response);
  }

  mayBelongToOther(paymentId: string | undefined): false | Promise<boolean> {
    const ownTenants = this.#identities.tenantIdsOf(this.#tenant);
    return this.#claim.mayBelongToOther(paymentId, ownTenants, this.#dependencies.waitMs);
  }

  #onResponse(response: PisResponse): void {
    try {
      const recorded = this.#recordOutcome(response);
      const onFailure = (thrown: unknown) => this.#onFailure(thrown);
      if (recorded) recorded.then(() => this.#onRecorded(response), onFailure);
      else this.#onRecorded(response);
    } catch (thrown) {
      this.#onFailure(thrown);
    }
  }

  /** @returns `undefined` if the response is recorded already */
  #recordOutcome(response: PisResponse): Promise<void> | undefined {
    const { meaning } = response;
    if (meaning?.outcome === 'released') {
      this.#recordEvent?.({ what: 'recorded', as: 'released' });
      return this.#claim.release(true);
    }
    if (meaning?.outcome === 'in-doubt') {
      this.#recordEvent?.({ what: 'recorded', as: 'in-doubt' });
      return this.#claim.markInDoubt(meaning.why ?? '', meaning.outcome);
    }
    return this.#recordAsAnswered(response);
  }

  /** Records the response for repeats, unless it was recorded together with the owner of its payment. */
  #recordAsAnswered(response: PisResponse): Promise<void> | undefined {
    this.#recordEvent?.({ what: 'recorded', as: 'answered' });
    const recorded = this.#recordedWithOwner;
    if (recorded === true) return undefined;
    if (recorded === false) return this.#recordWithoutOwner(response);
    return recorded.then((isRecorded) => (isRecorded ? undefined : this.#recordWithoutOwner(response)));
  }

  #recordWithoutOwner(response: PisResponse): Promise<void> {
    if (storedBytesOf(response) <= this.#dependencies.maxStoredBytes)
      return this.#claim.recordResponse(response);
    return shortenResponse(response).then((shortened) => this.#claim.recordResponse(shortened));
  }

  #onRecorded(response: PisResponse): void {
    if (this.#isLate) this.#recordEvent?.({ what: 'late-answer', status: response.status });
    else this.#response.resolve(response);
  }

  #onFailure(thrown: unknown): void {
    const error = asGatewayError(thrown);
    const { reject } = this.#response;
    const mayHaveReached =
      this.#claim.sendingTo() !== undefined && errorTable[error.code].reachedBank === 'maybe';
    this.#recordEvent?.({ what: 'recorded', as: mayHaveReached ? 'in-doubt' : 'released' });
    try {
      const recorded = mayHaveReached ? this.#claim.markInDoubt(reasonText(error)) : this.#claim.release();
      recorded.then(() => reject(thrown), reject);
    } catch (bug) {
      reject(bug);
    }
  }
}

/** The reason shown to operators. */
const reasonText = ({ code, message }: GatewayError) => `${code}: ${message}`;

interface Unprotected {
  readonly kind: 'unprotected';
}

/** Continues without the ledger and logs a warning if `idempotency.ifStateFails` allows it; rethrows otherwise. */
function continueUnprotectedIfAllowed(
  { ifStateFails, log }: IdempotencyDependencies,
  requestId: string,
  thrown: unknown,
): Unprotected {
  const { code, message } = asGatewayError(thrown);
  if (code !== 'STATE_UNAVAILABLE' || ifStateFails === 'refuse') throw thrown;
  const what = 'sending a write without duplicate protection (idempotency.ifStateFails: allow)';
  log('warn', what, { requestId, why: message });
  return { kind: 'unprotected' };
}

/** @throws GatewayError ENVIRONMENT_FORBIDDEN if the client is no longer allowed to use the response's environment */
function replay(response: PisResponse, { environments }: Client): PisResponse {
  if (environments.includes(response.environment)) return response;
  throw new GatewayError(
    'ENVIRONMENT_FORBIDDEN',
    'This client is not allowed to use the environment of the first request with this X-Request-ID.',
  );
}

function mismatchError(difference: 'headers' | 'content'): GatewayError {
  const text =
    difference === 'content'
      ? 'X-Request-ID was already used for a different request; use a new value for each new request.'
      : 'X-Request-ID was already used for the same request with different values of PSU-ID, PSU-ID-Type, PSU-Corporate-ID, ' +
        'PSU-Corporate-ID-Type, Content-Type or Penstock-Environment; nothing was sent. Do not initiate again: repeat the ' +
        'request with its original values to get its response.';
  return new GatewayError('DUPLICATE_MISMATCH', text, { field: 'X-Request-ID' });
}

function inFlightError(): GatewayError {
  const text =
    'The first request with this X-Request-ID is still in progress; repeat it with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}

function inDoubtError(environment?: string): GatewayError {
  const text = 'The outcome of the first request with this X-Request-ID is unknown; nothing was sent again.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment });
}

function happenedError(entry: HappenedEntry, environment: string, publicUrl: string): GatewayError {
  const path = statusPathOf(entry);
  const privateDetail = path && `The paymentId is ${entry.paymentId}; its status is at ${publicUrl}${path}.`;
  const text =
    entry.operation === 'cancelPayment'
      ? 'The payment is cancelled; the response to the first request with this X-Request-ID was lost.'
      : 'The bank has executed the first request with this X-Request-ID; the response was lost.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment, privateDetail });
}
