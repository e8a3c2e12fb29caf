/** Turns at the banks, shared by all instances; goes on whatever becomes of the state. */

import { createFallbackLimiter } from '../../state/fallback-limiter.ts';
import { createOptimisticLimiter } from '../../state/optimistic-limiter.ts';
import type { TokenBuckets } from '../../state/ports.ts';

interface BankPermitSettings {
  /** How many instances there are supposed to be: without the state, each takes its part. */
  readonly expectedInstances: () => number;
  /** Told whenever this instance begins to go on alone, and when it is with the others again. */
  readonly onFallback: (alone: boolean) => void;
}

/** Never fails, and hardly waits for a state that is slow. */
export function createBankPermits(
  shared: TokenBuckets,
  { expectedInstances, onFallback }: BankPermitSettings,
): TokenBuckets {
  const part = () => 1 / expectedInstances();
  return createFallbackLimiter(createOptimisticLimiter(shared, part), {
    share: part,
    initialFill: 'empty',
    onFallback,
  });
}
