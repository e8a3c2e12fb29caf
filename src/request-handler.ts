/** What one configuration makes of the gateway; a reload builds it anew, and running requests end in the old one. */

import type { RequestListener } from 'node:http';
import type { EnvironmentView } from './admin/admin-api.ts';
import { certificateView } from './certificates/installed-certificates.ts';
import type { Config, EnvironmentSettings } from './config/schema.ts';
import { type PreflightReport, preflight } from './environments/preflight.ts';
import { createClientAuthenticator } from './http/authenticate-client.ts';
import { createNetworkOf } from './http/client-network.ts';
import { createQuotaCheck } from './http/quota.ts';
import { createRequestReader } from './http/read-request.ts';
import { createTppApp } from './http/tpp-app.ts';
import { createIdempotencyDependencies } from './idempotency/ledger-services.ts';
import { createPipeline } from './pipeline.ts';
import { createMatcher } from './pis/operations.ts';
import type { Services } from './services.ts';
import { createStatusCache, type Purge } from './status-cache/cache-status.ts';
import { createCertificateLog } from './telemetry/certificate-log.ts';
import type { Log } from './telemetry/log.ts';
import { observeRefusal } from './telemetry/observe.ts';
import { createUpstreams, type UpstreamEvents, type Upstreams } from './upstream/upstreams.ts';

/** The line of one configuration, and what belongs to it. */
export interface RequestHandler {
  readonly config: Config;
  /** The ways to the bank; closed when another assembly takes over. */
  readonly upstreams: Upstreams;
  readonly serve: RequestListener;
  /** Makes every instance forget what is kept of a payment, or of all. @throws GatewayError STATE_UNAVAILABLE */
  readonly purgeStatusCache: Purge;
  /** As operators see them. */
  readonly environmentViews: () => readonly EnvironmentView[];
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
}

/** @throws Error if a file that the configuration names cannot be used; nothing has changed then */
export function createRequestHandler(config: Config, services: Services): RequestHandler {
  const { log, telemetry, activeEnvironment, affinity, ledger, statusCache, upstream } = services;
  const { observer, startTrace } = telemetry;
  const { listen, standard, deadlines } = config;
  const environments = new Map(config.environments.all.map((environment) => [environment.name, environment]));
  const upstreams = createUpstreams(config, upstream, upstreamEvents(log));
  const cache = createStatusCache(config, statusCache);

  const handle = createPipeline({
    log,
    observer,
    beginTrace: startTrace,
    environments,
    tenants: new Set(config.clients.map(({ tenant }) => tenant)).size || 1,
    active: activeEnvironment,
    affinity,
    stateProblem: services.stateHeartbeat.problem,
    ifStateFails: config.idempotency.ifStateFails,
    idempotency: createIdempotencyDependencies(config, ledger),
    statusCache: cache,
    publicUrl: listen.publicUrl,
    segment: standard.segment,
    upstreamFor: upstreams.of,
  });
  const read = createRequestReader({
    match: createMatcher(standard),
    admit: services.loadShedding.admit,
    authenticate: createClientAuthenticator(config.clients, [...environments.keys()]),
    checkQuota: createQuotaCheck(config.clients, services.quotaLimiter),
    environments: [...environments.keys()],
    maxBodyBytes: listen.maxBody,
    deadlineMs: deadlines,
  });

  return {
    config,
    upstreams,
    environmentViews: () => viewEnvironments(config.environments.all, upstreams),
    purgeStatusCache: cache.purge,
    serve: createTppApp({
      readRequest: read,
      pipeline: handle,
      networkOf: createNetworkOf(listen.trustedProxies),
      onRefused: observeRefusal(observer),
    }),
    preflight: (name) => {
      const environment = environments.get(name);
      return environment && runPreflight(environment, upstreams);
    },
  };
}

/** Over a connection of its own: nothing pooled is taken for a proof. */
async function runPreflight(
  environment: EnvironmentSettings,
  upstreams: Upstreams,
): Promise<PreflightReport> {
  const { agent, headers } = await upstreams.preflight(environment.name);
  try {
    return await preflight({ url: environment.baseUrl + environment.probePath, agent, headers });
  } finally {
    agent.destroy();
  }
}

/** What happens on the way to the bank beside the requests. */
function upstreamEvents(log: Log): UpstreamEvents {
  return {
    onCircuitChange({ environment, lane, from, to, why }) {
      log('warn', 'a circuit has changed', { environment, lane, from, to, why });
    },
    certificates: createCertificateLog(log),
  };
}

// MERGED HEADER (rewrite or remove):
/* The environments of the bank as operators see them: what they are, and how the way to each is. */

/** All of them, in their order; the days that certificates have left are counted from now. */
function viewEnvironments(
  environments: readonly EnvironmentSettings[],
  upstreams: Pick<Upstreams, 'circuits' | 'certificates'>,
): readonly EnvironmentView[] {
  const [circuits, certificates] = [upstreams.circuits(), upstreams.certificates()];
  return environments.map(({ name, baseUrl, standardVersion }) => {
    const certificateFor = (wantedUse: 'qwac' | 'qseal') => {
      const found = certificates.find(({ environment, use }) => environment === name && use === wantedUse);
      return found ? certificateView(found.info, Date.now()) : null;
    };
    return {
      name,
      baseUrl,
      standardVersion,
      circuits: circuits.filter(({ environment }) => environment === name),
      certificate: certificateFor('qwac'),
      signingCertificate: certificateFor('qseal'),
    };
  });
}
