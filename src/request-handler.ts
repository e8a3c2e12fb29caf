/** The request handler: everything that is built from one configuration and replaced at a reload. */

import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { EnvironmentView } from './admin/response-schemas.ts';
import { certificateView } from './certificates/installed-certificates.ts';
import { isProduction } from './config/production.ts';
import { longestDeadlines } from './config/resolve-defaults.ts';
import type { Config, EnvironmentSettings } from './config/schema.ts';
import {
  createGuardedEnvironments,
  type GuardedEnvironments,
} from './contract-guard/guarded-environments.ts';
import { type PreflightReport, preflight } from './environments/preflight.ts';
import { type AuthenticateClient, createClientAuthenticator } from './http/authenticate-client.ts';
import { createNetworkOf } from './http/client-network.ts';
import { createQuotaCheck } from './http/quota.ts';
import { createRequestReader } from './http/read-request.ts';
import { createLookUpService, type ServeLookUp } from './http/serve-look-up.ts';
import { createTppApp } from './http/tpp-app.ts';
import { createIdempotencyDependencies } from './idempotency/enforce-idempotency.ts';
import {
  type ConfiguredIdentities,
  createConfiguredIdentities,
  IdentityContradiction,
} from './identities/configured-identities.ts';
import { identitySettingsOf } from './identities/contradictions.ts';
import { bankNotificationModeIn } from './notifications/bank-notification-modes.ts';
import type { PollPipeline } from './notifications/status-reads.ts';
import { subscriptionIntervalMs } from './notifications/subscription-schedule.ts';
import { createWebhookConfig, type WebhookConfig } from './notifications/webhook-config.ts';
import { createPipeline, createPollPipeline, type PipelineDependencies } from './pipeline.ts';
import { headerValue } from './pis/headers.ts';
import { createMatcher } from './pis/operations.ts';
import { createKeptLinkLog, createMapLinks } from './rewriting/link-mapper.ts';
import { createLookUp } from './self-service/look-up.ts';
import type { Services } from './services.ts';
import { isDatabaseInMemory } from './state/create-state.ts';
import { paymentKeyOf } from './status-cache/cache-key.ts';
import { createStatusCache, type Purge } from './status-cache/cache-status.ts';
import { observeRefusal } from './telemetry/observe.ts';
import { createObserveLookUp } from './telemetry/observe-look-up.ts';
import { createUpstreams, type Upstreams } from './upstream/upstreams.ts';

/** Holds the request handler of the configuration in effect. */
export interface RequestHandlers {
  readonly current: RequestHandler;
  /**
   * Builds the handler of another configuration for all requests to come; running requests end in the previous one.
   *
   * Calls must not overlap.
   *
   * @throws Error if a file that the configuration names cannot be used, or if its tenants or environments contradict those in the
   *   database; the previous handler stays
   */
  replace(config: Config): Promise<void>;
}

export interface RequestHandler {
  readonly identities: ConfiguredIdentities;
  /** The active environment, if the configuration does not have it: then new payments have none. */
  readonly unconfiguredActive: () => string | undefined;
  readonly upstreams: Upstreams;
  readonly serve: RequestListener;
  /** How the gateway itself reads statuses. */
  readonly polls: PollPipeline;
  readonly webhooks: WebhookConfig;
  /** What the contract guard checks. */
  readonly guarded: GuardedEnvironments;
  /** Removes a payment, or all payments, from the status caches of all instances. @throws GatewayError STATE_UNAVAILABLE */
  readonly purgeStatusCache: Purge;
  /** The environments for the admin API, in the order of the configuration. */
  readonly environmentViews: () => readonly EnvironmentView[];
  /** Tests the connection to an environment; `undefined` if there is none of that name. */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
}

/** @throws Error if a file that the configuration names cannot be used */
export function createRequestHandlers(config: Config, services: Services): RequestHandlers {
  let current = createRequestHandler(config, services, createIdentities(config, services));
  services.notifications.reads.current = current.polls;
  services.webhooks.current = current.webhooks;
  return {
    get current() {
      return current;
    },
    async replace(next) {
      const previous = current;
      const isSame = isDeepStrictEqual(
        identitySettingsOf(services.currentConfig.value),
        identitySettingsOf(next),
      );
      const identities = isSame ? previous.identities : createIdentities(next, services);
      const handler = createRequestHandler(next, services, identities);
      try {
        await handler.guarded.prepareEnforced();
        if (!isSame) await establish(identities, previous.identities);
        requireActive(handler);
      } catch (cause) {
        handler.upstreams.close();
        throw cause;
      }
      current = handler;
      services.currentConfig.value = next;
      services.notifications.reads.current = handler.polls;
      services.notifications.statusListeners.endStreams();
      services.webhooks.current = handler.webhooks;
      previous.upstreams.close();
    },
  };
}

const createIdentities = (config: Config, { identities, names, telemetry }: Services) =>
  createConfiguredIdentities(identities, names, identitySettingsOf(config), telemetry.log);

async function establish(next: ConfiguredIdentities, previous: ConfiguredIdentities): Promise<void> {
  try {
    await next.establish();
  } catch (cause) {
    if (cause instanceof IdentityContradiction) throw cause;
    if (!previous.current()) return; // the old configuration is refusing all requests as well
    const text =
      'clients, tenants or baseUrl changed, and the database is unavailable; reload again when /health/ready returns 200';
    throw new Error(text, { cause });
  }
}

/** @throws Error if new payments would have no environment */
function requireActive({ unconfiguredActive }: RequestHandler): void {
  const active = unconfiguredActive();
  if (active === undefined) return;
  throw new Error(
    `environments: "${active}" is active, and the configuration does not have it; first activate another one: penstock environment use NAME`,
  );
}

function createRequestHandler(
  config: Config,
  services: Services,
  identities: ConfiguredIdentities,
): RequestHandler {
  const { telemetry, activeEnvironment, affinity, ledger, seenStatuses } = services;
  const { observer, startTrace } = telemetry;
  const { listen, standard } = config;
  const match = createMatcher(standard);
  const environments = new Map(config.environments.all.map((environment) => [environment.name, environment]));
  const upstreams = createUpstreams(config, services.upstream, telemetry);
  const { prefetchPermit } = upstreams;
  const statusCache = createStatusCache(config, services.statusCache, identities, prefetchPermit);

  const webhooks = createWebhookConfig(config, identities.current);
  const hasWebhooks = (client: string) => webhooks.clients.get(client)?.urls !== undefined;
  const guarded = createGuardedEnvironments(config.environments.all, hasWebhooks, (cause) =>
    telemetry.log(
      'error',
      'the contracts of the environments cannot be compiled; messages are not checked, and requests are refused where they would be enforced; the next message after 10 s tries again',
      {
        why: cause instanceof Error ? cause.message : String(cause),
      },
    ),
  );

  const pipelineDependencies: PipelineDependencies = {
    log: telemetry.log,
    observer,
    startTrace,
    identities,
    environments,
    tenants: new Set(config.clients.map(({ tenant }) => tenant)).size || 1,
    active: activeEnvironment,
    beforeDeadline: ledger.beforeDeadline,
    affinity,
    countWithheld: (environment) =>
      telemetry.metrics.increment('penstock_withheld_responses_total', { environment }),
    idempotency: createIdempotencyDependencies(config, ledger, services.resolve),
    statusCache,
    seenStatuses,
    notifications: {
      ...services.notifications,
      statuses: statusCache.statuses,
      settings: config.notifications,
      signs: (environment) => environments.get(environment)?.signing !== undefined,
      metrics: telemetry.metrics,
    },
    webhooks: {
      urlsOf: (client) => webhooks.clients.get(client)?.urls,
      store: services.webhooks.store,
      keyOf: statusCache.statuses.keyOf,
      paymentKeyOf,
      mayStoreCredentials: isDatabaseInMemory(config.state) || config.state.encryptionKeyFile !== null,
      canPoll({ operation, environment, headers }, paymentId) {
        const isSigned = headerValue(headers, 'signature') !== undefined;
        const isReadable = webhooks.statusReadOf({ ...operation, paymentId }) !== undefined;
        return isReadable && (!isSigned || environments.get(environment.name)?.signing !== undefined);
      },
      canReadAuthorisations: ({ operation }, paymentId, type) =>
        webhooks.authorisationReadOf({ ...operation, paymentId }, { type, id: paymentId }) !== undefined,
      isFull: services.webhooks.limit.isReached,
      firstReadMs: (subscription) => subscriptionIntervalMs(webhooks.schedule, subscription, Date.now()),
      keepForMs: webhooks.keepForMs,
      log: telemetry.log,
    },
    guarded,
    contractGuard: services.contractGuard,
    bankNotifications: {
      modeOf: bankNotificationModeIn(config),
      createToken: services.bankNotifications.tokens.create,
      publicUrl: config.notifications.publicUrl ?? '',
      record: services.bankNotifications.receiver.record,
      paymentKeyOf,
    },
    prefetchPermit,
    publicUrl: listen.publicUrl,
    segment: standard.segment,
    mapLinksOf: createMapLinks({
      publicUrl: listen.publicUrl,
      segment: standard.segment,
      match,
      authorisationTypes: standard.authorisationTypes,
      hasAnyService: standard.paymentServices === 'any',
      onKept: createKeptLinkLog(telemetry.log),
    }),
    upstreamFor: upstreams.of,
  };
  const authenticate = createClientAuthenticator(config.clients, [...environments.keys()]);
  const readRequest = createRequestReader({
    match,
    admit: services.loadShedding.admit,
    authenticate,
    checkQuota: createQuotaCheck(config.clients, services.takeQuota),
    environments: [...environments.keys()],
    maxBodyBytes: listen.maxBody,
    deadlineMs: longestDeadlines(config),
  });

  return {
    identities,
    unconfiguredActive() {
      const active = activeEnvironment.known()?.environment;
      const known = identities.current();
      if (active === undefined || !known) return undefined; // not known yet
      return known.environmentNamed(active) === undefined ? active : undefined;
    },
    upstreams,
    serve: createTppApp({
      readRequest,
      pipeline: createPipeline(pipelineDependencies),
      serveLookUp: createServeLookUp(config, services, identities, authenticate),
      networkOf: createNetworkOf(listen.trustedProxies),
      errorPageUrl: listen.errorPageUrl,
      onRefused: observeRefusal(observer, identities.current),
    }),
    polls: {
      handle: createPollPipeline(pipelineDependencies),
      statuses: statusCache.statuses,
      schedule: { ...config.statusCache, ...config.notifications },
      perSecond(name) {
        const limiter = upstreams.limiters().find(({ environment }) => environment === name);
        return (limiter?.perSecond ?? 1) * config.notifications.share;
      },
    },
    webhooks,
    guarded,
    purgeStatusCache: statusCache.purge,
    environmentViews: () => viewEnvironments(config.environments.all, upstreams),
    preflight(name) {
      const environment = environments.get(name);
      return environment && runPreflight(environment, upstreams);
    },
  };
}

/** @returns `undefined` while TPPs cannot look up their requests */
function createServeLookUp(
  { requests, listen }: Config,
  { requestRecords, readInitiation, lookUpLimits, fleet, loadShedding, telemetry }: Services,
  identities: ConfiguredIdentities,
  authenticate: AuthenticateClient,
): ServeLookUp | undefined {
  if (!requests.selfService) return undefined;
  return createLookUpService({
    admit: loadShedding.admit,
    authenticate,
    lookUp: createLookUp({
      identities: identities.current,
      search: requestRecords.search,
      readInitiation,
      limits: lookUpLimits,
      isInstanceLost: () => fleet.instances().some(({ status }) => status === 'down'),
      errorPageUrl: listen.errorPageUrl,
    }),
    observe: createObserveLookUp(telemetry),
  });
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
      production: isProduction(name),
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
  const { agent, url, headers } = await upstreams.preflight(environment.name);
  try {
    return await preflight({ url, agent, headers, expects: environment.probeExpects });
  } finally {
    agent.destroy();
  }
}
