/**
 * Limits how much the ledger stores for one tenant, so that a tenant cannot fill the state that all tenants share.
 *
 * Each stored byte takes a token from a bucket of the tenant, which all instances share. The bucket holds half of
 * `idempotency.maxStoredPerTenant`, and the other half is added during one window, in which the stored entries expire.
 *
 * An instance counts locally, and takes 64 KiB or more from the bucket at once. If the bucket does not hold that much, the
 * instance refuses new writes of the tenant until the bucket has refilled.
 */

import { performance } from 'node:perf_hooks';
import { retryLater } from '../request/errors.ts';
import type { BucketRate, TokenBuckets } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { BoundCounter, Metrics } from '../telemetry/metrics.ts';

export interface StorageBudget {
  /** Counts an entry that was stored for a tenant. @param bytes of its text; 0 if only other records remain of the request */
  countEntry(tenant: string, bytes: number): void;
  /** @throws GatewayError QUOTA_EXCEEDED with the seconds to wait, if new writes of this tenant are refused */
  check(tenant: string): void;
  /** Those whose writes are refused at the moment, on this instance. */
  refusedTenants(): readonly string[];
}

interface StorageBudgetSettings {
  /** Bytes. */
  readonly maxStoredPerTenant: number;
  /** How long entries are stored, in milliseconds. */
  readonly window: number;
}

/** What the state needs for an entry in addition to its text: keys, and the record of the payment's environment. Bytes. */
const overheadBytes = 512;
/** About 30 payments: one command for all of them. */
const minTakenBytes = 64 * 1024;
/** At most one refusal of a tenant is logged in this time. Milliseconds. */
const logPauseMs = 600_000;

/** What this instance knows of the bucket. */
interface Account {
  /** The name contains the limit: a raised limit takes effect at once, with a full bucket. */
  readonly bucket: string;
  readonly maxStoredPerTenant: number;
  readonly storedBytes: BoundCounter;
  /** Counted, but not taken from the bucket yet. */
  pendingBytes: number;
  refusedUntilMs: number;
  loggedAtMs: number;
}

/** @param now milliseconds on a monotonic clock */
export function createStorageBudget(
  buckets: Pick<TokenBuckets, 'reserve'>,
  settings: () => StorageBudgetSettings,
  { metrics, log }: { readonly metrics: Pick<Metrics, 'increment' | 'counter'>; readonly log: Log },
  now: () => number = () => performance.now(),
): StorageBudget {
  /** By tenant. */
  const accounts = new Map<string, Account>();

  function accountOf(tenant: string): Account {
    const { maxStoredPerTenant } = settings();
    const known = accounts.get(tenant);
    if (known?.maxStoredPerTenant === maxStoredPerTenant) return known;
    const account: Account = {
      bucket: `bucket:stored:${maxStoredPerTenant}:${tenant}`,
      maxStoredPerTenant,
      storedBytes: metrics.counter('penstock_stored_bytes_total', { tenant }),
      pendingBytes: 0,
      refusedUntilMs: Number.NEGATIVE_INFINITY,
      loggedAtMs: Number.NEGATIVE_INFINITY,
    };
    accounts.set(tenant, account);
    return account;
  }

  async function takePending(tenant: string, account: Account): Promise<void> {
    const bytes = account.pendingBytes;
    account.pendingBytes = 0;
    try {
      const waitMs = await buckets.reserve(account.bucket, rateOf(bytes, settings()), unlimitedWaitMs);
      if (waitMs) refuseFor(tenant, account, waitMs);
    } catch {
      account.pendingBytes += bytes; // the next entry tries again
    }
  }

  function refuseFor(tenant: string, account: Account, waitMs: number): void {
    const nowMs = now();
    account.refusedUntilMs = nowMs + waitMs;
    if (nowMs - account.loggedAtMs < logPauseMs) return;
    account.loggedAtMs = nowMs;
    const message = 'refusing new writes of a tenant: it has reached idempotency.maxStoredPerTenant';
    log('warn', message, { tenant, seconds: Math.ceil(waitMs / 1_000) });
  }

  return {
    countEntry(tenant, bytes) {
      const account = accountOf(tenant);
      account.storedBytes.value += bytes + overheadBytes;
      account.pendingBytes += bytes + overheadBytes;
      if (account.pendingBytes >= minTakenBytes) void takePending(tenant, account);
    },
    refusedTenants: () =>
      [...accounts].flatMap(([tenant, { refusedUntilMs }]) => (refusedUntilMs > now() ? tenant : [])),
    check(tenant) {
      const leftMs = accountOf(tenant).refusedUntilMs - now();
      if (leftMs <= 0) return;
      metrics.increment('penstock_storage_refusals_total', { tenant });
      const reason = 'This tenant has reached its storage limit (idempotency.maxStoredPerTenant)';
      throw retryLater(leftMs, 'QUOTA_EXCEEDED', reason);
    },
  };
}

/** The entries are stored already, so their tokens are taken even from an empty bucket. Milliseconds. */
const unlimitedWaitMs = Number.MAX_SAFE_INTEGER;

/** The bucket in permits of `bytes` tokens each, so that one permit takes all of them. */
function rateOf(bytes: number, { maxStoredPerTenant, window }: StorageBudgetSettings): BucketRate {
  const capacity = maxStoredPerTenant / 2;
  return {
    perSecond: (capacity * 1_000) / window / bytes,
    burst: capacity / bytes,
    longestAheadMs: 10 * window, // not less: writes in progress can exceed a small budget several times
  };
}
