/**
 * Records the environment and the tenant of a new payment from the bank's response. Withholds the response if the payment
 * belongs, or may belong, to another tenant: a bank that recognises repeats by X-Request-ID does not distinguish tenants
 * (ADR 80).
 */

import { GatewayError } from '../request/errors.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { paymentIdOf } from '../request/payment-id.ts';
import type { Log } from '../telemetry/log.ts';
import type { AffinityStore } from './affinity.ts';
import type { PaymentAffinity } from './affinity-record.ts';

export interface AssignPaymentDependencies {
  readonly affinity: Pick<AffinityStore, 'recordEnvironment'>;
  /** Called for each withheld response. */
  readonly countWithheld: (environment: string) => void;
  readonly log: Log;
}

/**
 * For a successful response to an initiation.
 *
 * @throws GatewayError OUTCOME_UNKNOWN if the response must be withheld
 */
export async function assignPayment(
  dependencies: AssignPaymentDependencies,
  request: PisRequest,
  response: PisResponse,
): Promise<void> {
  const { log } = dependencies;
  const { environment, status } = response;
  const paymentId = await paymentIdOf(response);
  if (await mayBelongToOther(request, paymentId)) throw withheldError(dependencies, request, environment);
  if (status > 201) return; // the standard does not use other codes for a new payment
  if (paymentId === undefined)
    return log('warn', 'the bank accepted a payment without naming a paymentId', { environment });
  if (!(await recordOwner(dependencies, request, environment, paymentId)))
    throw withheldError(dependencies, request, environment);
}

async function mayBelongToOther(
  { writeAheadMark }: PisRequest,
  paymentId: string | undefined,
): Promise<boolean> {
  if (!writeAheadMark) return false; // `ifStateFails: allow` let the request continue
  try {
    return await writeAheadMark.mayBelongToOther(paymentId);
  } catch {
    return true; // another tenant has sent the same X-Request-ID, and its entry cannot be read
  }
}

/** @returns false if the payment belongs to another tenant */
async function recordOwner(
  { affinity }: AssignPaymentDependencies,
  request: PisRequest,
  environment: string,
  paymentId: string,
): Promise<boolean> {
  const { operation, client } = request;
  const { tenantIdsOf, environmentIdOf, environmentWith } = identitiesOf(request);
  const ownTenants = tenantIdsOf(client.tenant);
  const owner = { environment: environmentIdOf(environment), tenant: currentTenantId(request) };
  const retention = operation.paymentService === 'periodic-payments' ? 'permanent' : 'expiring';
  const isForeign = (recorded: PaymentAffinity) =>
    environmentWith(recorded.environment) === environment && !ownTenants.includes(recorded.tenant);
  return affinity.recordEnvironment(paymentId, owner, retention, isForeign);
}

/** Counts and logs the withheld response. */
function withheldError(
  { countWithheld, log }: AssignPaymentDependencies,
  { requestId, client }: PisRequest,
  environment: string,
): GatewayError {
  countWithheld(environment);
  const what =
    'the bank named a payment that belongs, or may belong, to another tenant; its response is withheld';
  log('error', what, { requestId, tenant: client.tenant, environment });
  const text = 'The response of the bank cannot be assigned to this request.';
  return new GatewayError('OUTCOME_UNKNOWN', text);
}
