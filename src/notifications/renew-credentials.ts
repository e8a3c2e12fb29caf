/** The stage of status reads that gives a subscription the credentials with which the TPP has just read the status. */

import type { HeaderFields } from '../pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import type { PaymentOfTenant } from '../request/statuses.ts';
import { needEncryption, pollHeadersOf } from './poll-target.ts';
import { areStorable, type SubscribeDependencies } from './subscribe.ts';
import type { Subscription } from './subscription.ts';
import { type SubscriptionStore, subscriptionIdOf } from './subscription-store.ts';

export interface RenewCredentialsDependencies
  extends Pick<SubscribeDependencies, 'urlsOf' | 'store' | 'mayStoreCredentials'> {
  readonly keyOf: (request: RoutedRequest) => PaymentOfTenant;
}

/** Only reads that the bank has answered: they prove that it accepts the credentials. */
export function renewCredentials(dependencies: RenewCredentialsDependencies): Stage<RoutedRequest> {
  const { urlsOf, store, mayStoreCredentials, keyOf } = dependencies;
  return (request, next) => {
    if (!urlsOf(request.client.name)) return next(request);
    const headers = pollHeadersOf(request.headers, request.environment);
    const mayStore = mayStoreCredentials || !needEncryption(headers, request.environment);
    const { tenantId, paymentKey } = keyOf(request);
    return next(request).then((response) => {
      const isProof = response.status === 200 && proofs.has(response.servedFrom);
      if (isProof && mayStore && areStorable(headers))
        renew(store, subscriptionIdOf(tenantId, paymentKey), headers).catch(() => {}); // the next read tries again
      return response;
    });
  };
}

/** A shared response is one to the same credentials. */
const proofs: ReadonlySet<PisResponse['servedFrom']> = new Set(['bank', 'shared'] as const);

const renew = (store: Pick<SubscriptionStore, 'change'>, id: string, headers: HeaderFields): Promise<void> =>
  store.change(id, (current) => {
    const isDue = current?.failedReads !== undefined;
    if (!current || (!isDue && areEqual(current.headers, headers))) return undefined;
    return { subscription: { ...current, headers }, read: isDue ? { inMs: 0 } : undefined };
  });

const areEqual = (one: Subscription['headers'], other: HeaderFields) =>
  JSON.stringify(one) === JSON.stringify(other);
