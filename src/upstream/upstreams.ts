/** The upstreams of one configuration. Each environment has connections, a transport, a rate limiter and circuits. */

import { randomUUID } from 'node:crypto';
import { readFromDisk } from '../certificates/file-watcher.ts';
import { expirySamples, type InstalledCertificate } from '../certificates/installed-certificates.ts';
import { formatPath } from '../config/config-errors.ts';
import { type FixedValues, readFixedValues } from '../config/fixed-values.ts';
import type { ClientSettings, Config, EnvironmentSettings } from '../config/schema.ts';
import { type HeaderFields, withFields } from '../pis/headers.ts';
import { withQueryParameters } from '../pis/query.ts';
import { emptyBody } from '../request/body-buffer.ts';
import { createCertificateLog } from '../telemetry/certificate-log.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Timeline } from '../telemetry/timeline.ts';
import { createPrefetchPermit, type PrefetchPermit, type Upstream } from './call-upstream.ts';
import type { Holds } from './circuit/holds.ts';
import { createProbe } from './circuit/recovery.ts';
import { reportChanges } from './circuit/report-changes.ts';
import { type CircuitView, createCircuits, stateInEffect } from './circuit/tenant-circuits.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { createEnvironmentConnections } from './environment-connections.ts';
import type { AdaptiveRates } from './shaping/adaptive-rate.ts';
import type { PermitSources } from './shaping/permits.ts';
import { createRateLimiter, type RateLimiterStats } from './shaping/rate-limiter.ts';
import { createTransport, signed, type Transport, withFixedValues } from './transport.ts';

export interface Upstreams {
  /** @throws Error if there is no such environment */
  of(environment: string): Upstream;
  readonly prefetchPermit: PrefetchPermit;
  circuits(): readonly CircuitView[];
  limiters(): readonly EnvironmentLimiterStats[];
  /** The fixed header fields and query parameters of an environment; `undefined` if there is no such environment. Secrets: never log them. */
  fixedValues(environment: string): FixedValues | undefined;
  /** The client certificates (QWAC) and signing certificates (QSealC) in use. */
  certificates(): readonly InstalledCertificate[];
  /** Applies changed certificate files. Never rejects. */
  pollCertificateFiles(): Promise<void>;
  /** Creates a separate pool and headers; the rate limit does not apply. @throws Error if there is no such environment */
  preflight(environment: string): Promise<PreflightConnection>;
  /** Stops probes and gauges, for a reload. Active and queued calls continue. */
  close(): void;
}

interface PreflightConnection {
  /** A separate pool; the caller must destroy it. */
  readonly agent: ConnectionPool;
  readonly url: string;
  /** The header fields of a probe, signed if the environment signs its requests. */
  readonly headers: HeaderFields;
}

export interface EnvironmentLimiterStats extends RateLimiterStats {
  readonly environment: string;
}

/** State that a reload keeps: queued calls of the old configuration and calls of the new one share it. */
export interface SharedUpstreamState {
  readonly permits: PermitSources;
  readonly adaptiveRates: AdaptiveRates;
  readonly holds: Pick<Holds, 'of'>;
  readonly timeline: Pick<Timeline, 'record'>;
}

/** @throws Error if a file that the configuration names cannot be used */
export function createUpstreams(
  config: Config,
  { permits, adaptiveRates, holds, timeline }: SharedUpstreamState,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
): Upstreams {
  const certificateLog = createCertificateLog(log, timeline);
  const fixedValues = new Map(
    config.environments.all.map(
      (environment) => [environment.name, fixedValuesOf(environment, config)] as const,
    ),
  );
  const parts = new Map(
    config.environments.all.map((environment) => [environment.name, createParts(environment)] as const),
  );
  const probes = new Map([...parts].map(([name, { probe }]) => [name, probe]));
  const circuits = createCircuits(config.circuit, {
    probes,
    holds,
    onChange: reportChanges(log, timeline),
  });

  function createParts(environment: EnvironmentSettings) {
    const { name, shaping, deadlines } = environment;
    const connections = createEnvironmentConnections(environment, config.upstream, certificateLog);
    const times = { connectMs: deadlines.connect, writeSocketIdleMs: config.upstream.writeSocketIdle };
    const unsigned = createTransport(environment, connections.pool, times);
    const signedTransport = connections.currentSigner
      ? signed(unsigned, connections.currentSigner)
      : unsigned;
    const fixed = fixedValues.get(name) ?? missingEnvironment(name);
    const transport = withFixedValues(signedTransport, fixed); // before the signature, which may cover them
    const adaptiveRate = adaptiveRates.of(name, { perSecond: shaping.rate, burst: shaping.burst });
    const limits = { permits: permits.of(name), adaptiveRate, isShared: isShared(config.clients, name) };
    const limiter = createRateLimiter(shaping, limits);
    const get = (deadlineAtMs: number) => getProbePath(environment, transport, deadlineAtMs);
    const probe = createProbe({ limiter, get, timeoutMs: deadlines.status });
    return { environment, connections, transport, limiter, probe, fixed };
  }

  const upstreams = new Map<string, Upstream>(
    Array.from(parts, ([name, { limiter, transport }]) => [
      name,
      { limiter, transport, circuitOf: (lane, tenant) => circuits.of(name, lane).of(tenant) },
    ]),
  );

  const limiters = () =>
    Array.from(parts, ([environment, { limiter }]) => ({ environment, ...limiter.stats() }));
  const certificates = () =>
    Array.from(parts.values(), ({ connections }) => connections.certificates()).flat();
  const removeGaugeSources = addGaugeSources(metrics, { circuits: circuits.views, limiters, certificates });

  return {
    of: (name) => upstreams.get(name) ?? missingEnvironment(name),
    prefetchPermit: createPrefetchPermit((name) => upstreams.get(name)),
    circuits: circuits.views,
    limiters,
    fixedValues: (name) => fixedValues.get(name),
    certificates,
    async pollCertificateFiles() {
      await Promise.all(Array.from(parts.values(), ({ connections }) => connections.pollFiles()));
    },
    async preflight(name) {
      const { environment, connections, fixed } = parts.get(name) ?? missingEnvironment(name);
      const { createPool, currentSigner } = connections;
      const path = withQueryParameters(probeTarget(environment), fixed.query);
      const headers = withFields(probeHeaders(), fixed.headers);
      const probe = { method: 'GET', path, headers, body: emptyBody };
      return {
        agent: createPool(),
        url: environment.origin + path,
        headers: currentSigner ? await currentSigner().sign(probe) : headers,
      };
    },
    close() {
      removeGaugeSources();
      circuits.close();
      for (const { limiter } of parts.values()) limiter.close();
    },
  };
}

function missingEnvironment(name: string): never {
  throw new Error(`there is no environment ${name}`);
}

/** Whether clients of several tenants may use the environment. */
function isShared(clients: readonly ClientSettings[], environment: string): boolean {
  const allowed = clients.filter(({ environments }) => environments.includes(environment));
  return new Set(allowed.map(({ tenant }) => tenant)).size > 1;
}

const circuitStates = ['closed', 'open', 'half-open', 'probation'] as const;

/** @returns a function that removes the gauge sources */
function addGaugeSources(
  metrics: Metrics,
  { circuits, limiters, certificates }: Pick<Upstreams, 'circuits' | 'limiters' | 'certificates'>,
): () => void {
  const removals = [
    metrics.addGaugeSource('penstock_circuit_state', () =>
      circuits().flatMap((circuit) =>
        circuitStates.map((state) => ({
          labels: { environment: circuit.environment, lane: circuit.lane, state },
          value: Number(state === stateInEffect(circuit)),
        })),
      ),
    ),
    metrics.addGaugeSource('penstock_circuit_held', () =>
      circuits().flatMap(({ environment, lane, hold }) =>
        (['open', 'closed'] as const).map((as) => ({
          labels: { environment, lane, as },
          value: Number(hold === as),
        })),
      ),
    ),
    metrics.addGaugeSource('penstock_circuit_open_tenants', () =>
      circuits().map(({ environment, lane, hold, tenants }) => ({
        labels: { environment, lane },
        value: hold === 'closed' ? 0 : tenants.filter(isRefused).length,
      })),
    ),
    metrics.addGaugeSource('penstock_queue_length', () =>
      limiters().flatMap(({ environment, waiting }) =>
        Object.entries(waiting).map(([lane, value]) => ({ labels: { environment, lane }, value })),
      ),
    ),
    metrics.addGaugeSource('penstock_calls_running', () =>
      limiters().map(({ environment, running }) => ({ labels: { environment }, value: running })),
    ),
    metrics.addGaugeSource('penstock_tenants_at_limit', () =>
      limiters().map(({ environment, tenantsAtLimit }) => ({
        labels: { environment },
        value: tenantsAtLimit.length,
      })),
    ),
    metrics.addGaugeSource('penstock_shaping_rate', () =>
      limiters().map(({ environment, perSecond }) => ({ labels: { environment }, value: perSecond })),
    ),
    metrics.addGaugeSource('penstock_shaping_pause_seconds', () =>
      limiters().map(({ environment, longestPauseMs }) => ({
        labels: { environment },
        value: longestPauseMs / 1_000,
      })),
    ),
    metrics.addGaugeSource('penstock_certificate_expiry_seconds', () => expirySamples(certificates())),
  ];
  return () => {
    for (const remove of removals) remove();
  };
}

const isRefused = ({ state }: Pick<CircuitView, 'state'>) => state === 'open' || state === 'half-open';

/** @throws Error that names the setting, if a file or variable cannot be used */
function fixedValuesOf(environment: EnvironmentSettings, { environments }: Config): FixedValues {
  const { values, errors } = readFixedValues(environment, environments.variables, readFromDisk);
  const [error] = errors;
  if (!error) return values;
  throw new Error(`${formatPath(error.path)}: ${error.message}`, { cause: error.cause });
}

const getProbePath = (environment: EnvironmentSettings, transport: Transport, deadlineAtMs: number) =>
  transport.send({
    lane: 'status',
    method: 'GET',
    path: probeTarget(environment),
    deadlineAtMs,
    headers: probeHeaders(),
    body: emptyBody,
  });

const probeTarget = ({ basePath, probePath }: EnvironmentSettings): string => basePath + probePath;

const probeHeaders = (): HeaderFields => [
  ['X-Request-ID', randomUUID()],
  ['Date', new Date().toUTCString()],
];
