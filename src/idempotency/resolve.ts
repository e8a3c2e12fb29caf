/** Resolution of a write in doubt by an operator who knows its outcome from the bank. */

import { isConfirmed } from '../config/production.ts';
import type { AuditEvent, AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import type { PendingWrites } from '../state/pending-writes.ts';
import { happenedEntry, type InDoubtEntry, isInDoubt, serialized } from './ledger-entry.ts';
import { type LedgerStore, parseAttemptName, removeResolved, type UnresolvedIndex } from './ledger-store.ts';

export interface Resolution {
  /** The name of the attempt, as `InDoubtWrite.id`. */
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
  /** No write with this name is in doubt. */
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
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly pendingWrites: PendingWrites<() => Promise<void>>;
  readonly notifyChanged: (id: string) => void;
  /** Routes later requests for a payment to the environment that created it. Returns false if it belongs to another tenant. */
  readonly affinity: {
    recordEnvironment(
      paymentId: string,
      createdBy: { readonly environment: string; readonly tenant: string; readonly initiatedAs: string },
      retention: 'permanent' | 'expiring',
    ): boolean | Promise<boolean>;
  };
  readonly audit: AuditRecorder;
  /** The current name of an environment. */
  readonly environmentNameOf: (environmentId: string) => string;
  /** How long the resolved entry is stored for repeats, in milliseconds. */
  readonly windowMs: () => number;
}

export function createResolve({
  store,
  unresolvedIndex,
  pendingWrites,
  notifyChanged,
  affinity,
  audit,
  environmentNameOf,
  windowMs,
}: ResolveDependencies): Resolve {
  return async (resolution) => {
    const { outcome } = resolution;
    const { id, attempt } = parseAttemptName(resolution.id);
    const stored = await store.read(id);
    const entry = stored?.entry;
    if (!stored || !isInDoubt(entry) || entry.attempt !== attempt) return { kind: 'unknown' };
    const environment = environmentNameOf(entry.environment);
    if (outcome === 'did-not-happen' && !isConfirmed(environment, resolution.confirm))
      return { kind: 'unconfirmed', environment };
    const leftMs = entry.listenedUntil - Date.now();
    if (outcome === 'did-not-happen' && leftMs > 0)
      return { kind: 'too-early', seconds: Math.ceil(leftMs / 1_000) };

    const { paymentId } = resolution;
    const isNamed = entry.operation === 'initiatePayment' && paymentId !== undefined;
    if (isNamed && !(await recordOwner(entry, paymentId))) return { kind: 'foreign-payment' };
    const isStored =
      outcome === 'happened'
        ? store.replace(id, stored.raw, happened(entry, isNamed ? paymentId : undefined), windowMs())
        : store.release(id, stored.raw);
    try {
      if (!(await isStored)) return { kind: 'unknown' }; // the bank's own response came first
    } catch (thrown) {
      await audit.record(failureOf(entry, resolution, thrown)); // the state may have made the change
      throw thrown;
    }
    notifyChanged(id);
    await pendingWrites.addAndFlush(`open ${resolution.id}`, () =>
      removeResolved(resolution.id, unresolvedIndex, store),
    );
    await audit.record(auditEventOf(entry, resolution));
    return { kind: 'resolved' };
  };

  /** @returns false if the payment belongs to another tenant */
  async function recordOwner(entry: InDoubtEntry, paymentId: string): Promise<boolean> {
    const { environment, tenant, paymentService, path } = entry;
    const retention = paymentService === 'periodic-payments' ? 'permanent' : 'expiring';
    const initiatedAs = path.split('/').slice(-2).join('/'); // service and product end the path of an initiation
    return affinity.recordEnvironment(paymentId, { environment, tenant, initiatedAs }, retention);
  }
}

const happened = (entry: InDoubtEntry, paymentId: string | undefined) =>
  serialized(happenedEntry(entry, paymentId));

function failureOf(entry: InDoubtEntry, resolution: Resolution, thrown: unknown): AuditEvent {
  const event = auditEventOf(entry, resolution);
  const why = asGatewayError(thrown).message;
  return { ...event, outcome: 'failed', details: { ...event.details, wanted: event.outcome, why } };
}

function auditEventOf(entry: InDoubtEntry, { who, outcome, paymentId, reason }: Resolution): AuditEvent {
  const { requestId, operation, tenant, environment } = entry;
  const details = { requestId, operation, tenant, environment, paymentId, reason };
  return { who, action: 'resolve in-doubt request', outcome, details };
}
