/** How the payment of a request was initiated, for the rule that a request names the same service and product. */

import { identitiesOf } from '../request/identities.ts';
import type { PisRequest } from '../request/messages.ts';
import type { AffinityStore } from './affinity.ts';

export interface Initiation {
  readonly paymentService: string;
  readonly paymentProduct: string;
}

/**
 * Asks nothing of the shared state: stage 4 has just read the record of the payment, unless there is only one environment and one
 * tenant. Then only payments that this instance has recorded are known.
 *
 * @returns `undefined` for a new payment, and if it is not known, or not certain, with what the payment was initiated
 */
export type InitiationOf = (request: PisRequest) => Initiation | undefined;

export function createInitiationOf(affinity: Pick<AffinityStore, 'lastSeen'>): InitiationOf {
  return (request) => {
    const { operation, environment, client } = request;
    if (operation.paymentId === undefined || !environment) return undefined;
    const { tenantIdsOf, environmentWith } = identitiesOf(request);
    const tenantIds = tenantIdsOf(client.tenant);
    let found: string | undefined;
    // Several, if banks or tenants were merged.
    for (const { environment: id, tenant, initiatedAs } of affinity.lastSeen(operation.paymentId)) {
      if (environmentWith(id) !== environment.name || !tenantIds.includes(tenant)) continue;
      if (initiatedAs === undefined || (found !== undefined && found !== initiatedAs)) return undefined;
      found = initiatedAs;
    }
    return found === undefined ? undefined : parseInitiation(found);
  };
}

/** As in the record of a payment: segments of paths contain no slash. */
export const serializeInitiation = ({ paymentService, paymentProduct }: Initiation): string =>
  `${paymentService}/${paymentProduct}`;

function parseInitiation(text: string): Initiation {
  const [paymentService = '', paymentProduct = ''] = text.split('/');
  return { paymentService, paymentProduct };
}
