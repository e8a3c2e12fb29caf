/** Writes for tests of the ledger's table, without a gateway. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/store/database.ts';
import type { LedgerTable, NewClaim } from '../../src/store/ledger.ts';

export const newClaim = (more: Partial<NewClaim> = {}): NewClaim => ({
  tenant: 'shop',
  operation: 'initiatePayment',
  payment: '',
  requestId: randomUUID(),
  attempt: randomUUID(),
  instance: 'one',
  path: '/berlingroup/v1/payments/sepa-credit-transfers',
  fingerprintKey: undefined,
  fingerprintRequest: 'request',
  fingerprintContent: 'content',
  isFirstFactor: false,
  ...more,
});

export const answer = {
  status: 201,
  headers: '[["Content-Type","application/json"]]',
  body: Buffer.from([0, 1, 255]),
  outcome: 'accepted',
  why: undefined,
  created: { paymentId: 'payment-1', initiatedAs: 'payments/sepa-credit-transfers', isPermanent: false },
};

export const withPayment = (paymentId: string) => ({ ...answer, created: { ...answer.created, paymentId } });

export const sentTo = (claim: NewClaim, environment = 'sandbox') => ({
  ...claim,
  environment,
  listenMs: 60_000,
  markedAtMs: performance.now(),
});

export const mark = (claim: NewClaim, listenMs = 60_000) => ({
  ...sentTo(claim),
  listenMs,
  identityRevision: 0,
});

/** The kinds of the outcomes, and the step of a row that exists. All are claimed in one turn of the event loop. */
export const claimKinds = async (ledger: LedgerTable, claims: readonly NewClaim[]) =>
  (await Promise.all(claims.map(ledger.claim))).map((outcome) =>
    outcome.kind === 'exists' ? `exists: ${outcome.row.step}` : outcome.kind,
  );

export const send = async (ledger: LedgerTable, claim: NewClaim, listenMs = 60_000) => {
  assert.deepEqual(await claimKinds(ledger, [claim]), ['claimed']);
  assert.equal(await ledger.mark(mark(claim, listenMs)), true);
};

export const again = (claim: NewClaim, more: Partial<NewClaim> = {}) => ({
  ...claim,
  attempt: randomUUID(),
  ...more,
});

/** As an instance that has reported for a minute. */
export const reportAs = (database: Database, id: string) =>
  database.query(
    'INSERT INTO instance (id, seen_at, reporting_since, schema_version) VALUES ($1, now_ms(), now_ms() - 60000, 1)',
    [id],
  );
