/** What the ledger knows of an initiation, for the TPP that has sent it. Reads only: repeats and recovery change the entry. */

import { isInDoubt, type LedgerEntry } from './ledger-entry.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { InstanceLeases } from './recovery.ts';
import { ledgerIdOf } from './request-identity.ts';

export interface InitiationOutcome {
  /**
   * `not-sent`: the bank has not received it, and no instance is sending it. `executed`: an operator has confirmed that the bank
   * executed it, and its response is lost.
   */
  readonly state: 'in-progress' | 'not-sent' | 'answered' | 'in-doubt' | 'executed';
  /** The identity of the environment that it was sent to; `undefined` if it was not sent, or if the entry is unreadable. */
  readonly environment: string | undefined;
  /** The status of the bank, if it has answered and the outcome is known. */
  readonly status: number | undefined;
  /** The payment that it has created, if that is known. */
  readonly paymentId: string | undefined;
}

/**
 * @param tenantIds all identities of the tenant
 * @returns `undefined` if the ledger has no entry
 * @throws GatewayError STATE_UNAVAILABLE
 */
export type ReadInitiation = (
  tenantIds: readonly string[],
  requestId: string,
) => Promise<InitiationOutcome | undefined>;

interface ReadInitiationDependencies {
  readonly store: Pick<LedgerStore, 'read'>;
  readonly instanceLeases: Pick<InstanceLeases, 'isAlive'>;
}

export function createReadInitiation({ store, instanceLeases }: ReadInitiationDependencies): ReadInitiation {
  return async (tenantIds, requestId) => {
    const ids = tenantIds.map((tenantId) => ledgerIdOf(tenantId, 'initiatePayment', undefined, requestId));
    const stored = await Promise.all(ids.map((id) => store.read(id)));
    const found = stored.find((each) => each !== undefined);
    if (!found) return undefined;
    // Repeats of an unreadable entry are answered with DUPLICATE_IN_DOUBT.
    if (!found.entry) return { ...nothingKnown, state: 'in-doubt' };
    return outcomeOf(found.entry, instanceLeases.isAlive);
  };
}

const nothingKnown = { environment: undefined, status: undefined, paymentId: undefined };

async function outcomeOf(entry: LedgerEntry, isAlive: InstanceLeases['isAlive']): Promise<InitiationOutcome> {
  if (entry.step === 'claimed')
    return { ...nothingKnown, state: (await isAlive(entry.holder)) ? 'in-progress' : 'not-sent' };
  const { environment } = entry;
  const sent = { ...nothingKnown, environment };
  if (isInDoubt(entry)) return { ...sent, state: 'in-doubt' };
  switch (entry.step) {
    case 'sending':
      return { ...sent, state: (await isAlive(entry.holder)) ? 'in-progress' : 'in-doubt' };
    case 'answered':
      return { ...sent, state: 'answered', status: entry.status, paymentId: entry.paymentId };
    case 'happened':
      return { ...sent, state: 'executed', paymentId: entry.paymentId };
  }
}
