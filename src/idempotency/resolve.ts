/** How operators resolve a doubt, once the bank has told them what became of the request. */

import type { AuditEvent, AuditRecorder } from '../request/audit-event.ts';
import type { PendingWrites } from '../state/pending-writes.ts';
import { happenedEntry, type InDoubtEntry, isInDoubt } from './ledger-entry.ts';
import { type LedgerStore, parseAttemptName, removeResolved, type UnresolvedIndex } from './ledger-store.ts';

/** What an operator says of a doubt. */
export interface Resolution {
  /** The doubt's name. */
  readonly id: string;
  readonly who: string;
  readonly outcome: 'happened' | 'did-not-happen';
  /** The payment that was initiated, if the bank named it. */
  readonly paymentId?: string | undefined;
  /** Stands in the audit log. */
  readonly reason: string;
}

export type ResolveResult =
  | { readonly kind: 'resolved' }
  | { readonly kind: 'unknown' }
  /** The bank may still act on it. */
  | { readonly kind: 'too-early'; readonly seconds: number };

/** @throws GatewayError STATE_UNAVAILABLE; it is perhaps resolved then */
export type Resolve = (resolution: Resolution) => Promise<ResolveResult>;

interface ResolveDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly pendingWrites: PendingWrites<() => Promise<void>>;
  readonly notifyChanged: (id: string) => void;
  /** Has every later request on a payment find its environment. */
  readonly affinity: {
    recordEnvironment(
      paymentId: string,
      home: CreatingEnvironment,
      lasts: 'endless' | 'remembered',
    ): Promise<void>;
  };
  readonly audit: AuditRecorder;
  /** How long a resolved one is kept for repeats, in milliseconds. */
  readonly windowMs: () => number;
}

interface CreatingEnvironment {
  readonly environment: string;
  readonly tenant: string;
}

export function createResolve({
  store,
  unresolvedIndex,
  pendingWrites,
  notifyChanged,
  affinity,
  audit,
  windowMs,
}: ResolveDependencies): Resolve {
  return async (resolution) => {
    const { outcome } = resolution;
    const { id, attempt } = parseAttemptName(resolution.id);
    const stored = await store.read(id);
    const entry = stored?.entry;
    if (!isInDoubt(entry) || entry.attempt !== attempt) return { kind: 'unknown' };
    const leftMs = entry.listenedUntil - Date.now();
    if (outcome === 'did-not-happen' && leftMs > 0)
      return { kind: 'too-early', seconds: Math.ceil(leftMs / 1_000) };

    const isDone =
      outcome === 'happened'
        ? recordHappened(id, entry, stored?.raw ?? '', resolution.paymentId)
        : store.release(id, stored?.raw ?? '');
    if (!(await isDone)) return { kind: 'unknown' }; // the bank's own answer came first
    notifyChanged(id);
    await pendingWrites.addAndFlush(`open ${resolution.id}`, () =>
      removeResolved(resolution.id, unresolvedIndex, store),
    );
    await audit.record(auditEventOf(entry, resolution));
    return { kind: 'resolved' };
  };

  async function recordHappened(
    id: string,
    entry: InDoubtEntry,
    raw: string,
    paymentId: string | undefined,
  ): Promise<string | undefined> {
    const { environment, tenant, paymentService } = entry;
    if (entry.operation !== 'initiatePayment' || paymentId === undefined)
      return store.replace(id, raw, happenedEntry(entry), windowMs());
    const lasts = paymentService === 'periodic-payments' ? 'endless' : 'remembered';
    await affinity.recordEnvironment(paymentId, { environment, tenant }, lasts);
    return store.replace(id, raw, happenedEntry(entry, paymentId), windowMs());
  }
}

function auditEventOf(entry: InDoubtEntry, { who, outcome, paymentId, reason }: Resolution): AuditEvent {
  const { requestId, operation, tenant, environment } = entry;
  const details = { requestId, operation, tenant, environment, paymentId, reason };
  return { who, action: 'resolve doubt', outcome, details };
}
