/** What operators see of the shared state: in `GET /api/state` and in the console. */

import type { LossReport } from '../idempotency/loss-guard.ts';
import { isoTimeOrNull } from './iso-time.ts';

export interface StateView {
  readonly status: LossReport['status'];
  /** Since when new payments are refused: ISO 8601, UTC. */
  readonly since: string | null;
  readonly cause: string | null;
  /** Instances that may have sent payments and have not registered. */
  readonly missing: readonly { readonly instance: string; readonly lastSeen: string | null }[];
  /** Whether no instance remembers all payments that may be lost. */
  readonly uncovered: boolean;
}

export function viewState({ status, since, cause, missing, isUncovered }: LossReport): StateView {
  return {
    status,
    since: isoTimeOrNull(since),
    cause: cause ?? null,
    missing: missing.map(({ instance, lastSeen }) => ({ instance, lastSeen: isoTimeOrNull(lastSeen) })),
    uncovered: isUncovered,
  };
}
