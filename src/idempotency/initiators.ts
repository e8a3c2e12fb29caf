/**
 * Which tenants have sent an initiation with the same X-Request-ID to the same bank (ADR 80). A bank that recognises repeats by
 * X-Request-ID answers the second tenant with the payment of the first one.
 *
 * Together with the write-ahead mark, the tenant is added to a record of the X-Request-ID. So the later one of two tenants
 * always finds the earlier one, and checks whether the payment in the bank's response may belong to it.
 */

import { hash } from 'node:crypto';
import { z } from 'zod';
import { stateUnavailable } from '../request/errors.ts';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import { whenKnown } from '../state/known-results.ts';
import type { KeyValues } from '../state/ports.ts';
import { isInDoubt, type SentEntry } from './ledger-entry.ts';
import type { LedgerStore } from './ledger-store.ts';
import { ledgerIdOf } from './request-identity.ts';

/** Every operation throws GatewayError STATE_UNAVAILABLE; the change may have been made nevertheless. */
export interface Initiators {
  /**
   * Records that a tenant is about to send an initiation.
   *
   * @param ttlMs at least as long as the entry of an answered request is stored, in milliseconds
   * @returns the other tenants that did so before; a promise unless that is known at once
   */
  add(entry: SentEntry, ttlMs: number): Tenants | Promise<Tenants>;
  /**
   * Extends the time to live of the record. Adds the tenant if it is missing, because an earlier release sent the initiation or
   * the state has lost the record. Has no effect for other operations.
   *
   * @param ttlMs milliseconds; by default as long as the record of a payment
   */
  keep(entry: SentEntry, ttlMs?: number): Promise<void>;
  /**
   * Whether the payment in the bank's response may belong to one of the earlier tenants.
   *
   * @param earlier   the tenants that `add` returned
   * @param entry     of the initiation that the bank has answered
   * @param paymentId in the bank's response; `undefined` if it names none
   * @param waitMs    how long to wait for requests of these tenants that are in flight, in milliseconds
   */
  mayBelongTo(
    earlier: readonly string[],
    entry: SentEntry,
    paymentId: string | undefined,
    waitMs: number,
  ): Promise<boolean>;
}

type Tenants = readonly string[];

const recordShape = z.object({
  /** Identities, in the order of their last initiations. */
  tenants: z.array(z.string()).readonly(),
  /** Milliseconds since 1970. No initiation makes the record expire earlier: that of another tenant may be in doubt. */
  expiresAt: z.number(),
});

type InitiatorsRecord = Readonly<z.output<typeof recordShape>>;

/** Computes the tenants of a record after an initiation. @param others the stored ones without that of the initiation */
type WithTenant = (others: Tenants, stored: Tenants) => Tenants;

const none: Tenants = [];

const keyOf = ({ environment, requestId }: SentEntry) =>
  `ledger:initiators:${hash('sha256', JSON.stringify([environment, requestId.toLowerCase()]), 'base64url')}`;

interface InitiatorsDependencies {
  readonly keyValues: KeyValues;
  readonly store: Pick<LedgerStore, 'read'>;
  readonly entryChanges: ChangeWaiter;
}

/** @param keptMs time to live of the record for an initiation in doubt, in milliseconds */
export function createInitiators(
  { keyValues, store, entryChanges }: InitiatorsDependencies,
  keptMs: number,
): Initiators {
  /** Creates the record or changes the stored one. @returns the other tenants in the record */
  function createOrChange(
    entry: SentEntry,
    ttlMs: number,
    withTenant: WithTenant,
  ): Tenants | Promise<Tenants> {
    const key = keyOf(entry);
    return whenKnown(writeFirst(key, entry, ttlMs), (isFirst) =>
      isFirst ? none : changeExisting(key, entry, ttlMs, withTenant),
    );
  }

  function writeFirst(key: string, { tenant }: SentEntry, ttlMs: number): Promise<boolean> {
    const first: InitiatorsRecord = { tenants: [tenant], expiresAt: Date.now() + ttlMs };
    return keyValues.writeIfAbsent(key, JSON.stringify(first), ttlMs);
  }

  async function changeExisting(
    key: string,
    entry: SentEntry,
    ttlMs: number,
    withTenant: WithTenant,
  ): Promise<Tenants> {
    const nowMs = Date.now();
    const raw = await keyValues.read(key);
    if (raw === undefined) return createOrChange(entry, ttlMs, withTenant); // it expired just now
    const stored = parseRecord(raw);
    const others = stored.tenants.filter((tenant) => tenant !== entry.tenant);
    const expiresAt = Math.max(stored.expiresAt, nowMs + ttlMs);
    const next: InitiatorsRecord = { tenants: withTenant(others, stored.tenants), expiresAt };
    const isChanged = await keyValues.replace(key, raw, JSON.stringify(next), expiresAt - nowMs);
    return isChanged ? others : createOrChange(entry, ttlMs, withTenant);
  }

  return {
    add: (entry, ttlMs) => createOrChange(entry, ttlMs, (others) => [...others, entry.tenant]),
    async keep(entry, ttlMs = keptMs) {
      if (entry.operation !== 'initiatePayment') return;
      await createOrChange(entry, ttlMs, (_, stored) =>
        stored.includes(entry.tenant) ? stored : [entry.tenant, ...stored],
      );
    },
    async mayBelongTo(earlier, entry, paymentId, waitMs) {
      const waitUntilMs = performance.now() + waitMs;
      for (const tenant of earlier) {
        const id = ledgerIdOf(tenant, entry.operation, undefined, entry.requestId);
        let owns = await mayOwn(id, entry.environment, paymentId);
        while (owns === 'running' && performance.now() < waitUntilMs) {
          await entryChanges.nextChange(id);
          owns = await mayOwn(id, entry.environment, paymentId);
        }
        if (owns !== false) return true;
      }
      return false;
    },
  };

  /**
   * Whether the request of another tenant may have made the payment.
   *
   * @param id of its entry
   * @returns `running` while it is in flight
   */
  async function mayOwn(
    id: string,
    environment: string,
    paymentId: string | undefined,
  ): Promise<boolean | 'running'> {
    const stored = await store.read(id);
    if (!stored) return false; // released, because it provably made no payment, or expired after its response
    const { entry } = stored;
    if (!entry) return true;
    if (entry.step === 'claimed' || entry.environment !== environment) return false;
    if (entry.step === 'sending') return 'running';
    if (isInDoubt(entry)) return true;
    const otherId = entry.paymentId;
    if (entry.step === 'answered' && otherId === undefined) return false; // the bank has refused it
    return otherId === undefined || paymentId === undefined || otherId === paymentId;
  }
}

function parseRecord(raw: string): InitiatorsRecord {
  try {
    return recordShape.parse(JSON.parse(raw));
  } catch (cause) {
    throw stateUnavailable(cause);
  }
}
