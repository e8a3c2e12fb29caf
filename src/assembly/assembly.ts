/** What one configuration makes of the gateway; a reload builds it anew, and running requests end in the old one. */

import type { RequestListener } from 'node:http';
import type { EnvironmentView } from '../admin/routes.ts';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import { type PreflightReport, preflight } from '../environments/preflight.ts';
import { createNetworkOf } from '../http/caller-network.ts';
import { createClients } from '../http/clients.ts';
import { createPisApp } from '../http/pis-app.ts';
import { createQuotas } from '../http/quota.ts';
import { createRequestReader } from '../http/read-request.ts';
import { createGuard } from '../idempotency/create-ledger.ts';
import { pipeline } from '../pipeline.ts';
import { createMatcher } from '../pis/operations.ts';
import { createStatusCache, type Purge } from '../status-cache/create-status-cache.ts';
import { createCertificateNews } from '../telemetry/certificate-news.ts';
import type { Log } from '../telemetry/log.ts';
import { observeRefusal } from '../telemetry/observe.ts';
import { createUpstreams, type UpstreamNews, type Upstreams } from '../upstream/create-upstreams.ts';
import { viewsOf } from './environment-views.ts';
import type { Lasting } from './lasting.ts';

/** The line of one configuration, and what belongs to it. */
export interface Assembly {
  readonly config: Config;
  /** The ways to the bank; closed when another assembly takes over. */
  readonly upstreams: Upstreams;
  readonly serve: RequestListener;
  /** Makes every instance forget what is kept of a payment, or of all. @throws GatewayError STATE_UNAVAILABLE */
  readonly purge: Purge;
  /** As operators see them. */
  readonly environments: () => readonly EnvironmentView[];
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly tryOut: (environment: string) => Promise<PreflightReport> | undefined;
}

/** @throws Error if a file that the configuration names cannot be used; nothing has changed then */
export function assemble(config: Config, lasting: Lasting): Assembly {
  const { log, telemetry, active, affinity, ledger, status, towardsBanks } = lasting;
  const { observer, beginTrace } = telemetry;
  const { listen, standard, deadlines } = config;
  const environments = new Map(config.environments.all.map((environment) => [environment.name, environment]));
  const upstreams = createUpstreams(config, towardsBanks, newsOf(log));
  const cache = createStatusCache(config, status);

  const line = pipeline({
    log,
    observer,
    beginTrace,
    environments,
    tenants: new Set(config.clients.map(({ tenant }) => tenant)).size || 1,
    active,
    affinity,
    stateTrouble: lasting.pulse.trouble,
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
    environments: () => viewsOf(config.environments.all, upstreams),
    purge: cache.purge,
    serve: createPisApp({
      read,
      line,
      networkOf: createNetworkOf(listen.trustedProxies),
      refused: observeRefusal(observer),
    }),
    tryOut: (name) => {
      const environment = environments.get(name);
      return environment && tryOut(environment, upstreams);
    },
  };
}

/** Over a connection of its own: nothing pooled is taken for a proof. */
async function tryOut(environment: EnvironmentSettings, upstreams: Upstreams): Promise<PreflightReport> {
  const { agent, headers } = await upstreams.trial(environment.name);
  try {
    return await preflight({ url: environment.baseUrl + environment.probePath, agent, headers });
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
    certificates: createCertificateNews(log),
  };
}
