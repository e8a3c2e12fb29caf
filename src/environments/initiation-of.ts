/** Finds the initiation of a request's payment, for the rule that all requests name the same service and product. */

import { cacheByName } from '../pis/name-cache.ts';
import { identitiesOf } from '../request/identities.ts';
import type { PisRequest } from '../request/messages.ts';
import type { AffinityStore } from './affinity.ts';

export interface Initiation {
  readonly paymentService: string;
  readonly paymentProduct: string;
}

/**
 * Reads nothing: stage 4 has just read the record of the payment.
 *
 * @returns `undefined` for a new payment, and if service and product of the initiation are unknown or ambiguous
 */
export type InitiationOf = (request: PisRequest) => Initiation | undefined;

export function createInitiationOf(affinity: Pick<AffinityStore, 'lastSeen'>): InitiationOf {
  return (request) => {
    const { operation, environment, client } = request;
    if (operation.paymentId === undefined || !environment) return undefined;
    const { tenantIdOf, environmentIdOf } = identitiesOf(request);
    const [tenantId, environmentId] = [tenantIdOf(client.tenant), environmentIdOf(environment.name)];
    const known = affinity
      .lastSeen(operation.paymentId)
      .find((one) => one.environment === environmentId && one.tenant === tenantId);
    return known?.initiatedAs === undefined ? undefined : parseInitiation(known.initiatedAs);
  };
}

/** The form in payment records: see `productOf`. */
const parseInitiation = cacheByName((text): Initiation => {
  const [paymentService = '', paymentProduct = ''] = text.split('/');
  return { paymentService, paymentProduct };
});
