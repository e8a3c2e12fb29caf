/** What outlives a reload of the configuration: built once, before anything is assembled. */

import type { InstalledCertificate } from './certificates/installed-certificates.ts';
import type { Config } from './config/schema.ts';
import { type ActiveEnvironment, createActiveEnvironment } from './environments/active-environment.ts';
import { type AffinityStore, createAffinityStore } from './environments/affinity.ts';
import { type AuditLog, createAuditLog } from './environments/audit-log.ts';
import { createLoadShedder, type LoadShedder } from './http/load-shedding.ts';
import { createLedgerServices, type LedgerServices } from './idempotency/ledger-services.ts';
import { createPeriodicTask, type PeriodicTask } from './periodic-task.ts';
import { withEncryption } from './state/create-state.ts';
import { createFallbackLimiter } from './state/fallback-limiter.ts';
import type { State, TokenBuckets } from './state/ports.ts';
import { createStateHeartbeat, type StateHeartbeat } from './state-heartbeat.ts';
import { createStatusCacheServices, type StatusCacheServices } from './status-cache/cache-status.ts';
import { createTelemetry, type Telemetry } from './telemetry/create-telemetry.ts';
import { createInstanceCount } from './telemetry/instance-count.ts';
import type { Log } from './telemetry/log.ts';
import { createOverloadLog } from './telemetry/overload-log.ts';
import { createHolds, type Holds } from './upstream/circuit/holds.ts';
import { createAdaptiveRates } from './upstream/shaping/adaptive-rate.ts';
import { createSharedPermits } from './upstream/shaping/permits.ts';
import type { SharedUpstreamState, Upstreams } from './upstream/upstreams.ts';

/** What every assembly works with. */
export interface Services {
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly activeEnvironment: ActiveEnvironment;
  readonly affinity: AffinityStore;
  readonly audit: AuditLog;
  readonly ledger: LedgerServices;
  readonly statusCache: StatusCacheServices;
  readonly holds: Holds;
  readonly upstream: SharedUpstreamState;
  /** Counts what each client sends. */
  readonly quotaLimiter: TokenBuckets;
  /** How many payments are in doubt, of all instances; `undefined` until it is known. */
  readonly inDoubtCount: () => number | undefined;
  /** Sheds load. */
  readonly loadShedding: LoadShedder;
  /** Told of a connection that there was no room for. */
  readonly onConnectionRefused: () => void;
  readonly stateHeartbeat: StateHeartbeat;
  /** What else is done regularly. After an outage it may take long, and an instance without pulse counts as dead. */
  readonly maintenance: PeriodicTask;
  /** Learns what the other instances know. Never fails: out of reach, the pulse goes on trying. */
  readonly loadSharedState: () => Promise<void>;
}

/** What is looked at of the configuration in effect. */
interface CurrentState {
  readonly current: () => {
    readonly config: Config;
    readonly upstreams: Pick<Upstreams, 'circuits' | 'limiters'>;
  };
  /** All of this instance. */
  readonly certificates: () => readonly InstalledCertificate[];
}

/** @param state where it is kept */
export function createServices(config: Config, log: Log, state: State, currentState: CurrentState): Services {
  const { current, certificates } = currentState;
  const expected = () => current().config.shaping.expectedInstances;
  const telemetry = createTelemetry(log, config.tracing, {
    circuits: () => current().upstreams.circuits(),
    shapers: () => current().upstreams.limiters(),
    certificates,
    liveInstances: () => instances.live(),
    expectedInstances: expected,
  });
  const { metrics } = telemetry;
  const { onSheddingChanged, onConnectionRefused } = createOverloadLog(log, metrics);

  const active = createActiveEnvironment(state, config.environments.active, log);
  const affinity = createAffinityStore(state, config.payments.rememberFor, log);
  const encrypted = { ...state, keyValues: withEncryption(state, config.state) };
  let inDoubt: number | undefined;
  const ledger = createLedgerServices(encrypted, log, (count) => {
    inDoubt = count;
    metrics.set('penstock_in_doubt', {}, count);
  });
  const status = createStatusCacheServices(encrypted);

  const holds = createHolds(state);
  const limits = createAdaptiveRates(state);
  const turns = createSharedPermits(state.tokenBuckets, {
    expectedInstances: expected,
    onFallback(alone) {
      const what = alone ? 'with a part of the rate for itself' : 'together with the others again';
      log('warn', `this instance shapes its calls ${what}`);
      metrics.set('penstock_shaping_alone', {}, Number(alone));
    },
  });

  const instances = createInstanceCount({ count: ledger.instanceLeases.countLive, expected, log });
  const pulse = createStateHeartbeat({ state, active, holders: ledger.instanceLeases, holds });
  const chores = createPeriodicTask(async () => {
    const { cacheKeys, invalidation } = status;
    const settled = [affinity.flush(), ledger.maintain(), invalidation.flush()];
    await Promise.allSettled([...settled, cacheKeys.refreshSecret(), limits.refresh(), instances.refresh()]);
    return pulse.nextIntervalMs();
  });

  return {
    log,
    telemetry,
    activeEnvironment: active,
    affinity,
    ledger,
    statusCache: status,
    holds,
    stateHeartbeat: pulse,
    maintenance: chores,
    loadShedding: createLoadShedder(onSheddingChanged),
    onConnectionRefused,
    audit: createAuditLog(state.keyValues, log),
    upstream: { permits: turns, adaptiveRates: limits, holds },
    quotaLimiter: createFallbackLimiter(state.tokenBuckets, { share: () => 1, initialFill: 'full' }),
    inDoubtCount: () => inDoubt,
    async loadSharedState() {
      await Promise.allSettled([
        active.read(),
        ledger.instanceLeases.register(),
        holds.refresh(),
        limits.refresh(),
      ]);
    },
  };
}
