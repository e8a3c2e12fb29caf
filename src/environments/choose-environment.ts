/**
 * STAGE 3. Chooses the environment of a request, and records the affinity of a new payment from the bank's response.
 *
 * All responses and errors from here on name the environment. A switch during the request does not affect it.
 */

import { asGatewayError, GatewayError, stateUnavailable, withEnvironment } from '../request/errors.ts';
import type { Environment, PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import type { EnvironmentReason } from '../request/request-events.ts';
import type { Stage } from '../request/stage.ts';
import type { Log } from '../telemetry/log.ts';
import type { ActiveEnvironment, ActiveRecord } from './active-environment.ts';
import type { AffinityStore } from './affinity.ts';
import { paymentIdOf } from './payment-id.ts';
import {
  paymentUnknownError,
  routeKnownPayment,
  routeNewPayment,
  routeUnknownPayment,
  routingReason,
} from './routing-rules.ts';

export interface ChooseEnvironmentDependencies {
  readonly environments: ReadonlyMap<string, Environment>;
  /** The number of tenants. With a single one, a payment without a record can only belong to that tenant. */
  readonly tenants: number;
  readonly active: ActiveEnvironment;
  readonly affinity: AffinityStore;
  /** The problem of the shared state, if there is one: it may then be unable to store the affinity of a new payment. */
  readonly stateProblem: () => string | undefined;
  /** Whether requests continue while the shared state is unavailable. */
  readonly ifStateFails: 'refuse' | 'allow';
  readonly log: Log;
}

/**
 * @throws GatewayError ENVIRONMENT_FORBIDDEN, ENVIRONMENT_MISMATCH, PAYMENT_UNKNOWN, or STATE_UNAVAILABLE if the
 *   environment cannot be determined
 */
export function chooseEnvironment(
  dependencies: ChooseEnvironmentDependencies,
): Stage<PisRequest, RoutedRequest> {
  const { environments, affinity, log } = dependencies;

  return async (request, next) => {
    const { name, why } = await decideEnvironment(dependencies, request);
    const environment = environments.get(name);
    if (!environment) throw notConfiguredError();
    request.recordEvent?.({ what: 'environment', environment: name, why });
    try {
      const response = await next({ ...request, environment });
      if (request.operation.createsPayment && (response.status === 200 || response.status === 201)) {
        await recordAffinity(request, response);
      }
      return response;
    } catch (thrown) {
      throw withEnvironment(asGatewayError(thrown), environment.name);
    }
  };

  async function recordAffinity({ operation, client }: PisRequest, response: PisResponse): Promise<void> {
    const paymentId = await paymentIdOf(response);
    if (paymentId === undefined) {
      log('warn', 'the bank accepted a payment without naming a paymentId', {
        environment: response.environment,
      });
      return;
    }
    const createdBy = { environment: response.environment, tenant: client.tenant };
    const retention = operation.paymentService === 'periodic-payments' ? 'permanent' : 'expiring';
    await affinity.recordEnvironment(paymentId, createdBy, retention);
  }
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
  if (environments.size === 1 && tenants === 1) {
    const [only = ''] = environments.keys();
    return { name: only, why: 'only-one' };
  }

  const { paymentId } = request.operation;
  if (paymentId === undefined) {
    const record = await withStateFallback(dependencies, () => readActive(dependencies), active.known());
    const current = record?.environment ?? '';
    const name = routeNewPayment(request, environments.has(current) ? current : undefined);
    return { name, why: routingReason(request) };
  }
  const read = () => affinity.environmentsOf(paymentId, request.client.tenant);
  // With several tenants the owner of the payment must be known, so there is no fallback.
  const affinities = tenants > 1 ? await read() : await withStateFallback(dependencies, read, []);
  if (affinities.length > 0) return { name: routeKnownPayment(request, affinities), why: 'home' };
  if (tenants > 1) throw paymentUnknownError();
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

function notConfiguredError(): GatewayError {
  const text =
    'The environment that this request belongs to is not configured on this instance; ask the operators.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}
