/**
 * Finds the environment and the tenant of a new payment in the bank's response. The response is withheld if the payment
 * belongs, or may belong, to another tenant: a bank that recognises repeats by X-Request-ID does not distinguish tenants
 * (ADR 80).
 */

import { isId, type Operation, productOf } from '../pis/operations.ts';
import { GatewayError } from '../request/errors.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { SeenStatus } from '../store/payment-history.ts';
import type { Log } from '../telemetry/log.ts';
import type { AffinityStore } from './affinity.ts';

export interface AssignPaymentDependencies {
  readonly affinity: Pick<AffinityStore, 'cacheStored'>;
  /** Notes the status that the response shows. */
  readonly noteStatus: (seen: Omit<SeenStatus, 'status'>, response: PisResponse) => void;
  /** Called for each withheld response. */
  readonly countWithheld: (environment: string) => void;
  readonly log: Log;
}

/**
 * Tells the ledger what the bank's response to an initiation names, so that it stores the payment together with the response.
 *
 * @param response of the bank to an initiation
 */
export function assignPayment(
  dependencies: AssignPaymentDependencies,
  request: PisRequest,
  response: PisResponse,
): void {
  const { meaning, environment, bankIds } = response;
  const paymentId = meaning?.paymentId;
  const withheld = () => withheldError(dependencies, request.requestId, request.client.tenant, environment);
  if (paymentId === undefined) {
    // The body of an answer in doubt may show the payment of another tenant, although it names none.
    if (meaning?.outcome === 'in-doubt')
      request.writeAheadMark?.namePayment({ created: undefined, withheld });
    return;
  }
  const { affinity, noteStatus, log } = dependencies;
  if (!isId(paymentId)) {
    const what =
      'the bank has issued a paymentId that no path can contain: the payment cannot be used through the gateway';
    log('warn', what, { requestId: request.requestId, environment });
  }
  const { operation, requestId } = request;
  request.recordEvent?.({ what: 'payment', paymentId });
  const owner = {
    environment: identitiesOf(request).environmentIdOf(environment),
    tenant: currentTenantId(request),
    initiatedAs: productOf(operation),
    ...(bankIds && { bankIds }),
  };
  request.writeAheadMark?.namePayment({
    created: {
      paymentId,
      initiatedAs: owner.initiatedAs,
      bankIds: bankIds && JSON.stringify(bankIds),
      isPermanent: isPermanent(operation),
    },
    onStored() {
      affinity.cacheStored(paymentId, owner);
      noteStatus({ paymentId, environment: owner.environment, seenBy: 'initiation', requestId }, response);
    },
    withheld,
  });
}

/** Standing orders may be used for years. */
export const isPermanent = ({ paymentService }: Operation): boolean => paymentService === 'periodic-payments';

/** Counts and logs the withheld response. */
function withheldError(
  { countWithheld, log }: AssignPaymentDependencies,
  requestId: string,
  tenant: string,
  environment: string,
): GatewayError {
  countWithheld(environment);
  const what =
    'response withheld: the bank returned a paymentId that belongs, or may belong, to another tenant';
  log('error', what, { requestId, tenant, environment });
  const text = "The bank's response does not belong to this request.";
  return new GatewayError('OUTCOME_UNKNOWN', text);
}
