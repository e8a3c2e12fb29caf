/**
 * STAGE 3. One X-Request-ID has at most one effect at the bank.
 *
 * The first request claims its X-Request-ID and runs to completion, even if the TPP disconnects. A repeat gets the
 * response of the first request, or an error if that is still running or its outcome is unknown. A repeat reaches the
 * bank only if the first request provably did not.
 */

import { randomUUID } from 'node:crypto';
import type { Config } from '../config/schema.ts';
import { idToSegment } from '../pis/operations.ts';
import { GatewayError } from '../request/errors.ts';
import { identitiesOf } from '../request/identities.ts';
import type { Client, PisRequest, PisResponse } from '../request/messages.ts';
import { memberOf } from '../request/read-content.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { hasNoEffect, textOf } from '../store/database.ts';
import type { LedgerRow, NewClaim } from '../store/ledger.ts';
import { Attempt, type AttemptSettings } from './attempt.ts';
import type { LedgerServices } from './ledger-services.ts';
import type { RequestIdentity } from './request-identity.ts';
import type { Resolve } from './resolve.ts';
import { createResolveByReads, type ResolveByReads } from './resolve-by-reads.ts';

export interface IdempotencyDependencies extends AttemptSettings {
  readonly services: LedgerServices;
  readonly resolveByReads: ResolveByReads;
  readonly publicUrl: string;
}

export function createIdempotencyDependencies(
  { idempotency, listen }: Config,
  services: LedgerServices,
  resolve: Resolve,
): IdempotencyDependencies {
  return {
    services,
    resolveByReads: createResolveByReads(services.inDoubt, resolve),
    waitMs: idempotency.wait,
    lateAnswerMs: idempotency.lateAnswer,
    maxStoredBytes: idempotency.maxStoredAnswer,
    publicUrl: listen.publicUrl,
  };
}

/** Brings a stored response up to date: it may have links of an earlier configuration. */
type UpdateResponse = (response: PisResponse) => PisResponse | Promise<PisResponse>;

/** What has become of the first request with an X-Request-ID. */
type ClaimResult =
  /** This is the first one. */
  | { readonly kind: 'claimed'; readonly attempt: Attempt }
  | { readonly kind: 'another-request'; readonly difference: 'headers' | 'content' }
  | { readonly kind: 'running' }
  | { readonly kind: 'answered'; readonly response: PisResponse }
  | { readonly kind: 'happened'; readonly row: LedgerRow }
  | { readonly kind: 'in-doubt'; readonly environment: string | undefined };

/** @throws GatewayError with a `DUPLICATE_...` code, or STATE_UNAVAILABLE if the ledger cannot be read */
export function enforceIdempotency(
  dependencies: IdempotencyDependencies,
  updateResponse: UpdateResponse = (response) => response,
): Stage<PisRequest> {
  return async (request, next) => {
    const startedAtMs = performance.now();
    const identity = dependencies.services.identify(request);
    const claimed = claimBeforeDeadline(dependencies, identity, request);
    request.onClaim?.(request); // shares the time of the claim
    const first = await claimWhenAdmitted(dependencies, request, claimed);
    const result =
      first.kind === 'running' ? await waitForFirst(dependencies, request, identity, startedAtMs) : first;
    const verdict = result.kind === 'answered' ? 'replayed' : result.kind;
    request.recordEvent?.({ what: 'ledger', verdict, waitedMs: performance.now() - startedAtMs });
    return respond(dependencies, request, result, { next, updateResponse });
  };
}

/** At the deadline, nothing was sent. If the database has claimed the X-Request-ID nevertheless, the claim is released. */
async function claimBeforeDeadline(
  dependencies: IdempotencyDependencies,
  identity: RequestIdentity,
  request: PisRequest,
): Promise<ClaimResult> {
  const claimed = claim(dependencies, identity, request);
  try {
    return await dependencies.services.beforeDeadline(claimed, request.deadlineAtMs);
  } catch (thrown) {
    void claimed.then(releaseClaim).catch(() => {}); // tried again until the database accepts it
    throw thrown;
  }
}

async function releaseClaim(result: ClaimResult): Promise<void> {
  if (result.kind === 'claimed') await result.attempt.release();
}

async function claim(
  dependencies: IdempotencyDependencies,
  identity: RequestIdentity,
  request: PisRequest,
): Promise<ClaimResult> {
  const { services } = dependencies;
  const { table, running } = services;
  const own = newClaim(services.instanceId, identity, request);
  running.add(own.attempt); // before it can be in the database
  let isClaimed = false;
  try {
    const outcome = await table.claim(own);
    if (outcome.kind === 'refused') throw outcome.cause;
    if (outcome.kind === 'exists') return resultOf(dependencies, request, identity, outcome.row);
    if (await services.recentWrites.restore(own)) return { kind: 'running' };
    isClaimed = true;
    request.activeEnvironment = outcome.activeEnvironment;
    const claimed = { claim: own, followsReleased: outcome.followsReleased };
    return { kind: 'claimed', attempt: new Attempt(services, dependencies, request, claimed) };
  } finally {
    // If the answer of the database was lost, it may be claimed nevertheless: then this instance recovers it, because it is not running.
    if (!isClaimed) running.delete(own.attempt);
  }
}

function newClaim(instance: string, { key, fingerprints }: RequestIdentity, request: PisRequest): NewClaim {
  return {
    ...key,
    attempt: randomUUID(),
    instance,
    path: request.operation.path,
    fingerprintKey: fingerprints.key,
    fingerprintRequest: fingerprints.request,
    fingerprintContent: fingerprints.content,
    isFirstFactor: isFirstFactor(request),
  };
}

/**
 * Whether a request updates an authorisation with a password or the choice of a method, not with a TAN or a confirmation. A body that
 * the gateway cannot read may contain a TAN.
 */
function isFirstFactor({ operation, body }: PisRequest): boolean {
  if (operation.name !== 'updatePsuData') return false;
  const json = jsonIn(body);
  const has = (name: string) => memberOf(json, name) !== undefined;
  return (
    (has('psuData') || has('authenticationMethodId')) &&
    !has('scaAuthenticationData') &&
    !has('confirmationCode')
  );
}

/** @returns `undefined` if the body is no JSON; the parser's error quotes the body, and goes nowhere */
function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** A doubt is reported even for a different request: the advice to use a new X-Request-ID could cause a second payment. */
function resultOf(
  { services }: IdempotencyDependencies,
  request: PisRequest,
  identity: RequestIdentity,
  row: LedgerRow,
): ClaimResult {
  const { step, why } = row;
  if (step === 'claimed' || step === 'sending' || step === 'released') return { kind: 'running' };
  const environment = identitiesOf(request).environmentNameOf(String(row.environment));
  const difference = identity.differenceFrom({
    key: textOf(row.fingerprint_key),
    request: String(row.fingerprint_request),
    content: String(row.fingerprint_content),
  });
  // Without the key, the answer might belong to another request, and the advice to use a new X-Request-ID might pay twice.
  if (step === 'in-doubt' || difference === 'unknown' || (why !== null && difference !== 'none'))
    return { kind: 'in-doubt', environment };
  if (difference !== 'none') return { kind: 'another-request', difference };
  if (step === 'happened') return { kind: 'happened', row };
  const response = services.responses.read(row, environment);
  return response ? { kind: 'answered', response } : { kind: 'in-doubt', environment };
}

/** The result of a claim when the quota has admitted the request. If the quota is used up, releases the claim. */
async function claimWhenAdmitted(
  { services }: IdempotencyDependencies,
  request: PisRequest,
  claimed: Promise<ClaimResult>,
): Promise<ClaimResult> {
  const { quota } = request;
  if (!quota) return claimed;
  request.quota = undefined;
  claimed.catch(() => {}); // awaited after the quota
  try {
    await quota;
  } catch (refusal) {
    const released = claimed.then(releaseClaim);
    await services.beforeDeadline(released, request.deadlineAtMs).catch(() => {});
    throw refusal;
  }
  return claimed;
}

/** Waits for the first request with this X-Request-ID; claims it if the first one is released. */
async function waitForFirst(
  dependencies: IdempotencyDependencies,
  request: PisRequest,
  identity: RequestIdentity,
  startedAtMs: number,
): Promise<ClaimResult> {
  const { services, waitMs } = dependencies;
  const waitUntilMs = Math.min(startedAtMs + waitMs, request.deadlineAtMs);
  request.permit?.release(); // others may use it in the meantime
  let result: ClaimResult = { kind: 'running' };
  while (result.kind === 'running' && performance.now() < waitUntilMs) {
    await services.nextChange(identity.key);
    result = await look(dependencies, identity, request);
  }
  return result;
}

/** A first request exists, even if it cannot be read now. */
async function look(
  dependencies: IdempotencyDependencies,
  identity: RequestIdentity,
  request: PisRequest,
): Promise<ClaimResult> {
  const { table, beforeDeadline } = dependencies.services;
  try {
    const row = await beforeDeadline(table.read(identity.key), request.deadlineAtMs);
    if (row && row.step !== 'released') return resultOf(dependencies, request, identity, row);
    return await claimBeforeDeadline(dependencies, identity, request);
  } catch (thrown) {
    if (hasNoEffect(thrown)) return { kind: 'running' };
    throw thrown;
  }
}

interface Way {
  readonly next: Handler<PisRequest>;
  readonly updateResponse: UpdateResponse;
}

function respond(
  { publicUrl }: IdempotencyDependencies,
  request: PisRequest,
  result: ClaimResult,
  { next, updateResponse }: Way,
): PisResponse | Promise<PisResponse> {
  switch (result.kind) {
    case 'claimed':
      return result.attempt.run(request, next);
    case 'answered':
      return updateResponse(replay(result.response, request.client));
    case 'another-request':
      throw mismatchError(result.difference);
    case 'happened': {
      const { environment, path, operation, payment_id: created, payment } = result.row;
      const paymentId = created ?? (payment || null);
      const happened = {
        operation: String(operation),
        path: String(path),
        paymentId: paymentId === null ? undefined : String(paymentId),
      };
      throw happenedError(happened, identitiesOf(request).environmentNameOf(String(environment)), publicUrl);
    }
    case 'in-doubt':
      throw inDoubtError(result.environment);
    case 'running':
      throw inFlightError();
  }
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
      ? 'X-Request-ID was already used for a request with another path or body; nothing was sent. If both are the same payment, do not ' +
        'initiate it again: the first request may have made it. A new payment needs a new X-Request-ID.'
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

interface Happened {
  readonly operation: string;
  /** The gateway's own path. */
  readonly path: string;
  readonly paymentId: string | undefined;
}

function happenedError(happened: Happened, environment: string, publicUrl: string): GatewayError {
  const { operation, paymentId } = happened;
  const payment =
    paymentId === undefined
      ? undefined
      : { id: paymentId, url: `${publicUrl}${paymentPathOf(happened, paymentId)}` };
  const text =
    operation === 'cancelPayment'
      ? 'The payment is cancelled; the response to the first request with this X-Request-ID was lost.'
      : 'The bank has executed the first request with this X-Request-ID; the response was lost.';
  return new GatewayError('DUPLICATE_IN_DOUBT', text, { environment, executed: { payment } });
}

function paymentPathOf({ path, operation }: Happened, paymentId: string): string {
  if (operation === 'initiatePayment') return `${path}/${idToSegment(paymentId)}`;
  if (operation === 'cancelPayment' || operation === 'updatePayment') return path;
  // Without the segments after the payment: the type of the authorisation, and its id.
  return path.replace(operation === 'updatePsuData' ? /\/[^/]+\/[^/]+$/ : /\/[^/]+$/, '');
}
