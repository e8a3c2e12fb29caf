/** What the listeners of a payment see of the status cache. */

import { currentTenantId } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import { contentOf } from '../request/read-content.ts';
import type { RecordedStatus, Statuses } from '../request/statuses.ts';
import { cacheUseOf } from './cache-control.ts';
import { cacheFieldsIn } from './cache-fields.ts';
import { paymentKeyIn } from './cache-key.ts';
import type { CacheStore, Invalidation, StoredPayment } from './cache-store.ts';
import { isExpired } from './cached-payment.ts';
import { shownStatus } from './fetch-status.ts';

export function createStatuses(
  enabled: boolean,
  store: Pick<CacheStore, 'tryRead' | 'expire'>,
  invalidation: Pick<Invalidation, 'isPending'>,
): Statuses {
  return {
    enabled,
    cacheUseOf(headers) {
      const fields = cacheFieldsIn(headers, []);
      const { mode } = cacheUseOf({ headers }, fields);
      const mayWait = mode === 'default' || mode === 'limited';
      return { isBypassed: fields.bypasses, mayWait, mayStream: mayWait || mode === 'refresh' };
    },
    keyOf: (request) => ({ tenantId: currentTenantId(request), paymentKey: paymentKeyIn(request) }),
    async shownBy(request: RoutedRequest, response: PisResponse) {
      return shownStatus(request, paymentKeyIn(request), response, await contentOf(response));
    },
    async recorded(paymentKey) {
      const payment = await store.tryRead(paymentKey);
      return payment && recordedStatusOf(payment);
    },
    async isCurrent(paymentKey, hash) {
      const payment = await store.tryRead(paymentKey);
      const isKnown = payment && !(payment.isOwn && payment.statusHash === undefined);
      if (isKnown) return payment.statusHash === hash;
      return !invalidation.isPending(paymentKey);
    },
    expire: store.expire,
  };
}

function recordedStatusOf({
  generation,
  statusHash,
  statusSinceMs,
  responses,
}: StoredPayment): RecordedStatus {
  const readAtMs = Object.values(responses)
    .filter((response) => !isExpired(response))
    .reduce((newest, { fetchedAtMs }) => Math.max(newest, fetchedAtMs), 0);
  return { generation, hash: statusHash, sinceMs: statusSinceMs, readAtMs };
}
