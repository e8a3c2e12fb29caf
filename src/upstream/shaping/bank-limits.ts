/** What the banks have said of their limits, of each environment; outlives a reload. */

import type { BucketRate } from '../../state/ports.ts';
import { type BankLimit, createBankLimit, type Parts } from './bank-limit.ts';

export interface BankLimits {
  /** The one of this environment, with this rate configured from now on. */
  of(environment: string, configured: BucketRate): BankLimit;
  /** Reads what others were told; for the heartbeat. */
  refresh(): Promise<void>;
}

/** Nothing is known yet. */
export function createBankLimits(parts: Parts): BankLimits {
  const limits = new Map<string, BankLimit>();
  return {
    of(environment, configured) {
      const limit = limits.get(environment) ?? createBankLimit(environment, configured, parts);
      limit.configure(configured);
      limits.set(environment, limit);
      return limit;
    },
    async refresh() {
      await Promise.all(Array.from(limits.values(), (limit) => limit.refresh()));
    },
  };
}
