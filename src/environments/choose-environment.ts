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
  readonly active: ActiveEnvironment;
  readonly affinity: AffinityStore;
  /** The problem of the shared state, if there is one: it may then be unable to store the affinity of a new payment. */
  readonly stateProblem: () => string | undefined;
  /** Whether requests continue while the shared state is unavailable. */
  readonly ifStateFails: 'refuse' | 'allow';
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
  const { tenantIdsOf, otherTenants, hasOtherEnvironments } = identitiesOf(request);
  const { paymentId } = request.operation;
  const isAlone = otherTenants === 'none' && !hasOtherEnvironments;
  if (environments.size === 1 && tenants === 1 && (paymentId === undefined || isAlone)) {
    const [only = ''] = environments.keys();
    return { name: only, why: 'only-one' };
  }

  if (paymentId === undefined) {
    const record = await withStateFallback(dependencies, () => readActive(dependencies), active.known());
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

/** Reads the active environment. Fails if the state could not store the affinity of the new payment. */
async function readActive({ active, stateProblem }: ChooseEnvironmentDependencies): Promise<ActiveRecord> {
  if (stateProblem() === undefined) return active.read();
  throw stateUnavailable();
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
