/**
 * Records the environment and the tenant of a new payment from the bank's response. Withholds the response if the payment
 * belongs, or may belong, to another tenant: a bank that recognises repeats by X-Request-ID does not distinguish tenants
 * (ADR 80).
 */

import { isId, type Operation } from '../pis/operations.ts';
import { GatewayError } from '../request/errors.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { hashPaymentId } from '../request/payment-hash.ts';
import type { Log } from '../telemetry/log.ts';
import type { AffinityStore } from './affinity.ts';
import type { AffinityRetention, PaymentAffinity } from './affinity-record.ts';
import { serializeInitiation } from './initiation-of.ts';

export interface AssignPaymentDependencies {
  readonly affinity: Pick<AffinityStore, 'recordEnvironment'>;
  /** Called for each withheld response. */
  readonly countWithheld: (environment: string) => void;
  readonly log: Log;
}

/**
 * Assigns a new payment to the environment and the tenant of its request.
 *
 * @param response of the bank to an initiation
 * @returns `undefined` if nothing remains to be awaited
 * @throws GatewayError OUTCOME_UNKNOWN if the response must be withheld
 */
export function assignPayment(
  dependencies: AssignPaymentDependencies,
  request: PisRequest,
  response: PisResponse,
): Promise<void> | undefined {
  const { meaning } = response;
  const paymentId = meaning?.paymentId;
  // The body of an answer in doubt may show the payment of another tenant, although it names none.
  if (paymentId === undefined && meaning?.outcome !== 'in-doubt') return undefined;
  // There is no mark if the request continued without a claim (`ifStateFails: allow`).
  const mayBelongToOther = request.writeAheadMark?.mayBelongToOther(paymentId) ?? false;
  if (mayBelongToOther === false) return recordOwner(dependencies, request, response, paymentId);
  return mayBelongToOther
    .catch(() => true) // another tenant has sent the same X-Request-ID, and its entry cannot be read
    .then((isWithheld) => {
      if (isWithheld) throw withheldError(dependencies, request, response.environment);
      return recordOwner(dependencies, request, response, paymentId);
    });
}

/** Records the owner of the payment; in one step with the response, unless the payment already has an owner (ADR 82). */
function recordOwner(
  dependencies: AssignPaymentDependencies,
  request: PisRequest,
  response: PisResponse,
  paymentId: string | undefined,
): Promise<void> | undefined {
  if (paymentId === undefined) return undefined;
  const { affinity, log } = dependencies;
  const { environment } = response;
  if (!isId(paymentId)) {
    const what =
      'the bank has issued a paymentId that no path can contain: the payment cannot be used through the gateway';
    log('warn', what, { requestId: request.requestId, environment });
  }
  const { operation, client, writeAheadMark } = request;
  const [high, low] = hashPaymentId(paymentId).words;
  request.recordEvent?.({ what: 'payment', high, low });
  const { tenantIdsOf, environmentIdOf, environmentWith } = identitiesOf(request);
  const ownTenants = tenantIdsOf(client.tenant);
  const owner = {
    environment: environmentIdOf(environment),
    tenant: currentTenantId(request),
    initiatedAs: serializeInitiation(operation),
    ...(response.bankIds && { bankIds: response.bankIds }),
  };
  const isForeign = (recorded: PaymentAffinity) =>
    environmentWith(recorded.environment) === environment && !ownTenants.includes(recorded.tenant);
  const onWrite = (isOwnerSet: Promise<boolean>) => writeAheadMark?.recordWithOwner(response, isOwnerSet);
  const onRecorded = (isOwn: boolean): undefined => {
    if (!isOwn) throw withheldError(dependencies, request, environment);
  };
  const isOwn = affinity.recordEnvironment(paymentId, owner, retentionOf(operation), isForeign, onWrite);
  return typeof isOwn === 'boolean' ? onRecorded(isOwn) : isOwn.then(onRecorded);
}

/** Standing orders may be used for years. */
export const retentionOf = ({ paymentService }: Operation): AffinityRetention =>
  paymentService === 'periodic-payments' ? 'permanent' : 'expiring';

/** Counts and logs the withheld response. */
function withheldError(
  { countWithheld, log }: AssignPaymentDependencies,
  { requestId, client }: PisRequest,
  environment: string,
): GatewayError {
  countWithheld(environment);
  const what =
    'response withheld: the bank returned a paymentId that belongs, or may belong, to another tenant';
  log('error', what, { requestId, tenant: client.tenant, environment });
  const text = "The bank's response does not belong to this request.";
  return new GatewayError('OUTCOME_UNKNOWN', text);
}
