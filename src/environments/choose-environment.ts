/**
 * STAGE 4. Chooses the environment of a request, and records the owner of a new payment from the bank's response.
 *
 * This stage sets `request.environment`, which all later responses and errors name, and the deadline of that environment. A
 * switch during the request changes neither.
 */

import type { Lane, Operation } from '../pis/operations.ts';
import { queryProblem } from '../pis/query.ts';
import { authorisationSegment, mergeBankIds, noBankIds } from '../request/bank-ids.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { Environment, PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import type { EnvironmentReason } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { whenAdmitted } from '../request/when-admitted.ts';
import type { BeforeDeadline } from '../store/before-deadline.ts';
import type { ActiveEnvironment } from './active-environment.ts';
import type { AffinityStore, PaymentAffinity, PaymentUse } from './affinity.ts';
import { type AssignPaymentDependencies, assignPayment, isPermanent } from './assign-payment.ts';
import {
  notConfiguredError,
  paymentUnknownError,
  requestedOrActive,
  routeKnownPayment,
  routeNewPayment,
  routeUnknownPayment,
  routingReason,
} from './routing-rules.ts';

export interface ChooseEnvironmentDependencies extends AssignPaymentDependencies {
  /** By name. The deadlines are counted from the arrival of a request, in milliseconds. */
  readonly environments: ReadonlyMap<
    string,
    Environment & { readonly deadlines: Readonly<Record<Lane, number>> }
  >;
  /** The number of configured tenants. */
  readonly tenants: number;
  readonly active: Pick<ActiveEnvironment, 'known' | 'read'>;
  readonly beforeDeadline: BeforeDeadline;
  readonly affinity: Pick<AffinityStore, 'environmentsOf' | 'lastSeen' | 'cacheStored' | 'addBankIds'>;
  /**
   * Starts reading the cached status of the request's payment.
   *
   * @param environmentId the id of the environment that probably created the payment
   * @returns the value of `request.prefetched`, which stage 5 uses; `undefined` if nothing is read
   */
  readonly prefetchStatus: (request: PisRequest, environmentId: string) => object | undefined;
  /** Requests a permit to call the environment that the request probably goes to, as `request.permit`. */
  readonly prefetchPermit: (request: PisRequest, environment: string) => void;
}

/**
 * When stage 3 claims the `X-Request-ID`, requests a permit to call the bank. The claim and the request for the permit share the time of
 * a round trip.
 */
export function prefetchWithClaim(dependencies: ChooseEnvironmentDependencies): Stage<PisRequest> {
  const { active, prefetchPermit } = dependencies;
  // All requests share this function. With a literal for each of them, V8 would keep the request until a full collection (ADR 62).
  const onClaim = (request: PisRequest): void => {
    const expected = expectedEnvironment(request);
    if (expected !== undefined) prefetchPermit(request, expected);
  };
  return (request, next) => {
    request.onClaim = onClaim;
    return next(request);
  };

  function expectedEnvironment(request: PisRequest): string | undefined {
    if (request.operation.paymentId !== undefined) return undefined; // stage 4 finds it
    return requestedOrActive(request, configuredActive(request, active.known()?.environment));
  }
}

/**
 * @throws GatewayError ENVIRONMENT_FORBIDDEN, ENVIRONMENT_MISMATCH, PAYMENT_UNKNOWN, PATH_MALFORMED if the environment does not accept
 *   the query, or STATE_UNAVAILABLE if the environment cannot be determined
 */
export function chooseEnvironment(
  dependencies: ChooseEnvironmentDependencies,
): Stage<PisRequest, RoutedRequest> {
  return (request, next) => {
    const { paymentId } = request.operation;
    try {
      return paymentId === undefined
        ? routeInitiation(dependencies, request, next)
        : routeByAffinity(dependencies, request, paymentId, next);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  };
}

interface RoutingDecision {
  readonly name: string;
  readonly why: EnvironmentReason;
  /** What is recorded of the payment id; missing if nothing is, or for a new payment. */
  readonly affinities?: readonly PaymentAffinity[];
  /** The object that `prefetchStatus` returned. */
  readonly prefetched?: object | undefined;
}

/** A status read may be answered from the cache: stage 5 decides whether it needs a permit. */
const needsPermit = ({ operation }: PisRequest) => !operation.readsStatus;

/** Routes a new payment: to the requested environment, the client's only one, or the active one. */
function routeInitiation(
  dependencies: ChooseEnvironmentDependencies,
  request: PisRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  return activeAtClaim(dependencies.active, request).then((environment) => {
    const name = routeNewPayment(request, configuredActive(request, environment));
    const why = dependencies.environments.size === 1 ? 'only-one' : routingReason(request);
    return passOn(dependencies, request, { name, why }, next);
  });
}

/**
 * Routes a request on a payment to the environment that created it.
 *
 * While the database looks for the payment, the cached status is read or a permit is requested, for the environment where this instance
 * last saw the payment. They are used only if the affinity names the same environment.
 */
function routeByAffinity(
  dependencies: ChooseEnvironmentDependencies,
  request: PisRequest,
  paymentId: string,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const { affinity, beforeDeadline, prefetchStatus, prefetchPermit } = dependencies;
  const { tenantIdOf, environmentWith } = identitiesOf(request);
  const tenantId = tenantIdOf(request.client.tenant);
  const stored = affinity.environmentsOf(paymentId, tenantId, useOf(request));
  const found = beforeDeadline(stored, request.deadlineAtMs);
  const lastSeen = affinity.lastSeen(paymentId).find(({ tenant }) => tenant === tenantId);
  const prefetched = lastSeen && prefetchStatus(request, lastSeen.environment);
  const expected = lastSeen && environmentWith(lastSeen.environment);
  if (expected !== undefined && needsPermit(request)) prefetchPermit(request, expected);
  if (request.quota) found.catch(() => {}); // awaited after the quota
  return whenAdmitted(request, () => found).then((affinities) => {
    if (affinities.length === 0) return routeUnrecorded(dependencies, request, next);
    const name = routeKnownPayment(request, affinities);
    return passOn(dependencies, request, { name, why: 'affinity', affinities, prefetched }, next);
  });
}

/** An id that only the bank can have issued may have been recorded a moment ago. */
function useOf({ operation: { lane, readsStatus, unusualIds } }: PisRequest): PaymentUse {
  if (lane === 'write') return 'write';
  return readsStatus && unusualIds.length === 0 ? 'status' : 'read';
}

/**
 * A payment without a record may be one from before the gateway. With several tenants, including removed ones, nothing is sent: its owner
 * must be known.
 */
async function routeUnrecorded(
  dependencies: ChooseEnvironmentDependencies,
  request: PisRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const { environments, tenants, active, beforeDeadline } = dependencies;
  const identities = identitiesOf(request);
  if (tenants > 1 || identities.hasOtherTenants || request.operation.unusualIds.length > 0)
    throw paymentUnknownError();
  const current = await beforeDeadline(identities.renew(), request.deadlineAtMs); // another instance may have added some
  if (current.hasOtherTenants) throw paymentUnknownError();
  const [onlyEnvironment = ''] = environments.keys();
  if (environments.size === 1 && !current.hasOtherEnvironments)
    return passOn(dependencies, request, { name: onlyEnvironment, why: 'only-one' }, next);
  const name = routeUnknownPayment(request, configuredActive(request, active.known()?.environment));
  return passOn(dependencies, request, { name, why: routingReason(request) }, next);
}

/** Passes the request on to the chosen environment. For an existing payment, that must have the address at which the payment is. */
function passOn(
  dependencies: ChooseEnvironmentDependencies,
  request: PisRequest,
  decision: RoutingDecision,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const { paymentId } = request.operation;
  const addressChecked =
    paymentId === undefined ? undefined : identitiesOf(request).checkAddress(decision.name);
  if (addressChecked)
    return dependencies
      .beforeDeadline(addressChecked, request.deadlineAtMs)
      .then(() => sendTo(dependencies, request, decision, next));
  return sendTo(dependencies, request, decision, next);
}

/** @throws notConfiguredError */
function sendTo(
  dependencies: ChooseEnvironmentDependencies,
  request: PisRequest,
  { name, why, affinities = [], prefetched }: RoutingDecision,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const environment = dependencies.environments.get(name);
  if (!environment) throw notConfiguredError();
  requireAllowedQuery(request, environment);
  const known = ownAffinity(request, name, affinities);
  requireIssuedIds(request, known);
  request.bankIds = known?.bankIds;
  request.deadlineAtMs = request.arrivedAtMs + environment.deadlines[request.operation.lane];
  request.recordEvent?.({ what: 'environment', environment: name, why });
  const response = next(Object.assign(request, { environment, prefetched }));
  if (!request.operation.createsPayment)
    return response.then((answer) => recordIdsBeforeResponse(dependencies, request, answer));
  return response.then((created) => {
    assignPayment(dependencies, request, created);
    return created;
  });
}

/** @throws GatewayError PATH_MALFORMED if the environment does not accept the query */
function requireAllowedQuery({ operation }: PisRequest, { name, queryParameters }: Environment): void {
  if (operation.search === '') return;
  const problem = queryProblem(operation.search, queryParameters);
  if (problem === undefined) return;
  const text = `The request target is not valid in the environment ${name}: ${problem}.`;
  throw new GatewayError('PATH_MALFORMED', text, { environment: name });
}

/** What is recorded of the payment for this environment and tenant. @param affinities all of the payment id */
function ownAffinity(
  request: PisRequest,
  environment: string,
  affinities: readonly PaymentAffinity[],
): PaymentAffinity | undefined {
  if (affinities.length === 0) return undefined;
  const { tenantIdOf, environmentIdOf } = identitiesOf(request);
  const [tenantId, environmentId] = [tenantIdOf(request.client.tenant), environmentIdOf(environment)];
  return affinities.find((one) => one.tenant === tenantId && one.environment === environmentId);
}

/** @throws GatewayError PAYMENT_UNKNOWN if an id of the path is valid only if the bank has issued it, and it has not */
function requireIssuedIds({ operation }: PisRequest, known: PaymentAffinity | undefined): void {
  const { unusualIds, authorisationId = '' } = operation;
  const isIssued = (id: Operation['unusualIds'][number]) =>
    id === 'payment'
      ? known !== undefined
      : authorisationSegment(authorisationId, known?.bankIds ?? noBankIds) !== undefined;
  if (!unusualIds.every(isIssued)) throw paymentUnknownError();
}

/** Records ids in the bank's answer that the gateway accepts only if they are recorded: the TPP may use them at once. */
function recordIdsBeforeResponse(
  { affinity, beforeDeadline, log }: ChooseEnvironmentDependencies,
  request: PisRequest,
  response: PisResponse,
): PisResponse | Promise<PisResponse> {
  const { operation, bankIds: known, requestId } = request;
  const { bankIds } = response;
  if (bankIds === undefined || operation.paymentId === undefined) return response;
  if (mergeBankIds(known, bankIds) === known) return response;
  const environment = identitiesOf(request).environmentIdOf(response.environment);
  const { paymentId } = operation;
  const added = { paymentId, environment, tenant: currentTenantId(request), bankIds };
  const onFailure = (thrown: unknown) => {
    const what = 'the ids in an answer of the bank are not recorded: links with them are refused';
    log('error', what, {
      requestId,
      environment: response.environment,
      why: asGatewayError(thrown).message,
    });
  };
  const stored = affinity.addBankIds({ ...added, isPermanent: isPermanent(operation) });
  return beforeDeadline(stored, request.deadlineAtMs)
    .catch(onFailure)
    .then(() => response);
}

/** The configured environment that is active, also if it has been renamed since. @param active its name in the database */
function configuredActive(request: PisRequest, active: string | undefined): string | undefined {
  return active && identitiesOf(request).environmentNamed(active);
}

/** The environment that was active at the claim; reads it if the database was new. */
const activeAtClaim = async (
  active: Pick<ActiveEnvironment, 'read'>,
  { activeEnvironment }: PisRequest,
): Promise<string> => activeEnvironment ?? (await active.read()).environment;
