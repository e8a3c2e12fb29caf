/** Puts the ways to the bank together: for each environment a transport, a shaper, and a circuit for each lane. */

import { randomUUID } from 'node:crypto';
import type { HeldCertificate } from '../certificates/held.ts';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import type { HeaderFields } from '../pis/headers.ts';
import type { Reservations } from '../state/ports.ts';
import type { CertificateNews } from '../telemetry/certificate-news.ts';
import type { Pool } from './agent.ts';
import type { Upstream } from './call-upstream.ts';
import type { CircuitChange, CircuitView } from './circuit/circuit-state.ts';
import { createCircuits } from './circuit/circuits.ts';
import type { Holds } from './circuit/holds.ts';
import { createProbe } from './circuit/probe.ts';
import { createHoldings } from './holdings.ts';
import type { BankLimits } from './shaping/bank-limits.ts';
import { createShaper } from './shaping/shaper.ts';
import type { ShaperView } from './shaping/shaper-view.ts';
import { createTransport, sealed, type Transport } from './transport.ts';

export interface Upstreams {
  /** @throws Error if there is no such environment */
  to(environment: string): Upstream;
  circuits(): readonly CircuitView[];
  shapers(): readonly ShaperOf[];
  /** The client certificates and seals in use. */
  certificates(): readonly HeldCertificate[];
  /** Takes over certificates that have changed on the disk; for the heartbeat. Never rejects. */
  lookAtFiles(): Promise<void>;
  /** For a request beside the others. @throws Error if there is no such environment */
  trial(environment: string): Promise<Trial>;
  /** For a reload: calls under way end in it, and it begins nothing of its own any more. */
  close(): void;
}

/** What a call of the gateway's own is made with. */
interface Trial {
  /** Connections of its own, to be closed by whoever asked. */
  readonly agent: Pool;
  /** Fields as of any probe, with a seal where requests are signed. */
  readonly headers: HeaderFields;
}

export interface ShaperOf extends ShaperView {
  readonly environment: string;
}

/** Told what happens, for the log and whoever counts. */
export interface UpstreamNews {
  readonly circuitChanged: (change: CircuitChange) => void;
  readonly certificates: CertificateNews;
}

/** What outlives a reload: calls of the old configuration that still wait share it with those of the new one. */
export interface Shared {
  /** Turns at the banks; goes on by itself while the state is out of reach. */
  readonly turns: Reservations;
  readonly limits: BankLimits;
  readonly holds: Pick<Holds, 'of'>;
}

/** @throws Error if a file that the configuration names cannot be used */
export function createUpstreams(
  config: Config,
  { turns, limits, holds }: Shared,
  news: UpstreamNews,
): Upstreams {
  const ways = new Map(
    config.environments.all.map((environment) => [environment.name, wayTo(environment)] as const),
  );
  const probes = new Map([...ways].map(([name, { probe }]) => [name, probe]));
  const circuits = createCircuits(config.circuit, { probes, holds, changed: news.circuitChanged });

  function wayTo(environment: EnvironmentSettings) {
    const { name, shaping } = environment;
    const holdings = createHoldings(environment, config.upstream, news.certificates);
    const times = { connectMs: config.deadlines.connect, writeSocketIdleMs: config.upstream.writeSocketIdle };
    const plain = createTransport(environment, holdings.pool, times);
    const transport = holdings.sealNow ? sealed(plain, holdings.sealNow) : plain;
    const limit = limits.of(name, { perSecond: shaping.rate, burst: shaping.burst });
    const shaper = createShaper(name, shaping, { reservations: turns, limit });
    const get = (deadlineAtMs: number) => askProbePath(environment, transport, deadlineAtMs);
    return {
      holdings,
      transport,
      shaper,
      probe: createProbe({ shaper, get, boundMs: config.deadlines.status }),
    };
  }

  function to(name: string) {
    const way = ways.get(name);
    if (!way) throw new Error(`there is no environment ${name}`);
    return way;
  }

  return {
    to(name) {
      const { shaper, transport } = to(name);
      return { shaper, transport, circuitOf: (lane) => circuits.of(name, lane) };
    },
    circuits: circuits.views,
    shapers: () => Array.from(ways, ([environment, { shaper }]) => ({ environment, ...shaper.view() })),
    certificates: () => Array.from(ways.values(), ({ holdings }) => holdings.certificates()).flat(),
    async lookAtFiles() {
      await Promise.all(Array.from(ways.values(), ({ holdings }) => holdings.look()));
    },
    async trial(name) {
      const { newPool, sealNow } = to(name).holdings;
      const headers = probeFields();
      return {
        agent: newPool(),
        headers: sealNow ? await sealNow().seal({ headers, body: nothing }) : headers,
      };
    },
    close() {
      circuits.close();
      for (const { shaper } of ways.values()) shaper.close();
    },
  };
}

/** Whatever the bank says below 500, it is there: nothing is asked for but an answer. */
const askProbePath = (
  { basePath, probePath }: EnvironmentSettings,
  transport: Transport,
  deadlineAtMs: number,
) =>
  transport.send({
    lane: 'status',
    method: 'GET',
    path: basePath + probePath,
    deadlineAtMs,
    headers: probeFields(),
    body: nothing,
  });

const probeFields = (): HeaderFields => [['X-Request-ID', randomUUID()]];
const nothing = Buffer.alloc(0);
