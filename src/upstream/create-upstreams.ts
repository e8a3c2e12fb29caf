/** Puts the ways to the bank together: for each environment a transport, a shaper, and a circuit for each lane. */

import { randomUUID } from 'node:crypto';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import { insuredReservations } from '../state/insured-reservations.ts';
import type { Announcements, KeyValues, Reservations } from '../state/ports.ts';
import { createAgent } from './agent.ts';
import { createBankLimit } from './bank-limit.ts';
import type { Upstream } from './call-upstream.ts';
import type { CircuitChange, CircuitView } from './circuit-state.ts';
import { createCircuits } from './circuits.ts';
import { readCredentials } from './credentials.ts';
import type { Holds } from './holds.ts';
import { createProbe } from './probe.ts';
import { createShaper } from './shaper.ts';
import type { ShaperView } from './shaper-view.ts';
import { createTransport, type Transport } from './transport.ts';

export interface Upstreams {
  /** @throws Error if there is no such environment */
  to(environment: string): Upstream;
  circuits(): readonly CircuitView[];
  shapers(): readonly ShaperOf[];
  /** Reads what other instances have learnt of the banks' limits; for the heartbeat. */
  refresh(): Promise<void>;
  /** For a reload: calls under way end in it, and it begins nothing of its own any more. */
  close(): void;
}

export interface ShaperOf extends ShaperView {
  readonly environment: string;
}

/** Told what happens, for the log and whoever counts. */
export interface UpstreamNews {
  readonly circuitChanged: (change: CircuitChange) => void;
  /** Whether this instance shapes with a part of the rate for itself. */
  readonly alone: (alone: boolean) => void;
}

interface Shared {
  readonly keyValues: KeyValues;
  readonly announcements: Announcements;
  readonly reservations: Reservations;
}

/** @throws Error if a file that the configuration names cannot be used */
export function createUpstreams(
  config: Config,
  state: Shared,
  holds: Pick<Holds, 'of'>,
  news: UpstreamNews,
): Upstreams {
  const { expectedInstances } = config.shaping;
  const insurance = { part: 1 / expectedInstances, beginsWith: 'nothing', told: news.alone } as const;
  const reservations = insuredReservations(state.reservations, insurance);
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
    const limit = createBankLimit(name, { perSecond: shaping.rate, burst: shaping.burst }, state);
    const shaper = createShaper(name, shaping, { reservations, limit });
    const get = (deadlineAtMs: number) => probed(environment, transport, deadlineAtMs);
    return {
      transport,
      limit,
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
    async refresh() {
      await Promise.all(Array.from(ways.values(), ({ limit }) => limit.refresh()));
    },
    close() {
      circuits.shutdown();
      for (const { limit } of ways.values()) limit.close();
    },
  };
}

/** Whatever the bank says below 500, it is there: nothing is asked for but an answer. */
const probed = ({ basePath, probePath }: EnvironmentSettings, transport: Transport, deadlineAtMs: number) =>
  transport.send({
    ...{ lane: 'status', method: 'GET', path: basePath + probePath, deadlineAtMs },
    ...{ headers: [['X-Request-ID', randomUUID()]], body: Buffer.alloc(0) },
  });
