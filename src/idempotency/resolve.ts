/** How operators resolve a doubt, once the bank has told them what became of the request. */

import type { AuditEvent, AuditTrail } from '../flow/audit-event.ts';
import type { Owed } from '../state/owed.ts';
import type { Entries } from './entries.ts';
import { type Doubtful, happened, isDoubtful } from './entry.ts';
import { drop, namedBy, type OpenEntries } from './open-entries.ts';

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

export type Resolved =
  | { readonly kind: 'resolved' }
  | { readonly kind: 'unknown' }
  /** The bank may still act on it. */
  | { readonly kind: 'too-early'; readonly seconds: number };

/** @throws GatewayError STATE_UNAVAILABLE; it is perhaps resolved then */
export type Resolve = (resolution: Resolution) => Promise<Resolved>;

interface Parts {
  readonly entries: Entries;
  readonly open: OpenEntries;
  readonly owed: Owed<() => Promise<void>>;
  readonly changed: (id: string) => void;
  /** Has every later request on a payment find its environment. */
  readonly affinity: { learn(paymentId: string, home: Home, lasts: 'endless' | 'remembered'): Promise<void> };
  readonly audit: AuditTrail;
  /** How long a resolved one is kept for repeats, in milliseconds. */
  readonly windowMs: () => number;
}

interface Home {
  readonly environment: string;
  readonly tenant: string;
}

export function createResolve({ entries, open, owed, changed, affinity, audit, windowMs }: Parts): Resolve {
  return async (resolution) => {
    const { outcome } = resolution;
    const { id, attempt } = namedBy(resolution.id);
    const stored = await entries.read(id);
    const entry = stored?.entry;
    if (!isDoubtful(entry) || entry.attempt !== attempt) return { kind: 'unknown' };
    const leftMs = entry.listenedUntil - Date.now();
    if (outcome === 'did-not-happen' && leftMs > 0)
      return { kind: 'too-early', seconds: Math.ceil(leftMs / 1_000) };

    const isDone =
      outcome === 'happened'
        ? keepAsHappened(id, entry, stored?.raw ?? '', resolution.paymentId)
        : entries.release(id, stored?.raw ?? '');
    if (!(await isDone)) return { kind: 'unknown' }; // the bank's own answer came first
    changed(id);
    await owed.now(`open ${resolution.id}`, () => drop(resolution.id, open, entries));
    await audit.record(eventOf(entry, resolution));
    return { kind: 'resolved' };
  };

  async function keepAsHappened(
    id: string,
    entry: Doubtful,
    raw: string,
    paymentId: string | undefined,
  ): Promise<string | undefined> {
    const { environment, tenant, paymentService } = entry;
    if (entry.operation !== 'initiatePayment' || paymentId === undefined)
      return entries.replace(id, raw, happened(entry), windowMs());
    const lasts = paymentService === 'periodic-payments' ? 'endless' : 'remembered';
    await affinity.learn(paymentId, { environment, tenant }, lasts);
    return entries.replace(id, raw, happened(entry, paymentId), windowMs());
  }
}

function eventOf(entry: Doubtful, { who, outcome, paymentId, reason }: Resolution): AuditEvent {
  const { requestId, operation, tenant, environment } = entry;
  const details = { requestId, operation, tenant, environment, paymentId, reason };
  return { who, action: 'resolve doubt', outcome, details };
}
