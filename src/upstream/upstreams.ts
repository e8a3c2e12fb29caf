/** Puts the ways to the bank together: for each environment a transport, a shaper, and a circuit for each lane. */

import { randomUUID } from 'node:crypto';
import type { InstalledCertificate } from '../certificates/installed-certificates.ts';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import type { HeaderFields } from '../pis/headers.ts';
import type { TokenBuckets } from '../state/ports.ts';
import type { CertificateLog } from '../telemetry/certificate-log.ts';
import type { Upstream } from './call-upstream.ts';
import { type CircuitChange, type CircuitView, createCircuits } from './circuit/circuit.ts';
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

/** Told what happens, for the log and whoever counts. */
export interface UpstreamEvents {
  readonly onCircuitChange: (change: CircuitChange) => void;
  readonly certificates: CertificateLog;
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
  events: UpstreamEvents,
): Upstreams {
  const byName = new Map(
    config.environments.all.map((environment) => [environment.name, createUpstream(environment)] as const),
  );
  const probes = new Map([...byName].map(([name, { probe }]) => [name, probe]));
  const circuits = createCircuits(config.circuit, { probes, holds, onChange: events.onCircuitChange });

  function createUpstream(environment: EnvironmentSettings) {
    const { name, shaping } = environment;
    const connections = createEnvironmentConnections(environment, config.upstream, events.certificates);
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

  return {
    of(name) {
      const { shaper, transport } = to(name);
      return { limiter: shaper, transport, circuitOf: (lane) => circuits.of(name, lane) };
    },
    circuits: circuits.views,
    limiters: () => Array.from(byName, ([environment, { shaper }]) => ({ environment, ...shaper.stats() })),
    certificates: () => Array.from(byName.values(), ({ holdings }) => holdings.certificates()).flat(),
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
      circuits.close();
      for (const { shaper } of byName.values()) shaper.close();
    },
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
