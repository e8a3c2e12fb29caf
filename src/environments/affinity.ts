/**
 * Affinity: which environment created a payment, and for which tenant. The ledger stores it together with the bank's answer to the
 * initiation, and it is never given to another tenant. Two banks may assign the same payment id; then both affinities are stored.
 *
 * A lookup reads the database, because another instance may have stored a second affinity. Only if there is no other instance, what was
 * read in the last second is recent enough for a status. Each instance also caches what it stored or read, so that these payments stay usable while the database is
 * unreachable.
 */

import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { type BankIds, mergeBankIds } from '../request/bank-ids.ts';
import { GatewayError } from '../request/errors.ts';
import { deleteInBatches } from '../store/delete-in-batches.ts';
import type { PaymentTable, StoredPayment } from '../store/payments.ts';

/** The environment that created a payment, and the tenant that owns the payment: their ids, not their names. */
export interface PaymentAffinity {
  readonly environment: string;
  readonly tenant: string;
  /**
   * Service and product of the initiation, such as `payments/sepa-credit-transfers`. `undefined` if they were not recorded, or if
   * payments of several products have this id.
   */
  readonly initiatedAs?: string | undefined;
  /** `undefined` if the bank spells all ids as the gateway does, and none of them is unusual. */
  readonly bankIds?: BankIds | undefined;
}

/** Ids that an answer of the bank to a later request names. */
export interface LaterIds {
  readonly paymentId: string;
  readonly environment: string;
  readonly tenant: string;
  readonly bankIds: BankIds;
  /** Whether the payment is remembered for ever. */
  readonly isPermanent: boolean;
}

export type AffinityStore = ReturnType<typeof createAffinityStore>;

/** About 300 bytes each. */
const maxCachedPayments = 100_000;
/** Longest time between renewals of a payment in use, in milliseconds; half the expiry time if that is shorter. */
const renewEveryMs = 24 * 3_600_000;
/** For how long what was read is recent enough for a status. Milliseconds. */
const recentForMs = 1_000;
/** How often the ids of a payment are read again because another instance has changed them. */
const maxLooks = 10;

/** What the payment is looked up for: a status that is read often, another read, or a write. */
export type PaymentUse = 'status' | 'read' | 'write';

interface Cached {
  readonly affinities: readonly PaymentAffinity[];
  /** When all of them were read, in milliseconds of `performance.now()`; an affinity that was stored later is among them. */
  readonly readAtMs: number;
  /** The affinities as a promise: one for all requests. */
  readonly resolved: Promise<readonly PaymentAffinity[]>;
}

const cachedOf = (affinities: readonly PaymentAffinity[], readAtMs: number): Cached => ({
  ...{ affinities, readAtMs },
  resolved: Promise.resolve(affinities),
});

const isKnownTo = (tenantId: string, affinities: readonly PaymentAffinity[]) =>
  affinities.some(({ tenant }) => tenant === tenantId);

const neverRead = { affinities: [], readAtMs: Number.NEGATIVE_INFINITY } as const;

const bankIdsShape = z.object({
  payment: z.string().optional(),
  authorisations: z.array(z.string()).readonly(),
});

/** @param expiresAfterMs how long a payment is remembered after its last use, unless it is permanent */
export function createAffinityStore(payments: PaymentTable, expiresAfterMs: number) {
  // `max` would reserve all memory at once.
  const cache = new LRUCache<string, Cached>({ maxSize: maxCachedPayments, sizeCalculation: () => 1 });

  function environmentsOf(
    paymentId: string,
    tenantId: string,
    use: PaymentUse = 'read',
  ): Promise<readonly PaymentAffinity[]> {
    const cached = use === 'status' && payments.isAlone ? cache.get(paymentId) : undefined;
    const isRecent = cached && performance.now() - cached.readAtMs < recentForMs;
    return isRecent && isKnownTo(tenantId, cached.affinities)
      ? cached.resolved
      : readEnvironments(paymentId, tenantId, use);
  }

  async function readEnvironments(
    paymentId: string,
    tenantId: string,
    use: PaymentUse,
  ): Promise<readonly PaymentAffinity[]> {
    const readAtMs = performance.now();
    let stored: readonly StoredPayment[];
    try {
      stored = await payments.find(paymentId);
    } catch (thrown) {
      const cached = lastSeen(paymentId);
      if (use !== 'write' && isKnownTo(tenantId, cached)) return cached;
      throw thrown;
    }
    const affinities = stored.map(affinityOf);
    if (affinities.length > 0) cache.set(paymentId, cachedOf(affinities, readAtMs));
    else cache.delete(paymentId);
    for (const payment of stored) if (payment.tenant === tenantId) renewIfDue(payment);
    return affinities;
  }

  const lastSeen = (paymentId: string): readonly PaymentAffinity[] => cache.get(paymentId)?.affinities ?? [];

  /** In the background: if it fails, the next use tries again. */
  function renewIfDue(payment: StoredPayment): void {
    if (payment.isPermanent || payment.unusedMs <= Math.min(renewEveryMs, expiresAfterMs / 2)) return;
    payments.touch(payment).catch(() => {});
  }

  function cacheStored(paymentId: string, affinity: PaymentAffinity): void {
    const { affinities: cached, readAtMs } = cache.peek(paymentId) ?? neverRead;
    const hasThis = cached.some(
      ({ environment, tenant }) => environment === affinity.environment && tenant === affinity.tenant,
    );
    if (hasThis)
      cache.delete(paymentId); // the bank has given the id again: the table may have another product
    else cache.set(paymentId, cachedOf([...cached, affinity], readAtMs));
  }

  async function addBankIds(added: LaterIds, looksLeft = maxLooks): Promise<void> {
    const { paymentId, environment, tenant, bankIds, isPermanent } = added;
    const found = (await payments.find(paymentId)).find((one) => one.environment === environment);
    if (found && found.tenant !== tenant) return;
    const merged = mergeBankIds(bankIdsIn(found?.bankIds), bankIds);
    const text = JSON.stringify(merged);
    if (found?.bankIds === text) return;
    const isStored = await (found
      ? payments.replaceBankIds(found, found.bankIds, text)
      : payments.insertFound({ paymentId, environment, tenant, bankIds: text, isPermanent }));
    if (!isStored && looksLeft > 0) await addBankIds(added, looksLeft - 1);
  }

  return {
    /**
     * All affinities of a payment id, other tenants' included; none if there is no such payment.
     *
     * @param tenantId the caller's; while the database is unreachable, the cached affinities are used only if one of them is that of this tenant
     * @param use the cache may lack a second payment with this id, so it never decides where a write goes
     * @throws GatewayError STATE_UNAVAILABLE if neither the database nor the cache can answer
     */
    environmentsOf,

    /**
     * The affinities that this instance last stored or read, without a statement to the database. They may be incomplete: a hint, never a
     * reason to send a request. Never throws.
     */
    lastSeen,

    /** To be called when the ledger has stored the payment. */
    cacheStored,

    /**
     * Records ids that later requests may use. Has no effect if the payment belongs to another tenant.
     *
     * @throws DatabaseError; they may be stored nevertheless
     */
    addBankIds: (added: LaterIds) => addBankIds(added),

    /** Deletes payments that have not been used for that long. @throws DatabaseError */
    deleteExpired: () =>
      deleteInBatches((limit, from) => payments.deleteExpired(expiresAfterMs, limit, from)),
  };
}

function affinityOf({ environment, tenant, initiatedAs, bankIds }: StoredPayment): PaymentAffinity {
  return { environment, tenant, initiatedAs, bankIds: bankIdsIn(bankIds) };
}

/** @throws GatewayError STATE_UNAVAILABLE if the value is not what the gateway stores: it never guesses an id */
function bankIdsIn(text: string | undefined): BankIds | undefined {
  if (text === undefined) return undefined;
  try {
    return bankIdsShape.parse(JSON.parse(text));
  } catch (cause) {
    const what = 'The stored ids of this payment are unreadable; contact the operators of the gateway.';
    throw new GatewayError('STATE_UNAVAILABLE', what, { cause });
  }
}
