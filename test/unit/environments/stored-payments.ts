/** Payments that the ledger has stored, for tests of what looks them up. */

import { randomUUID } from 'node:crypto';
import type { PaymentAffinity } from '../../../src/environments/affinity.ts';
import type { Database } from '../../../src/store/database.ts';
import { createLedgerTable } from '../../../src/store/ledger.ts';

/** As an initiation does: claims it, marks it, and records the answer. @returns false if the payment belongs to another tenant */
export async function storePayment(
  database: Database,
  paymentId: string,
  { environment, tenant, initiatedAs = 'payments/sepa-credit-transfers', bankIds }: PaymentAffinity,
  isPermanent = false,
): Promise<boolean> {
  const table = createLedgerTable(database);
  const claim = {
    ...{ tenant, operation: 'initiatePayment', payment: '', requestId: randomUUID() },
    ...{ attempt: randomUUID(), instance: 'i1', path: `/v1/${initiatedAs}`, isFirstFactor: false },
    ...{ fingerprintKey: undefined, fingerprintRequest: 'request', fingerprintContent: 'content' },
  };
  await table.claim(claim);
  const sent = { ...claim, environment, listenMs: 0, markedAtMs: performance.now() };
  await table.mark({ ...sent, identityRevision: 0 });
  const created = { paymentId, initiatedAs, bankIds: bankIds && JSON.stringify(bankIds), isPermanent };
  const answer = { status: 201, headers: '[]', body: Buffer.alloc(0), outcome: undefined, why: undefined };
  return (await table.recordAnswer(sent, { ...answer, created })) === 'recorded';
}
