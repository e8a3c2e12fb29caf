/**
 * The ledger of tenants that were merged: a request is also a repeat if one of the merged tenants used its X-Request-ID
 * before the merge.
 */

import { identitiesOf } from '../request/identities.ts';
import type { PisRequest } from '../request/messages.ts';
import { type ClaimResult, finishedResult, type Ledger, type LedgerServices } from './ledger.ts';
import type { RequestIdentity } from './request-identity.ts';

/** Claims under the first identity of the tenant, and only reads the entries of its other identities. */
export function withMergedTenants(
  ledger: Ledger,
  services: Pick<LedgerServices, 'identify' | 'store' | 'instanceLeases' | 'inDoubt'>,
): Ledger {
  return {
    claim(identity, request) {
      const tenantIds = identitiesOf(request).tenantIdsOf(request.client.tenant);
      if (tenantIds.length < 2) return ledger.claim(identity, request);
      return claimMerged(identity, request, tenantIds.slice(1));
    },
  };

  async function claimMerged(
    identity: RequestIdentity,
    request: PisRequest,
    otherIds: readonly string[],
  ): Promise<ClaimResult> {
    const result = await ledger.claim(identity, request);
    if (result.kind !== 'claimed') return result;
    try {
      for (const tenantId of otherIds) {
        const found = await lookUp(services, services.identify(request, tenantId));
        if (!found) continue;
        await result.claim.release();
        return found;
      }
      return result;
    } catch (thrown) {
      await result.claim.release();
      throw thrown;
    }
  }
}

/**
 * @returns `undefined` if nothing was sent under this identity. An instance that has not read the merge yet can still send
 *   something under it (ADR 66)
 */
async function lookUp(
  { store, instanceLeases, inDoubt }: Pick<LedgerServices, 'store' | 'instanceLeases' | 'inDoubt'>,
  identity: RequestIdentity,
): Promise<ClaimResult | undefined> {
  const { id } = identity;
  for (;;) {
    const stored = await store.read(id);
    if (!stored) return undefined;
    const { raw, entry } = stored;
    if (!entry) return { kind: 'in-doubt' };
    if (entry.step !== 'claimed' && entry.step !== 'sending') return finishedResult(entry, identity);
    if (await instanceLeases.isAlive(entry.holder)) return { kind: 'running' };
    // If the instance is only suspended, its mark now fails, and it sends nothing.
    if (entry.step === 'sending') await inDoubt.markOrphaned(id, raw, entry);
    else await store.release(id, raw);
  }
}
