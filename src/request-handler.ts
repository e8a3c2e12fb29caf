/** The request handler: everything that is built from one configuration and replaced at a reload. */

import type { RequestListener } from 'node:http';
import type { EnvironmentView } from './admin/response-schemas.ts';
import { certificateView } from './certificates/installed-certificates.ts';
import type { Config, EnvironmentSettings } from './config/schema.ts';
import { type PreflightReport, preflight } from './environments/preflight.ts';
import { createClientAuthenticator } from './http/authenticate-client.ts';
import { createNetworkOf } from './http/client-network.ts';
import { createQuotaCheck } from './http/quota.ts';
import { createRequestReader } from './http/read-request.ts';
import { createTppApp } from './http/tpp-app.ts';
import { createIdempotencyDependencies } from './idempotency/enforce-idempotency.ts';
import { createPipeline } from './pipeline.ts';
import { createMatcher } from './pis/operations.ts';
import type { Services } from './services.ts';
import { createStatusCache, type Purge } from './status-cache/cache-status.ts';
import { observeRefusal } from './telemetry/observe.ts';
import { createUpstreams, type Upstreams } from './upstream/upstreams.ts';

/** Holds the request handler of the configuration in effect. */
export interface RequestHandlers {
  readonly current: RequestHandler;
  /**
   * Builds the handler of another configuration for all requests to come; running requests end in the previous one.
   *
   * @throws Error if a file that the configuration names cannot be used; the previous handler stays
   */
  replace(config: Config): void;
}

export interface RequestHandler {
  readonly upstreams: Upstreams;
  readonly serve: RequestListener;
  /** Removes a payment, or all payments, from the status caches of all instances. @throws GatewayError STATE_UNAVAILABLE */
  readonly purgeStatusCache: Purge;
  /** The environments for the admin API, in the order of the configuration. */
  readonly environmentViews: () => readonly EnvironmentView[];
  /** Tests the connection to an environment; `undefined` if there is none of that name. */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
}

/** @throws Error if a file that the configuration names cannot be used */
export function createRequestHandlers(config: Config, services: Services): RequestHandlers {
  let current = createRequestHandler(config, services);
  return {
    get current() {
      return current;
    },
    replace(next) {
      const previous = current;
      current = createRequestHandler(next, services);
      services.currentConfig.value = next;
      previous.upstreams.close();
    },
  };
}

function createRequestHandler(config: Config, services: Services): RequestHandler {
  const { telemetry, activeEnvironment, affinity, ledger } = services;
  const { observer, startTrace } = telemetry;
  const { listen, standard, deadlines } = config;
  const environments = new Map(config.environments.all.map((environment) => [environment.name, environment]));
  const upstreams = createUpstreams(config, services.upstream, telemetry);
  const statusCache = createStatusCache(config, services.statusCache);

  const pipeline = createPipeline({
    log: telemetry.log,
    observer,
    startTrace: startTrace,
    environments,
    tenants: new Set(config.clients.map(({ tenant }) => tenant)).size || 1,
    active: activeEnvironment,
    affinity,
    stateProblem: services.stateHeartbeat.problem,
    ifStateFails: config.idempotency.ifStateFails,
    idempotency: createIdempotencyDependencies(config, ledger),
    statusCache,
    publicUrl: listen.publicUrl,
    segment: standard.segment,
    upstreamFor: upstreams.of,
  });
  const readRequest = createRequestReader({
    match: createMatcher(standard),
    admit: services.loadShedding.admit,
    authenticate: createClientAuthenticator(config.clients, [...environments.keys()]),
    checkQuota: createQuotaCheck(config.clients, services.quotaLimiter),
    environments: [...environments.keys()],
    maxBodyBytes: listen.maxBody,
    deadlineMs: deadlines,
  });

  return {
    upstreams,
    serve: createTppApp({
      readRequest,
      pipeline,
      networkOf: createNetworkOf(listen.trustedProxies),
      onRefused: observeRefusal(observer),
    }),
    purgeStatusCache: statusCache.purge,
    environmentViews: () => viewEnvironments(config.environments.all, upstreams),
    preflight(name) {
      const environment = environments.get(name);
      return environment && runPreflight(environment, upstreams);
    },
  };
}

/** The number of days that certificates remain valid is counted from now. */
function viewEnvironments(
  environments: readonly EnvironmentSettings[],
  upstreams: Upstreams,
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

/** Uses a connection pool of its own: a pooled connection would prove nothing. */
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
