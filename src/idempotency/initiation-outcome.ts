/** What the ledger knows of an initiation, for the TPP that has sent it. Reads only: repeats and recovery change the row. */

import type { LedgerRow, LedgerTable } from '../store/ledger.ts';
import { ledgerKeyOf } from './request-identity.ts';

export interface InitiationOutcome {
  /**
   * `not-sent`: the bank has not received it, and no instance is sending it. `executed`: an operator has confirmed that the bank
   * executed it, and its response is lost.
   */
  readonly state: 'in-progress' | 'not-sent' | 'answered' | 'in-doubt' | 'executed';
  /** The id of the environment that it was sent to; `undefined` if it was not sent. */
  readonly environment: string | undefined;
  /** The status of the bank, if it has answered and the outcome is known. */
  readonly status: number | undefined;
  /** The payment that it has created, if that is known. */
  readonly paymentId: string | undefined;
}

/**
 * @returns `undefined` if the ledger has no row
 * @throws DatabaseError
 */
export type ReadInitiation = (tenantId: string, requestId: string) => Promise<InitiationOutcome | undefined>;

interface ReadInitiationDependencies {
  readonly table: Pick<LedgerTable, 'read'>;
  readonly isAlive: (instance: string) => Promise<boolean>;
}

export function createReadInitiation({ table, isAlive }: ReadInitiationDependencies): ReadInitiation {
  return async (tenantId, requestId) => {
    const row = await table.read(ledgerKeyOf(tenantId, 'initiatePayment', undefined, requestId));
    return row && row.step !== 'released' ? outcomeOf(row, isAlive) : undefined;
  };
}

const nothingKnown = { environment: undefined, status: undefined, paymentId: undefined };

async function outcomeOf(
  row: LedgerRow,
  isAlive: ReadInitiationDependencies['isAlive'],
): Promise<InitiationOutcome> {
  const isInstanceAlive = () => isAlive(String(row.instance));
  if (row.step === 'claimed')
    return { ...nothingKnown, state: (await isInstanceAlive()) ? 'in-progress' : 'not-sent' };
  const sent = { ...nothingKnown, environment: String(row.environment) };
  const paymentId = row.payment_id === null ? undefined : String(row.payment_id);
  if (row.step === 'sending')
    return { ...sent, state: (await isInstanceAlive()) ? 'in-progress' : 'in-doubt' };
  if (row.why !== null) return { ...sent, state: 'in-doubt' };
  if (row.step === 'answered') return { ...sent, state: 'answered', status: Number(row.status), paymentId };
  return { ...sent, state: 'executed', paymentId };
}
