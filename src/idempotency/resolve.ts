/** Resolution of a write in doubt by an operator who knows its outcome from the bank. */

import { isConfirmed } from '../config/production.ts';
import type { AuditEvent, AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import type { LedgerKey, LedgerTable, NewPayment } from '../store/ledger.ts';
import { type InDoubtEntry, inDoubtWriteOf } from './in-doubt.ts';

export interface Resolution {
  /** As `InDoubtWrite.id`. */
  readonly id: string;
  /** The operator's name, for the audit log. */
  readonly who: string;
  readonly outcome: 'happened' | 'did-not-happen';
  /** The payment that was initiated, if the bank named it. */
  readonly paymentId?: string | undefined;
  /** For the audit log. */
  readonly reason: string;
  /** The name of the environment, as confirmation; required for `did-not-happen` in production. */
  readonly confirm?: string | undefined;
}

export type ResolveResult =
  | { readonly kind: 'resolved' }
  /** No write with this id is in doubt. */
  | { readonly kind: 'unknown' }
  /** `did-not-happen` in production without its name. */
  | { readonly kind: 'unconfirmed'; readonly environment: string }
  /** The payment belongs to another tenant. */
  | { readonly kind: 'foreign-payment' }
  /** The bank may still execute the request. */
  | { readonly kind: 'too-early'; readonly seconds: number };

/** @throws GatewayError STATE_UNAVAILABLE; the write may have been resolved nevertheless */
export type Resolve = (resolution: Resolution) => Promise<ResolveResult>;

interface ResolveDependencies {
  readonly table: Pick<LedgerTable, 'inDoubtWith' | 'resolveHappened' | 'resolveNotHappened'>;
  readonly wakeRepeats: (key: LedgerKey) => void;
  readonly audit: AuditRecorder;
  /** The current name of an environment. */
  readonly environmentNameOf: (environmentId: string) => string;
}

export function createResolve({
  table,
  wakeRepeats,
  audit,
  environmentNameOf,
}: ResolveDependencies): Resolve {
  return async (resolution) => {
    const { id, outcome, paymentId } = resolution;
    const row = await table.inDoubtWith(id);
    if (!row) return { kind: 'unknown' };
    const { entry } = inDoubtWriteOf(row);
    const environment = environmentNameOf(entry.environment);
    if (outcome === 'did-not-happen' && !isConfirmed(environment, resolution.confirm))
      return { kind: 'unconfirmed', environment };
    const leftMs = entry.listenedUntil - Number(row.read_at);
    if (outcome === 'did-not-happen' && leftMs >= 0)
      return { kind: 'too-early', seconds: Math.max(1, Math.ceil(leftMs / 1_000)) };

    const created =
      entry.operation === 'initiatePayment' && paymentId !== undefined
        ? createdBy(entry, paymentId)
        : undefined;
    const attempt = { ...entry, payment: String(row.payment), attempt: id };
    try {
      const isStored =
        outcome === 'happened'
          ? await table.resolveHappened(attempt, created)
          : await table.resolveNotHappened(attempt);
      // Otherwise the bank's own response came first.
      if (!isStored)
        return created && (await table.inDoubtWith(id)) ? { kind: 'foreign-payment' } : { kind: 'unknown' };
    } catch (thrown) {
      await audit.record(failureOf(entry, resolution, thrown)); // the database may have made the change
      throw thrown;
    }
    wakeRepeats(attempt);
    await audit.record(auditEventOf(entry, resolution));
    return { kind: 'resolved' };
  };
}

function createdBy({ path }: InDoubtEntry, paymentId: string): NewPayment {
  const initiatedAs = path.split('/').slice(-2).join('/'); // service and product end the path of an initiation
  return { paymentId, initiatedAs, isPermanent: initiatedAs.startsWith('periodic-payments/') };
}

function failureOf(entry: InDoubtEntry, resolution: Resolution, thrown: unknown): AuditEvent {
  const event = auditEventOf(entry, resolution);
  const why = asGatewayError(thrown).message;
  return { ...event, outcome: 'failed', details: { ...event.details, wanted: event.outcome, why } };
}

function auditEventOf(entry: InDoubtEntry, { who, outcome, paymentId, reason }: Resolution): AuditEvent {
  const { requestId, operation, tenant, environment } = entry;
  const named = operation === 'initiatePayment' ? paymentId : undefined;
  const details = {
    ...{ requestId, operation, tenant, environment },
    ...{ paymentId: named ?? entry.paymentId, reason },
  };
  return { who, action: 'resolve in-doubt request', outcome, details };
}
