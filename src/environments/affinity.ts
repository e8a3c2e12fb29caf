/**
 * Affinity: which environment created a payment, and for which tenant. Recorded from the bank's response to the
 * initiation, and never overwritten. Two banks may assign the same payment id; then both affinities are stored.
 *
 * Every lookup reads the shared state, because another instance may have recorded a second affinity. Each instance also
 * caches what it recorded or read, so that these payments stay usable while the state is unavailable.
 */

import { LRUCache } from 'lru-cache';
import { asGatewayError } from '../request/errors.ts';
import { hashPaymentId } from '../request/payment-hash.ts';
import { whenKnown } from '../state/known-results.ts';
import { createParseCache } from '../state/parse-cache.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type AffinityRecord,
  type AffinityRetention,
  type PaymentAffinity,
  parseAffinityRecord,
  serializeAffinityRecord,
  withAffinity,
} from './affinity-record.ts';

export interface AffinityStore {
  /**
   * All affinities of a payment id, other tenants' included; none if there is no record.
   *
   * @param tenantIds the caller's; while the state is unavailable, the cached record is used only if it contains one of them
   * @throws GatewayError STATE_UNAVAILABLE if neither the state nor the cache can answer
   */
  environmentsOf(paymentId: string, ...tenantIds: readonly string[]): FoundAffinities;
  /**
   * The affinities that this instance last recorded or read, without a command to the state. They may be incomplete: a hint, never a
   * reason to send a request. Never throws.
   */
  lastSeen(paymentId: string): readonly PaymentAffinity[];
  /**
   * Stores an affinity in the shared state, later if the state is unavailable. Never fails.
   *
   * @param isForeign whether a recorded affinity is that of another tenant in the same environment
   * @param onWrite   called synchronously with the result of the first write, which is whether it created the record
   * @returns false if the payment belongs to another tenant; the record is not changed. A promise unless that is known at once
   */
  recordEnvironment(
    paymentId: string,
    affinity: PaymentAffinity,
    retention: AffinityRetention,
    isForeign?: IsForeign,
    onWrite?: (isCreated: Promise<boolean>) => void,
  ): boolean | Promise<boolean>;
  /**
   * Stores pending affinities in the shared state, up to the first failure; the next call starts behind that one.
   *
   * @throws GatewayError STATE_UNAVAILABLE
   */
  flush(): Promise<void>;
}

/** A promise, unless the state is in the memory of this process. */
type FoundAffinities = readonly PaymentAffinity[] | Promise<readonly PaymentAffinity[]>;

interface PendingRecord {
  readonly key: string;
  readonly affinity: PaymentAffinity;
  readonly retention: AffinityRetention;
  readonly isForeign: IsForeign;
}

type IsForeign = (recorded: PaymentAffinity) => boolean;

/** About 300 bytes each. */
const maxCachedPayments = 100_000;
/** Longest time between renewals of a payment in use, in milliseconds; half the expiry time if that is shorter. */
const renewEveryMs = 24 * 3_600_000;
const channel = 'payment';

/** @param expiresAfterMs how long a record is stored after its last use, unless its retention is permanent */
export function createAffinityStore(
  { keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>,
  expiresAfterMs: number,
  log: Log,
): AffinityStore {
  const cache = new LRUCache<string, AffinityRecord>({ max: maxCachedPayments });
  const parseOnce = createParseCache(parseAffinityRecord);
  const pending = createPendingWrites<readonly PendingRecord[]>(async (records) => {
    for (const record of records) if (!(await addToExisting(record))) drop(record);
  });
  pubsub.subscribe(channel, (key) => void cache.delete(key)); // the cached record may lack the new affinity

  function environmentsOf(paymentId: string, ...tenantIds: readonly string[]): FoundAffinities {
    const key = keyOf(paymentId);
    if (keyValues.readNow) return affinitiesIn(key, keyValues.readNow(key), tenantIds);
    return keyValues.read(key).then(
      (raw) => affinitiesIn(key, raw, tenantIds),
      (thrown: unknown) => cachedAffinities(key, tenantIds, thrown),
    );
  }

  /** @param raw the stored record, if any */
  function affinitiesIn(
    key: string,
    raw: string | undefined,
    tenantIds: readonly string[],
  ): readonly PaymentAffinity[] {
    if (raw === undefined) return cache.get(key)?.affinities ?? pendingAffinities(key);
    let record: AffinityRecord;
    try {
      record = parseOnce(key, raw);
    } catch (thrown) {
      return cachedAffinities(key, tenantIds, thrown);
    }
    if (isRenewalDue(record)) renew(key, raw, record);
    return mergeIntoCache(key, record);
  }

  /** @param thrown why the state cannot answer; thrown again if this instance cannot answer either */
  function cachedAffinities(
    key: string,
    tenantIds: readonly string[],
    thrown: unknown,
  ): readonly PaymentAffinity[] {
    const cached = cache.get(key)?.affinities ?? [];
    if (cached.some(({ tenant }) => tenantIds.includes(tenant))) return cached;
    throw thrown;
  }

  const isRenewalDue = ({ retention, renewedAt }: AffinityRecord) =>
    retention === 'expiring' && Date.now() - renewedAt > Math.min(renewEveryMs, expiresAfterMs / 2);

  /** In the background: if it fails, the next use tries again. */
  function renew(key: string, raw: string, record: AffinityRecord): void {
    const renewed = serializeAffinityRecord({ ...record, renewedAt: Date.now() });
    keyValues.replace(key, raw, renewed, expiresAfterMs).catch(() => {});
  }

  /** Adds the cached and pending affinities to a record, unless the record assigns the payment to another tenant. */
  function mergeIntoCache(key: string, record: AffinityRecord): readonly PaymentAffinity[] {
    if (keyValues.readNow) return record.affinities; // this state is never unavailable
    if (cache.get(key) === record && pending.size() === 0) return record.affinities; // nothing has changed
    const own = [...(cache.peek(key)?.affinities ?? []), ...pendingAffinities(key)];
    const merged = own
      .filter(
        (affinity) => !belongsToOther(record.affinities, { affinity, isForeign: isForeignTo(affinity) }),
      )
      .reduce((sum, affinity) => withAffinity(sum, affinity, record), record);
    cache.set(key, merged);
    return merged.affinities;
  }

  const pendingAffinities = (key: string) => (pending.get(key) ?? []).map(({ affinity }) => affinity);

  function recordEnvironment(
    paymentId: string,
    affinity: PaymentAffinity,
    retention: AffinityRetention,
    isForeign = isForeignTo(affinity),
    onWrite?: (isCreated: Promise<boolean>) => void,
  ): boolean | Promise<boolean> {
    const added = { key: keyOf(paymentId), affinity, retention, isForeign };
    if (belongsToOther(cache.peek(added.key)?.affinities, added)) return false;
    const record = withAffinity(undefined, affinity, { retention, renewedAt: Date.now() });
    const isCreated = keyValues.writeIfAbsent(added.key, serializeAffinityRecord(record), ttlOf(record));
    onWrite?.(isCreated);
    return whenKnown(
      isCreated,
      (created): boolean | Promise<boolean> => {
        if (!created) return addToExisting(added).catch((thrown: unknown) => keepPending(added, thrown));
        mergeIntoCache(added.key, record); // a new payment usually has no record
        return true;
      },
      (thrown: unknown) => keepPending(added, thrown),
    );
  }

  function keepPending(added: PendingRecord, thrown: unknown): true {
    const { key, affinity, retention } = added;
    mergeIntoCache(key, withAffinity(undefined, affinity, { retention, renewedAt: Date.now() }));
    const isFirst = pending.size() === 0; // logged once, not for every payment
    if (pending.size() < maxCachedPayments) pending.add(key, [...(pending.get(key) ?? []), added]);
    if (isFirst)
      log(
        'error',
        'shared state unavailable: the environments of new payments are stored only on this instance for now',
        { why: reasonOf(asGatewayError(thrown)) },
      );
    return true;
  }

  /** Adds an affinity to the stored record, or creates the record. @returns false if the payment belongs to another tenant */
  async function addToExisting(added: PendingRecord): Promise<boolean> {
    for (;;) {
      const result = await tryWrite(added, await keyValues.read(added.key));
      if (result !== 'changed') return result === 'stored';
    }
  }

  /** @param raw the stored record, if any */
  async function tryWrite(
    added: PendingRecord,
    raw: string | undefined,
  ): Promise<'stored' | 'foreign' | 'changed'> {
    const { key, affinity, retention } = added;
    const current = raw === undefined ? undefined : parseAffinityRecord(raw);
    if (belongsToOther(current?.affinities, added)) return 'foreign';
    const record = withAffinity(current, affinity, { retention, renewedAt: Date.now() });
    const next = serializeAffinityRecord(record);
    const isStored = await (raw === undefined
      ? keyValues.writeIfAbsent(key, next, ttlOf(record))
      : keyValues.replace(key, raw, next, ttlOf(record)));
    if (!isStored) return 'changed';
    mergeIntoCache(key, record);
    const isInitiationLost = current !== undefined && record.affinities !== current.affinities;
    if (record.affinities.length > 1 || isInitiationLost) await pubsub.publish(channel, key);
    return 'stored';
  }

  const ttlOf = ({ retention }: AffinityRecord) => (retention === 'permanent' ? undefined : expiresAfterMs);

  /** The affinity was recorded while the state was unavailable, and the payment already belongs to another tenant. */
  function drop({ key, affinity }: PendingRecord): void {
    cache.delete(key);
    const what = 'a payment recorded during an outage belongs to another tenant; the other tenant keeps it';
    log('error', what, { environment: affinity.environment, tenant: affinity.tenant });
  }

  function lastSeen(paymentId: string): readonly PaymentAffinity[] {
    const key = keyOf(paymentId);
    const raw = keyValues.readNow?.(key);
    if (raw === undefined) return cache.peek(key)?.affinities ?? [];
    try {
      return parseOnce(key, raw).affinities;
    } catch {
      return []; // stages that need the record report that it is unreadable
    }
  }

  async function flush(): Promise<void> {
    if (pending.size() === 0) return;
    await pending.flush();
    if (pending.size() === 0)
      log('info', 'the environments of all payments are stored in the shared state again');
  }

  return {
    environmentsOf,
    lastSeen,
    recordEnvironment,
    flush,
  };
}

const isForeignTo =
  ({ environment, tenant }: PaymentAffinity): IsForeign =>
  (recorded) =>
    recorded.environment === environment && recorded.tenant !== tenant;

/**
 * Whether recorded affinities assign the payment to another tenant only. A release before this rule may have recorded several
 * tenants: all of them keep the payment.
 */
const belongsToOther = (
  recorded: readonly PaymentAffinity[] = [],
  { affinity, isForeign }: Pick<PendingRecord, 'affinity' | 'isForeign'>,
): boolean =>
  recorded.some(isForeign) &&
  !recorded.some(
    ({ environment, tenant }) => environment === affinity.environment && tenant === affinity.tenant,
  );

/** The error's message, and that of its cause. */
const reasonOf = ({ message, cause }: Error) =>
  cause instanceof Error ? `${message} (${cause.message})` : message;

/** Only the hash of the payment id is stored. */
const keyOf = (paymentId: string) => hashPaymentId(paymentId).key;
