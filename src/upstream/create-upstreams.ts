/** Puts the ways to the bank together: for each environment a transport, a shaper, and a circuit for each lane. */

import { randomUUID } from 'node:crypto';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import type { Reservations } from '../state/ports.ts';
import { createAgent } from './agent.ts';
import type { Upstream } from './call-upstream.ts';
import type { CircuitChange, CircuitView } from './circuit/circuit-state.ts';
import { createCircuits } from './circuit/circuits.ts';
import type { Holds } from './circuit/holds.ts';
import { createProbe } from './circuit/probe.ts';
import { readCredentials } from './credentials.ts';
import type { BankLimits } from './shaping/bank-limits.ts';
import { createShaper } from './shaping/shaper.ts';
import type { ShaperView } from './shaping/shaper-view.ts';
import { createTransport, type Transport } from './transport.ts';

export interface Upstreams {
  /** @throws Error if there is no such environment */
  to(environment: string): Upstream;
  circuits(): readonly CircuitView[];
  shapers(): readonly ShaperOf[];
  /** For a reload: calls under way end in it, and it begins nothing of its own any more. */
  close(): void;
}

export interface ShaperOf extends ShaperView {
  readonly environment: string;
}

/** Told what happens, for the log and whoever counts. */
export interface UpstreamNews {
  readonly circuitChanged: (change: CircuitChange) => void;
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
    const pool = createAgent(environment, config.upstream, readCredentials(environment.tls));
    const times = { connectMs: config.deadlines.connect, writeSocketIdleMs: config.upstream.writeSocketIdle };
    const transport = createTransport(environment, pool, times);
    const limit = limits.of(name, { perSecond: shaping.rate, burst: shaping.burst });
    const shaper = createShaper(name, shaping, { reservations: turns, limit });
    const get = (deadlineAtMs: number) => askProbePath(environment, transport, deadlineAtMs);
    return {
      transport,
      shaper,
      probe: createProbe({ shaper, get, boundMs: config.deadlines.status }),
    };
  }

  return {
    to(name) {
      const way = ways.get(name);
      if (!way) throw new Error(`there is no environment ${name}`);
      const { shaper, transport } = way;
      return { shaper, transport, circuitOf: (lane) => circuits.of(name, lane) };
    },
    circuits: circuits.views,
    shapers: () => Array.from(ways, ([environment, { shaper }]) => ({ environment, ...shaper.view() })),
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
    headers: [['X-Request-ID', randomUUID()]],
    body: Buffer.alloc(0),
  });
