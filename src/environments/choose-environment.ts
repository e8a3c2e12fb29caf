/**
 * STAGE 3. Decides which side of the bank a request goes to, and learns on the way back where a new payment was born.
 *
 * From here on the environment is known, in answers and errors alike; a switch meanwhile does not concern this request.
 */

import type { Environment } from '../flow/environment.ts';
import { asGatewayError, GatewayError, inEnvironment, stateUnavailable } from '../flow/errors.ts';
import type { PisRequest, PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Stage } from '../flow/stage.ts';
import type { EnvironmentReason } from '../flow/trail.ts';
import type { Log } from '../telemetry/log.ts';
import type { ActiveEnvironment, ActiveRecord } from './active-environment.ts';
import type { Affinity } from './affinity.ts';
import { forForgottenPayment, forKnownPayment, forNewPayment, paymentUnknown, reasonFor } from './choice.ts';
import { paymentIdOf } from './payment-id.ts';

/** From what the choice is made. */
export interface EnvironmentFacts {
  readonly environments: ReadonlyMap<string, Environment>;
  /** How many tenants share this gateway: with one alone, a payment that nobody remembers can only be theirs. */
  readonly tenants: number;
  readonly active: ActiveEnvironment;
  readonly affinity: Affinity;
  /** What is wrong with the shared state, if anything: then it cannot be trusted to remember a new payment. */
  readonly stateTrouble: () => string | undefined;
  /** Whether requests may go on while the shared state is out of reach. */
  readonly ifStateFails: 'refuse' | 'allow';
  readonly log: Log;
}

/**
 * @throws GatewayError ENVIRONMENT_FORBIDDEN, ENVIRONMENT_MISMATCH, PAYMENT_UNKNOWN, or STATE_UNAVAILABLE if where the
 *   request belongs cannot be found out
 */
export function chooseEnvironment(facts: EnvironmentFacts): Stage<PisRequest, RoutedRequest> {
  const { environments, affinity, log } = facts;

  return async (request, next) => {
    const { name, why } = await choiceFor(facts, request);
    const environment = environments.get(name);
    if (!environment) throw notConfigured();
    request.note?.({ what: 'environment', environment: name, why });
    try {
      const response = await next({ ...request, environment });
      if (request.operation.createsPayment && (response.status === 200 || response.status === 201)) {
        await learn(request, response);
      }
      return response;
    } catch (thrown) {
      throw inEnvironment(asGatewayError(thrown), environment.name);
    }
  };

  async function learn({ operation, client }: PisRequest, response: PisResponse): Promise<void> {
    const paymentId = await paymentIdOf(response);
    if (paymentId === undefined) {
      log('warn', 'the bank accepted a payment without naming a paymentId', {
        environment: response.environment,
      });
      return;
    }
    const home = { environment: response.environment, tenant: client.tenant };
    await affinity.learn(
      paymentId,
      home,
      operation.paymentService === 'periodic-payments' ? 'endless' : 'remembered',
    );
  }
}

interface Choice {
  readonly name: string;
  readonly why: EnvironmentReason;
}

async function choiceFor(facts: EnvironmentFacts, request: PisRequest): Promise<Choice> {
  const { environments, tenants, active, affinity } = facts;
  if (environments.size === 1 && tenants === 1) {
    const [only = ''] = environments.keys();
    return { name: only, why: 'only-one' };
  }

  const { paymentId } = request.operation;
  if (paymentId === undefined) {
    const record = await unlessStateFails(facts, () => ableToRemember(facts), active.known());
    const current = record?.environment ?? '';
    const name = forNewPayment(request, environments.has(current) ? current : undefined);
    return { name, why: reasonFor(request) };
  }
  const ask = () => affinity.homesOf(paymentId, request.client.tenant);
  // Among several tenants nobody may be taken at his word: whose payment it is must be known.
  const homes = tenants > 1 ? await ask() : await unlessStateFails(facts, ask, []);
  if (homes.length > 0) return { name: forKnownPayment(request, homes), why: 'home' };
  if (tenants > 1) throw paymentUnknown();
  const name = forForgottenPayment(request, active.known()?.environment);
  return { name, why: reasonFor(request) };
}

/** The active environment, read anew, if the state could also be told where a payment is born. */
async function ableToRemember({ active, stateTrouble }: EnvironmentFacts): Promise<ActiveRecord> {
  if (stateTrouble() === undefined) return active.read();
  throw stateUnavailable();
}

/** Asks the shared state; where the configuration allows to go on without it, says so loudly and takes `otherwise`. */
async function unlessStateFails<Value>(
  { ifStateFails, log }: EnvironmentFacts,
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

function notConfigured(): GatewayError {
  const text =
    'The environment that this request belongs to is not configured on this instance; ask the operators.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}
