/**
 * The concurrency slots of this instance for calls to one environment: each running call holds one. A call starts only if
 * enough slots remain free, so that slow calls of one lane do not block the others (ADR 76):
 *
 * | call | slots that remain free |
 * |---|---|
 * | payment | none |
 * | read | the reserve, for payments |
 * | status read | 1.5 times the reserve, for payments and reads |
 *
 * If several tenants may call the environment, one tenant may hold all slots but twice the reserve, and the same limits
 * apply within its share. So a tenant whose calls all hang leaves slots for each lane of the others, and its reads leave
 * slots for its own payments. With very few slots, each lane may still use one.
 */

import type { ShapingSettings } from '../../config/schema.ts';
import type { Lane } from '../../pis/operations.ts';

export interface ConcurrencySlots {
  /** How many more calls of this lane may start: of this tenant, or of all tenants together. 0 or less = none. */
  free(lane: Lane, tenant?: string): number;
  take(tenant: string): void;
  release(tenant: string): void;
  running(): number;
  /** The tenants that hold their whole share; none if only one tenant may call the environment. */
  tenantsAtLimit(): readonly string[];
}

/** @param isShared whether several tenants may call the environment, even if only one does at the moment */
export function createConcurrencySlots(
  { maxConcurrent, reserve }: Pick<ShapingSettings, 'maxConcurrent' | 'reserve'>,
  isShared: boolean,
): ConcurrencySlots {
  const reserved = Math.max(1, Math.round(maxConcurrent * reserve));
  const share = isShared ? shareOfTenant(maxConcurrent, reserved) : maxConcurrent;
  const limits = limitsWithin(maxConcurrent, reserved);
  const tenantLimits = limitsWithin(share, reserved);
  /** Running calls by tenant, of every tenant that has called. */
  const byTenant = new Map<string, number>();
  const runningOf = (tenant: string) => byTenant.get(tenant) ?? 0;
  let running = 0;

  return {
    free(lane, tenant) {
      const free = limits[lane] - running;
      return tenant === undefined ? free : Math.min(free, tenantLimits[lane] - runningOf(tenant));
    },
    take(tenant) {
      running += 1;
      byTenant.set(tenant, runningOf(tenant) + 1);
    },
    release(tenant) {
      running -= 1;
      byTenant.set(tenant, runningOf(tenant) - 1);
    },
    running: () => running,
    tenantsAtLimit: () =>
      isShared ? [...byTenant.keys()].filter((tenant) => runningOf(tenant) >= share) : [],
  };
}

/** At least two slots, for a read and a payment, as long as one remains for the others. */
const shareOfTenant = (slots: number, reserved: number): number =>
  Math.max(1, Math.min(2, slots - 1), slots - 2 * reserved);

const limitsWithin = (slots: number, reserved: number): Readonly<Record<Lane, number>> => ({
  write: slots,
  read: Math.max(1, slots - reserved),
  status: Math.max(1, slots - reserved - Math.ceil(reserved / 2)),
});
