/**
 * STAGE 3. Decides which side of the bank a request goes to, and learns on the way back where a new payment was born.
 *
 * From here on the environment is known, in answers and errors alike; a switch meanwhile does not concern this request.
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

/** From what the choice is made. */
export interface ChooseEnvironmentDependencies {
  readonly environments: ReadonlyMap<string, Environment>;
  /** How many tenants share this gateway: with one alone, a payment that nobody remembers can only be theirs. */
  readonly tenants: number;
  readonly active: ActiveEnvironment;
  readonly affinity: AffinityStore;
  /** What is wrong with the shared state, if anything: then it cannot be trusted to remember a new payment. */
  readonly stateProblem: () => string | undefined;
  /** Whether requests may go on while the shared state is out of reach. */
  readonly ifStateFails: 'refuse' | 'allow';
  readonly log: Log;
}

/**
 * @throws GatewayError ENVIRONMENT_FORBIDDEN, ENVIRONMENT_MISMATCH, PAYMENT_UNKNOWN, or STATE_UNAVAILABLE if where the
 *   request belongs cannot be found out
 */
export function chooseEnvironment(facts: ChooseEnvironmentDependencies): Stage<PisRequest, RoutedRequest> {
  const { environments, affinity, log } = facts;

  return async (request, next) => {
    const { name, why } = await decideEnvironment(facts, request);
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
    const home = { environment: response.environment, tenant: client.tenant };
    await affinity.recordEnvironment(
      paymentId,
      home,
      operation.paymentService === 'periodic-payments' ? 'endless' : 'remembered',
    );
  }
}

interface RoutingDecision {
  readonly name: string;
  readonly why: EnvironmentReason;
}

async function decideEnvironment(
  facts: ChooseEnvironmentDependencies,
  request: PisRequest,
): Promise<RoutingDecision> {
  const { environments, tenants, active, affinity } = facts;
  if (environments.size === 1 && tenants === 1) {
    const [only = ''] = environments.keys();
    return { name: only, why: 'only-one' };
  }

  const { paymentId } = request.operation;
  if (paymentId === undefined) {
    const record = await withStateFallback(facts, () => readActiveIfStateIsUsable(facts), active.known());
    const current = record?.environment ?? '';
    const name = routeNewPayment(request, environments.has(current) ? current : undefined);
    return { name, why: routingReason(request) };
  }
  const ask = () => affinity.environmentsOf(paymentId, request.client.tenant);
  // Among several tenants nobody may be taken at his word: whose payment it is must be known.
  const homes = tenants > 1 ? await ask() : await withStateFallback(facts, ask, []);
  if (homes.length > 0) return { name: routeKnownPayment(request, homes), why: 'home' };
  if (tenants > 1) throw paymentUnknownError();
  const name = routeUnknownPayment(request, active.known()?.environment);
  return { name, why: routingReason(request) };
}

/** The active environment, read anew, if the state could also be told where a payment is born. */
async function readActiveIfStateIsUsable({
  active,
  stateProblem,
}: ChooseEnvironmentDependencies): Promise<ActiveRecord> {
  if (stateProblem() === undefined) return active.read();
  throw stateUnavailable();
}

/** Asks the shared state; where the configuration allows to go on without it, says so loudly and takes `otherwise`. */
async function withStateFallback<Value>(
  { ifStateFails, log }: ChooseEnvironmentDependencies,
  ask: () => Promise<Value>,
  otherwise: Value,
): Promise<Value> {
  try {
    return await ask();
  } catch (thrown) {
    if (ifStateFails === 'refuse') throw thrown;
    log('warn', 'a request goes on without the shared state, as idempotency.ifStateFails allows', {
      why: asGatewayError(thrown).message,
    });
    return otherwise;
  }
}

function notConfiguredError(): GatewayError {
  const text =
    'The environment that this request belongs to is not configured on this instance; ask the operators.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}
