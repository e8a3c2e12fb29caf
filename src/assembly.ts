/** What one configuration makes of the gateway; a reload builds it anew, and running requests end in the old one. */

import type { RequestListener } from 'node:http';
import type { Config, EnvironmentSettings } from './config/schema.ts';
import type { ActiveEnvironment } from './environments/active-environment.ts';
import type { Affinity } from './environments/affinity.ts';
import { type PreflightReport, preflight } from './environments/preflight.ts';
import { createNetworkOf } from './http/caller-network.ts';
import { createClients } from './http/clients.ts';
import type { Overload } from './http/overload.ts';
import { createPisApp } from './http/pis-app.ts';
import { createQuotas } from './http/quota.ts';
import { createRequestReader } from './http/read-request.ts';
import { createGuard, type LastingLedger } from './idempotency/create-ledger.ts';
import { pipeline } from './pipeline.ts';
import { createMatcher } from './pis/operations.ts';
import type { Reservations } from './state/ports.ts';
import { createStatusCache, type LastingStatus, type Purge } from './status-cache/create-status-cache.ts';
import type { Telemetry } from './telemetry/create-telemetry.ts';
import type { Log } from './telemetry/log.ts';
import { observeRefusal } from './telemetry/observe.ts';
import { createAgent } from './upstream/agent.ts';
import {
  createUpstreams,
  type Shared,
  type UpstreamNews,
  type Upstreams,
} from './upstream/create-upstreams.ts';
import { readCredentials } from './upstream/credentials.ts';

/** What outlives a reload. */
export interface Lasting {
  readonly log: Log;
  readonly active: ActiveEnvironment;
  readonly affinity: Affinity;
  readonly ledger: LastingLedger;
  readonly status: LastingStatus;
  readonly telemetry: Pick<Telemetry, 'observer' | 'beginTrace'>;
  readonly towardsBanks: Shared;
  /** Counts what each client sends. */
  readonly quotaTurns: Reservations;
  /** Sheds load. */
  readonly overload: Overload;
  /** What is wrong with the shared state, if anything. */
  readonly stateTrouble: () => string | undefined;
}

export interface Assembly {
  readonly config: Config;
  /** The ways to the bank; closed when another assembly takes over. */
  readonly upstreams: Upstreams;
  readonly serve: RequestListener;
  /** Makes every instance forget what is kept of a payment, or of all. @throws GatewayError STATE_UNAVAILABLE */
  readonly purge: Purge;
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly tryOut: (environment: string) => Promise<PreflightReport> | undefined;
}

/** @throws Error if a file that the configuration names cannot be used; nothing has changed then */
export function assemble(config: Config, lasting: Lasting): Assembly {
  const { log, telemetry, active, affinity, ledger, status, towardsBanks, stateTrouble } = lasting;
  const { observer, beginTrace } = telemetry;
  const { listen, standard, deadlines } = config;
  const environments = new Map(config.environments.all.map((environment) => [environment.name, environment]));
  const upstreams = createUpstreams(config, towardsBanks, newsOf(log));
  const cache = createStatusCache(config, status);

  const line = pipeline({
    ...{ log, observer, beginTrace },
    environments,
    tenants: new Set(config.clients.map(({ tenant }) => tenant)).size || 1,
    active,
    affinity,
    stateTrouble,
    ifStateFails: config.idempotency.ifStateFails,
    guard: createGuard(config, ledger),
    statusCache: cache,
    publicUrl: listen.publicUrl,
    segment: standard.segment,
    upstreamTo: upstreams.to,
  });
  const read = createRequestReader({
    match: createMatcher(standard),
    admit: lasting.overload.admit,
    identify: createClients(config.clients, [...environments.keys()]),
    checkQuota: createQuotas(config.clients, lasting.quotaTurns),
    environments: [...environments.keys()],
    maxBodyBytes: listen.maxBody,
    deadlineMs: deadlines,
  });

  return {
    config,
    upstreams,
    purge: cache.purge,
    serve: createPisApp({
      read,
      line,
      networkOf: createNetworkOf(listen.trustedProxies),
      refused: observeRefusal(observer),
    }),
    tryOut: (name) => {
      const environment = environments.get(name);
      return environment && tryOut(environment, config);
    },
  };
}

/** Over a connection of its own: nothing pooled is taken for a proof. */
async function tryOut(environment: EnvironmentSettings, { upstream }: Config): Promise<PreflightReport> {
  const agent = createAgent(environment, upstream, readCredentials(environment.tls));
  try {
    return await preflight({ url: environment.baseUrl + environment.probePath, agent });
  } finally {
    agent.destroy();
  }
}

/** What happens on the way to the bank beside the requests. */
function newsOf(log: Log): UpstreamNews {
  return {
    circuitChanged({ environment, lane, from, to, why }) {
      log('warn', 'a circuit has changed', { environment, lane, from, to, why });
    },
  };
}
