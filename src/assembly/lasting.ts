/** What outlives a reload of the configuration: built once, before anything is assembled. */

import type { HeldCertificate } from '../certificates/held.ts';
import type { Config } from '../config/schema.ts';
import { type ActiveEnvironment, createActiveEnvironment } from '../environments/active-environment.ts';
import { type Affinity, createAffinity } from '../environments/affinity.ts';
import { type Audit, createAudit } from '../environments/audit.ts';
import { createOverload, type Overload } from '../http/overload.ts';
import { createLastingLedger, type LastingLedger } from '../idempotency/create-ledger.ts';
import { confidential } from '../state/create-state.ts';
import { insuredReservations } from '../state/insured-reservations.ts';
import type { Reservations, State } from '../state/ports.ts';
import { createLastingStatus, type LastingStatus } from '../status-cache/create-status-cache.ts';
import { createTelemetry, type Telemetry } from '../telemetry/create-telemetry.ts';
import type { Log } from '../telemetry/log.ts';
import { observeLoad } from '../telemetry/observe-load.ts';
import { createInstanceWatch } from '../telemetry/watch-instances.ts';
import { createHolds, type Holds } from '../upstream/circuit/holds.ts';
import type { Shared, Upstreams } from '../upstream/create-upstreams.ts';
import { createBankLimits } from '../upstream/shaping/bank-limits.ts';
import { createBankTurns } from '../upstream/shaping/bank-turns.ts';
import { createHeart, type Heart } from './heart.ts';
import { createPulse, type Pulse } from './pulse.ts';

/** What every assembly works with. */
export interface Lasting {
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly active: ActiveEnvironment;
  readonly affinity: Affinity;
  readonly audit: Audit;
  readonly ledger: LastingLedger;
  readonly status: LastingStatus;
  readonly holds: Holds;
  readonly towardsBanks: Shared;
  /** Counts what each client sends. */
  readonly quotaTurns: Reservations;
  /** How many payments are in doubt, of all instances; `undefined` until it is known. */
  readonly inDoubt: () => number | undefined;
  /** Sheds load. */
  readonly overload: Overload;
  /** Told of a connection that there was no room for. */
  readonly connectionRefused: () => void;
  readonly pulse: Pulse;
  /** What else is done regularly. After an outage it may take long, and an instance without pulse counts as dead. */
  readonly chores: Heart;
  /** Learns what the other instances know. Never fails: out of reach, the pulse goes on trying. */
  readonly learn: () => Promise<void>;
}

/** What is looked at of the configuration in effect. */
interface Seen {
  readonly current: () => {
    readonly config: Config;
    readonly upstreams: Pick<Upstreams, 'circuits' | 'shapers'>;
  };
  /** All of this instance. */
  readonly certificates: () => readonly HeldCertificate[];
}

/** @param state where it is kept */
export function createLasting(config: Config, log: Log, state: State, seen: Seen): Lasting {
  const { current, certificates } = seen;
  const expected = () => current().config.shaping.expectedInstances;
  const telemetry = createTelemetry(log, config.tracing, {
    circuits: () => current().upstreams.circuits(),
    shapers: () => current().upstreams.shapers(),
    certificates,
    liveInstances: () => instances.live(),
    expectedInstances: expected,
  });
  const { metrics } = telemetry;
  const { shedding, connectionRefused } = observeLoad(log, metrics);

  const active = createActiveEnvironment(state, config.environments.active, log);
  const affinity = createAffinity(state, config.payments.rememberFor, log);
  const sealed = { ...state, keyValues: confidential(state, config.state) };
  let inDoubt: number | undefined;
  const ledger = createLastingLedger(sealed, log, (count) => {
    inDoubt = count;
    metrics.set('penstock_in_doubt', {}, count);
  });
  const status = createLastingStatus(sealed);

  const holds = createHolds(state);
  const limits = createBankLimits(state);
  const turns = createBankTurns(state.reservations, {
    expectedInstances: expected,
    told(alone) {
      const what = alone ? 'with a part of the rate for itself' : 'together with the others again';
      log('warn', `this instance shapes its calls ${what}`);
      metrics.set('penstock_shaping_alone', {}, Number(alone));
    },
  });

  const instances = createInstanceWatch({ count: ledger.holders.count, expected, log });
  const pulse = createPulse({ state, active, holders: ledger.holders, holds });
  const chores = createHeart(async () => {
    const { places, forgetting } = status;
    const settled = [affinity.settle(), ledger.tidy(), forgetting.settle()];
    await Promise.allSettled([...settled, places.refresh(), limits.refresh(), instances.look()]);
    return pulse.nextMs();
  });

  return {
    log,
    telemetry,
    active,
    affinity,
    ledger,
    status,
    holds,
    pulse,
    chores,
    overload: createOverload(shedding),
    connectionRefused,
    audit: createAudit(state.keyValues, log),
    towardsBanks: { turns, limits, holds },
    quotaTurns: insuredReservations(state.reservations, { part: () => 1, beginsWith: 'all of it' }),
    inDoubt: () => inDoubt,
    async learn() {
      await Promise.allSettled([
        active.read(),
        ledger.holders.introduce(),
        holds.refresh(),
        limits.refresh(),
      ]);
    },
  };
}
