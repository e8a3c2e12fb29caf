/** Puts the ways to the bank together: for each environment a transport, a shaper, and a circuit for each lane. */

import { randomUUID } from 'node:crypto';
import { expirySamples, type InstalledCertificate } from '../certificates/installed-certificates.ts';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import type { HeaderFields } from '../pis/headers.ts';
import type { TokenBuckets } from '../state/ports.ts';
import { createCertificateLog } from '../telemetry/certificate-log.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Upstream } from './call-upstream.ts';
import { type CircuitView, createCircuits } from './circuit/circuit.ts';
import type { Holds } from './circuit/holds.ts';
import { createProbe } from './circuit/recovery.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { createEnvironmentConnections } from './environment-connections.ts';
import type { AdaptiveRates } from './shaping/adaptive-rate.ts';
import { createRateLimiter, type RateLimiterStats } from './shaping/rate-limiter.ts';
import { createTransport, signed, type Transport } from './transport.ts';

export interface Upstreams {
  /** @throws Error if there is no such environment */
  of(environment: string): Upstream;
  circuits(): readonly CircuitView[];
  limiters(): readonly EnvironmentLimiterStats[];
  /** The client certificates and seals in use. */
  certificates(): readonly InstalledCertificate[];
  /** Takes over certificates that have changed on the disk; for the heartbeat. Never rejects. */
  pollCertificateFiles(): Promise<void>;
  /** For a request beside the others. @throws Error if there is no such environment */
  preflight(environment: string): Promise<PreflightConnection>;
  /** For a reload: calls under way end in it, and it begins nothing of its own any more. */
  close(): void;
}

/** What a call of the gateway's own is made with. */
interface PreflightConnection {
  /** Connections of its own, to be closed by whoever asked. */
  readonly agent: ConnectionPool;
  /** Fields as of any probe, with a seal where requests are signed. */
  readonly headers: HeaderFields;
}

export interface EnvironmentLimiterStats extends RateLimiterStats {
  readonly environment: string;
}

/** What outlives a reload: calls of the old configuration that still wait share it with those of the new one. */
export interface SharedUpstreamState {
  /** Turns at the banks; goes on by itself while the state is out of reach. */
  readonly permits: TokenBuckets;
  readonly adaptiveRates: AdaptiveRates;
  readonly holds: Pick<Holds, 'of'>;
}

/** @throws Error if a file that the configuration names cannot be used */
export function createUpstreams(
  config: Config,
  { permits, adaptiveRates, holds }: SharedUpstreamState,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
): Upstreams {
  const certificateLog = createCertificateLog(log);
  const byName = new Map(
    config.environments.all.map((environment) => [environment.name, createUpstream(environment)] as const),
  );
  const probes = new Map([...byName].map(([name, { probe }]) => [name, probe]));
  const circuits = createCircuits(config.circuit, {
    probes,
    holds,
    onChange: ({ environment, lane, from, to: state, why }) =>
      log('warn', 'a circuit has changed', { environment, lane, from, to: state, why }),
  });

  function createUpstream(environment: EnvironmentSettings) {
    const { name, shaping } = environment;
    const connections = createEnvironmentConnections(environment, config.upstream, certificateLog);
    const times = { connectMs: config.deadlines.connect, writeSocketIdleMs: config.upstream.writeSocketIdle };
    const plain = createTransport(environment, connections.pool, times);
    const transport = connections.currentSigner ? signed(plain, connections.currentSigner) : plain;
    const limit = adaptiveRates.of(name, { perSecond: shaping.rate, burst: shaping.burst });
    const limiter = createRateLimiter(name, shaping, { permits: permits, adaptiveRate: limit });
    const get = (deadlineAtMs: number) => getProbePath(environment, transport, deadlineAtMs);
    return {
      holdings: connections,
      transport,
      shaper: limiter,
      probe: createProbe({ limiter: limiter, get, timeoutMs: config.deadlines.status }),
    };
  }

  function to(name: string) {
    const way = byName.get(name);
    if (!way) throw new Error(`there is no environment ${name}`);
    return way;
  }

  const limiters = () =>
    Array.from(byName, ([environment, { shaper }]) => ({ environment, ...shaper.stats() }));
  const certificates = () => Array.from(byName.values(), ({ holdings }) => holdings.certificates()).flat();
  const removeGaugeSources = addGaugeSources(metrics, { circuits: circuits.views, limiters, certificates });

  return {
    of(name) {
      const { shaper, transport } = to(name);
      return { limiter: shaper, transport, circuitOf: (lane) => circuits.of(name, lane) };
    },
    circuits: circuits.views,
    limiters,
    certificates,
    async pollCertificateFiles() {
      await Promise.all(Array.from(byName.values(), ({ holdings }) => holdings.pollFiles()));
    },
    async preflight(name) {
      const { createPool, currentSigner } = to(name).holdings;
      const headers = probeHeaders();
      return {
        agent: createPool(),
        headers: currentSigner ? await currentSigner().sign({ headers, body: emptyBody }) : headers,
      };
    },
    close() {
      removeGaugeSources();
      circuits.close();
      for (const { shaper } of byName.values()) shaper.close();
    },
  };
}

const circuitStates = ['closed', 'open', 'half-open', 'probation'] as const;

/** @returns removes the sources together with their values */
function addGaugeSources(
  metrics: Metrics,
  { circuits, limiters, certificates }: Pick<Upstreams, 'circuits' | 'limiters' | 'certificates'>,
): () => void {
  const removals = [
    metrics.addGaugeSource('penstock_circuit_state', () =>
      circuits().flatMap(({ environment, lane, state }) =>
        circuitStates.map((each) => ({
          labels: { environment, lane, state: each },
          value: Number(each === state),
        })),
      ),
    ),
    metrics.addGaugeSource('penstock_queue_length', () =>
      limiters().flatMap(({ environment, waiting }) =>
        Object.entries(waiting).map(([lane, value]) => ({ labels: { environment, lane }, value })),
      ),
    ),
    metrics.addGaugeSource('penstock_calls_running', () =>
      limiters().map(({ environment, running }) => ({ labels: { environment }, value: running })),
    ),
    metrics.addGaugeSource('penstock_shaping_rate', () =>
      limiters().map(({ environment, perSecond }) => ({ labels: { environment }, value: perSecond })),
    ),
    metrics.addGaugeSource('penstock_shaping_pause_seconds', () =>
      limiters().map(({ environment, pausedMs }) => ({ labels: { environment }, value: pausedMs / 1_000 })),
    ),
    metrics.addGaugeSource('penstock_certificate_expiry_seconds', () => expirySamples(certificates())),
  ];
  return () => {
    for (const remove of removals) remove();
  };
}

/** Whatever the bank says below 500, it is there: nothing is asked for but an answer. */
const getProbePath = (
  { basePath, probePath }: EnvironmentSettings,
  transport: Transport,
  deadlineAtMs: number,
) =>
  transport.send({
    lane: 'status',
    method: 'GET',
    path: basePath + probePath,
    deadlineAtMs,
    headers: probeHeaders(),
    body: emptyBody,
  });

const probeHeaders = (): HeaderFields => [['X-Request-ID', randomUUID()]];
const emptyBody = Buffer.alloc(0);
