/**
 * STAGE 4. Chooses the environment of a request, and records the owner of a new payment from the bank's response.
 *
 * All responses and errors from here on name the environment. A switch during the request does not affect it.
 */

import { asGatewayError, stateUnavailable, withEnvironment } from '../request/errors.ts';
import { identitiesOf } from '../request/identities.ts';
import type { Environment, PisRequest, RoutedRequest } from '../request/messages.ts';
import type { EnvironmentReason } from '../request/request-events.ts';
import type { Stage } from '../request/stage.ts';
import type { ActiveEnvironment, ActiveRecord } from './active-environment.ts';
import type { AffinityStore } from './affinity.ts';
import { type AssignPaymentDependencies, assignPayment } from './assign-payment.ts';
import {
  notConfiguredError,
  paymentUnknownError,
  routeKnownPayment,
  routeNewPayment,
  routeUnknownPayment,
  routingReason,
} from './routing-rules.ts';

export interface ChooseEnvironmentDependencies extends AssignPaymentDependencies {
  readonly environments: ReadonlyMap<string, Environment>;
  /** The number of configured tenants. */
  readonly tenants: number;
  readonly active: Pick<ActiveEnvironment, 'known' | 'read'>;
  readonly affinity: AffinityStore;
  /** The problem of the shared state, if there is one: it may then be unable to store the affinity of a new payment. */
  readonly stateProblem: () => string | undefined;
  /** Whether requests continue while the shared state is unavailable. */
  readonly ifStateFails: 'refuse' | 'allow';
}

/**
 * Starts reading the active environment for a new payment. Comes before the stage that claims the `X-Request-ID`, so that both
 * commands share a round trip: a batch contains all commands of one tick.
 */
export function prefetchActiveEnvironment(dependencies: ChooseEnvironmentDependencies): Stage<PisRequest> {
  return (request, next) => {
    if (request.operation.paymentId !== undefined || hasOneChoice(dependencies, request))
      return next(request);
    const activeEnvironment = readActive(dependencies, request);
    activeEnvironment.catch(() => {}); // awaited in stage 4, which a repeat does not reach
    return next({ ...request, activeEnvironment });
  };
}

/**
 * @throws GatewayError ENVIRONMENT_FORBIDDEN, ENVIRONMENT_MISMATCH, PAYMENT_UNKNOWN, or STATE_UNAVAILABLE if the
 *   environment cannot be determined
 */
export function chooseEnvironment(
  dependencies: ChooseEnvironmentDependencies,
): Stage<PisRequest, RoutedRequest> {
  const { environments } = dependencies;

  return async (request, next) => {
    const { name, why } = await decideEnvironment(dependencies, request);
    const environment = environments.get(name);
    if (!environment) throw notConfiguredError();
    request.recordEvent?.({ what: 'environment', environment: name, why });
    try {
      const response = await next({ ...request, environment });
      if (request.operation.createsPayment && response.status < 300)
        await assignPayment(dependencies, request, response);
      return response;
    } catch (thrown) {
      throw withEnvironment(asGatewayError(thrown), environment.name);
    }
  };
}

interface RoutingDecision {
  readonly name: string;
  readonly why: EnvironmentReason;
}

async function decideEnvironment(
  dependencies: ChooseEnvironmentDependencies,
  request: PisRequest,
): Promise<RoutingDecision> {
  const { environments, tenants, active, affinity } = dependencies;
  const { tenantIdsOf, otherTenants } = identitiesOf(request);
  const { paymentId } = request.operation;
  if (hasOneChoice(dependencies, request)) {
    const [only = ''] = environments.keys();
    return { name: only, why: 'only-one' };
  }

  if (paymentId === undefined) {
    const read = () => readActive(dependencies, request);
    const record = await withStateFallback(dependencies, read, active.known());
    const current = record?.environment ?? '';
    const name = routeNewPayment(request, environments.has(current) ? current : undefined);
    return { name, why: routingReason(request) };
  }
  const read = () => affinity.environmentsOf(paymentId, ...tenantIdsOf(request.client.tenant));
  // With several tenants, removed ones included, the owner of the payment must be known: there is no fallback.
  const mustKnowOwner = tenants > 1 || otherTenants === 'recorded';
  const affinities = mustKnowOwner ? await read() : await withStateFallback(dependencies, read, []);
  if (affinities.length > 0) return { name: routeKnownPayment(request, affinities), why: 'home' };
  if (mustKnowOwner) throw paymentUnknownError();
  const name = routeUnknownPayment(request, active.known()?.environment);
  return { name, why: routingReason(request) };
}

/** Whether there is one environment and one tenant, now and ever before. A new payment does not depend on earlier ones. */
function hasOneChoice(
  { environments, tenants }: ChooseEnvironmentDependencies,
  request: PisRequest,
): boolean {
  if (environments.size > 1 || tenants > 1) return false;
  const { otherTenants, hasOtherEnvironments } = identitiesOf(request);
  return request.operation.paymentId === undefined || (otherTenants === 'none' && !hasOtherEnvironments);
}

/** Reads the active environment. Fails if the state could not store the affinity of the new payment. */
function readActive(
  { active, stateProblem }: ChooseEnvironmentDependencies,
  { activeEnvironment }: PisRequest,
): Promise<Pick<ActiveRecord, 'environment'>> {
  if (stateProblem() !== undefined) return Promise.reject(stateUnavailable());
  return activeEnvironment ?? active.read();
}

/** Reads the shared state. If that fails and `ifStateFails` is `allow`, logs a warning and returns the fallback. */
async function withStateFallback<Value>(
  { ifStateFails, log }: ChooseEnvironmentDependencies,
  read: () => Promise<Value>,
  fallback: Value,
): Promise<Value> {
  try {
    return await read();
  } catch (thrown) {
    if (ifStateFails === 'refuse') throw thrown;
    log('warn', 'a request goes on without the shared state, as idempotency.ifStateFails allows', {
      why: asGatewayError(thrown).message,
    });
    return fallback;
  }
}
