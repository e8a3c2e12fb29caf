/** The objects that outlive a reload of the configuration. Created once, before the first request handler. */

import type { Config } from './config/schema.ts';
import { type ActiveEnvironment, createActiveEnvironment } from './environments/active-environment.ts';
import { type AffinityStore, createAffinityStore } from './environments/affinity.ts';
import { type AuditLog, createAuditLog } from './environments/audit-log.ts';
import { createLoadShedder, type LoadShedder, reportShedding } from './http/load-shedding.ts';
import { createLedgerServices, type LedgerServices } from './idempotency/ledger.ts';
import { createPeriodicTask, type PeriodicTask } from './periodic-task.ts';
import { withEncryption } from './state/create-state.ts';
import { createFallbackLimiter } from './state/fallback-limiter.ts';
import type { State, TokenBuckets } from './state/ports.ts';
import { createStateHeartbeat, type StateHeartbeat } from './state-heartbeat.ts';
import { createStatusCacheServices, type StatusCacheServices } from './status-cache/cache-status.ts';
import { createTelemetry, type Telemetry } from './telemetry/create-telemetry.ts';
import type { Log } from './telemetry/log.ts';
import { createHolds, type Holds } from './upstream/circuit/holds.ts';
import { createAdaptiveRates } from './upstream/shaping/adaptive-rate.ts';
import { createSharedPermits } from './upstream/shaping/permits.ts';
import type { SharedUpstreamState } from './upstream/upstreams.ts';

export interface Services {
  /** Written at a reload, by the request handlers. */
  readonly currentConfig: CurrentConfig;
  readonly telemetry: Telemetry;
  readonly state: State;
  readonly stateHeartbeat: StateHeartbeat;
  readonly activeEnvironment: ActiveEnvironment;
  readonly affinity: AffinityStore;
  readonly audit: AuditLog;
  readonly ledger: LedgerServices;
  readonly statusCache: StatusCacheServices;
  readonly holds: Holds;
  readonly upstream: SharedUpstreamState;
  /** Token buckets of the clients' quotas. */
  readonly quotaLimiter: TokenBuckets;
  readonly loadShedding: LoadShedder;
  /** Flushes pending writes and refreshes shared data. Not in the heartbeat: it may be slow after an outage. */
  readonly maintenance: PeriodicTask;
  /** Reads the data of the other instances. Never rejects: the heartbeat tries again. */
  readonly loadSharedState: () => Promise<void>;
}

/** The configuration in effect. Services that depend on a reloadable setting read it here at each use. */
export interface CurrentConfig {
  value: Config;
}

export function createServices(config: Config, log: Log, state: State): Services {
  const currentConfig: CurrentConfig = { value: config };
  const expectedInstances = () => currentConfig.value.shaping.expectedInstances;
  const telemetry = createTelemetry(log, config.tracing);
  const { metrics } = telemetry;

  const activeEnvironment = createActiveEnvironment(state, config.environments.active, log);
  const affinity = createAffinityStore(state, config.payments.rememberFor, log);
  const encryptedState = { ...state, keyValues: withEncryption(state, config.state) };
  const ledger = createLedgerServices(encryptedState, log);
  metrics.addGaugeSource('penstock_in_doubt', () => {
    const count = ledger.inDoubtCount();
    return count === undefined ? [] : [{ labels: {}, value: count }];
  });
  const statusCache = createStatusCacheServices(encryptedState);

  const holds = createHolds(state);
  const adaptiveRates = createAdaptiveRates(state);
  const permits = createSharedPermits(state.tokenBuckets, expectedInstances, telemetry);

  const { instanceLeases } = ledger;
  const instanceCounter = createInstanceCounter(instanceLeases.countLive, expectedInstances, telemetry);
  const stateHeartbeat = createStateHeartbeat({ state, activeEnvironment, instanceLeases, holds });
  const maintenance = createPeriodicTask(async () => {
    await Promise.allSettled([
      affinity.flush(),
      ledger.maintain(),
      statusCache.invalidation.flush(),
      statusCache.cacheKeys.refreshSecret(),
      adaptiveRates.refresh(),
      instanceCounter.refresh(),
    ]);
    return stateHeartbeat.nextIntervalMs();
  });

  return {
    currentConfig,
    telemetry,
    state,
    stateHeartbeat,
    activeEnvironment,
    affinity,
    audit: createAuditLog(state.keyValues, log),
    ledger,
    statusCache,
    holds,
    upstream: { permits, adaptiveRates, holds },
    quotaLimiter: createFallbackLimiter(state.tokenBuckets, { share: () => 1, initialFill: 'full' }),
    loadShedding: createLoadShedder(reportShedding(log, metrics)),
    maintenance,
    async loadSharedState() {
      await Promise.allSettled([
        activeEnvironment.read(),
        instanceLeases.register(),
        holds.refresh(),
        adaptiveRates.refresh(),
      ]);
    },
  };
}

interface InstanceCounter {
  /** To be called every second; counts at every fifth call. Never rejects. */
  refresh(): Promise<void>;
}

const refreshesPerCount = 5;

/**
 * Counts the live instances, and warns of more than expected: in an outage of the state they would exceed the bank's rate.
 *
 * @param countLive         counts the instances that share the state, this one included; may reject
 * @param expectedInstances `shaping.expectedInstances`
 */
export function createInstanceCounter(
  countLive: () => Promise<number>,
  expectedInstances: () => number,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
): InstanceCounter {
  let refreshes = 0;
  let live: number | undefined;
  let hasWarned = false;
  metrics.addGaugeSource('penstock_instances_live', () =>
    live === undefined ? [] : [{ labels: {}, value: live }],
  );
  metrics.addGaugeSource('penstock_instances_expected', () => [{ labels: {}, value: expectedInstances() }]);
  return {
    async refresh() {
      if (refreshes++ % refreshesPerCount !== 0) return;
      live = await countLive().catch(() => live);
      const expected = expectedInstances();
      const tooMany = (live ?? 0) > expected;
      if (tooMany && !hasWarned)
        log('warn', 'more instances are alive than shaping.expectedInstances says', { live, expected });
      hasWarned = tooMany;
    },
  };
}
