/** Gateway processes with one state, in front of both environments of one bank. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Call, call, jsonOf, type Reply, repeatWhile } from './call.ts';
import { newMigratedPostgres } from './database.ts';
import type { FleetRedis } from './fleet-redis.ts';
import { type Sections, startBank } from './gateway.ts';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts';
import { freePort } from './ports.ts';

import { initiation, statusRead } from './request.ts';
import type { TestScope } from './test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings, withEnvironmentHeader } from './two-environments.ts';
import { until } from './within.ts';

/** One gateway of a fleet; its ports stay the same across restarts. */
export interface Instance extends GatewayProcess {
  /** Sends a call as one of the clients, on a connection that is kept. */
  ask(client: ClientName, call: Call): Promise<Reply>;
  /** Initiates a payment. @returns its id */
  pay(client: ClientName, environment?: string): Promise<string>;
}

export interface Fleet {
  readonly sandbox: SimulatedBank;
  readonly production: SimulatedBank;
  readonly one: Instance;
  readonly other: Instance;
  /** The address of their database. */
  readonly postgres: string;
}

interface FleetOptions {
  readonly production?: SimulatedBank;
  /** More settings of the section `state`. */
  readonly state?: object;
  /** Environment variables of the processes. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Whether both have one port (`listen.reusePort`): then `url` and `ask` reach either of them. */
  readonly port?: 'one each' | 'shared';
}

/** Two instances that serve, the sandbox active; ended with the test. */
export async function startFleet(
  life: TestScope,
  redis: FleetRedis,
  { production, state = {}, variables = {}, port }: FleetOptions = {},
): Promise<Fleet> {
  const banks = await startBanks(life, production);
  const postgres = await newMigratedPostgres();
  const sections = {
    ...sectionsFor(banks),
    state: {
      ...{ postgres, redis: redis.settings, prefix: `fleet-${randomUUID()}:` },
      ...state,
    },
    ...(port === 'shared' && { listen: { port: await freePort(), reusePort: true } }),
  };
  const [one, other] = await Promise.all([
    startInstance(life, sections, variables),
    startInstance(life, sections, variables),
  ]);
  return { ...banks, one, other, postgres };
}

/** One instance alone that serves, the sandbox active; ended with the test. @param state of the configuration */
export async function startSingleInstance(life: TestScope, state: object): Promise<Instance> {
  return startInstance(life, { ...sectionsFor(await startBanks(life)), state });
}

async function startBanks(life: TestScope, production?: SimulatedBank) {
  const timings = { authorisedAfterMs: 600_000 }; // until then a payment can be cancelled
  return {
    sandbox: await startBank(life, { name: 'sandbox', timings }),
    production: production ?? (await startBank(life, { name: 'production', basePath: '/psd2', timings })),
  };
}

const sectionsFor = ({ sandbox, production }: Awaited<ReturnType<typeof startBanks>>) => ({
  environments: {
    active: 'sandbox',
    sandbox: { baseUrl: sandbox.baseUrl, standardVersion: '1.3.11' },
    production: { baseUrl: production.baseUrl, standardVersion: '1.3.6' },
  },
  clients: clientSettings(),
});

async function startInstance(
  life: TestScope,
  sections: Sections,
  variables: Readonly<Record<string, string>> = {},
): Promise<Instance> {
  const gateway = await startGatewayProcess(life, sections, { variables });
  const agent = new Agent({ keepAlive: true });
  life.after(() => agent.destroy());
  const ask = (client: ClientName, { headers = [], ...rest }: Call) =>
    call(gateway.url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf(client)]] }, agent);
  const reachesState = () =>
    until(20_000, 'it reaches the state', async () => (await ask('shop', statusRead)).status === 404);

  await reachesState();
  return {
    ...gateway,
    get command() {
      return gateway.command;
    },
    ask,
    async pay(client, environment) {
      const one = environment === undefined ? initiation : withEnvironmentHeader(environment, initiation);
      const reply = await repeatWhile('STATE_UNAVAILABLE', () => ask(client, one));
      assert.equal(reply.status, 201, reply.text);
      return String(jsonOf(reply).paymentId);
    },
    async start() {
      await gateway.start();
      await reachesState();
    },
  };
}
