/** Several gateways, each a process of its own, on one Redis and before both sides of one bank. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { stringify } from 'yaml';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Call, call, jsonOf, type Reply, repeatWhile } from './call.ts';
import { type RunningCommand, startCommand, writeConfigFile } from './command.ts';
import type { FleetRedis } from './fleet-redis.ts';
import { adminToken, publicUrl, type Sections, startBank, unlimited } from './gateway.ts';
import type { Life } from './life.ts';
import { freePort } from './ports.ts';
import { initiation, statusRead } from './request.ts';
import { apiKeyOf, type ClientName, clientSettings, withEnvironmentHeader } from './two-environments.ts';
import { until } from './within.ts';

/** One gateway of a fleet; its ports stay the same across restarts. */
export interface Instance {
  readonly url: string;
  readonly adminUrl: string;
  /** Sends a call as one of the clients, on a connection that is kept. */
  ask(client: ClientName, call: Call): Promise<Reply>;
  /** Initiates a payment. @returns its id */
  pay(client: ClientName, environment?: string): Promise<string>;
  /** Starts it, and waits until it serves and knows that it does not know a payment. */
  start(): Promise<void>;
  /** Ends it, by SIGTERM if no other is named. @returns the exit code, or the name of the signal that ended it */
  stop(signal?: NodeJS.Signals): Promise<number | string>;
  /** The lines that this run has logged so far. */
  logged(): readonly Readonly<Record<string, unknown>>[];
  /** Runs another command with the configuration of this instance. */
  command(...words: readonly string[]): RunningCommand;
}

export interface Fleet {
  readonly sandbox: SimulatedBank;
  readonly production: SimulatedBank;
  readonly one: Instance;
  readonly other: Instance;
}

/** What differs from the fleet that most tests want. */
interface Wishes {
  readonly production?: SimulatedBank;
  /** Environment variables of the processes. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Whether both have one port (`listen.reusePort`): then `url` and `ask` reach either of them. */
  readonly port?: 'one each' | 'shared';
}

/** Two instances that serve, the sandbox active; ended with the test. */
export async function startFleet(
  t: Life,
  redis: FleetRedis,
  { production, variables = {}, port }: Wishes = {},
): Promise<Fleet> {
  const sides = await startSides(t, production);
  const state = { redis: redis.settings, prefix: `fleet-${randomUUID()}:` };
  const sections = sectionsFor(sides, state);
  const listen = port === 'shared' ? { port: await freePort(), reusePort: true } : {};
  const instances = [
    await createInstance(t, sections, variables, listen),
    await createInstance(t, sections, variables, listen),
  ] as const;
  await Promise.all(instances.map((instance) => instance.start()));
  return { ...sides, one: instances[0], other: instances[1] };
}

/** One instance alone that serves, the sandbox active; ended with the test. @param state of the configuration */
export async function startAlone(t: Life, state: object): Promise<Instance> {
  const instance = await createInstance(t, sectionsFor(await startSides(t), state));
  await instance.start();
  return instance;
}

async function startSides(t: Life, production?: SimulatedBank) {
  const timings = { authorisedAfterMs: 600_000 }; // until then a payment can be cancelled
  return {
    sandbox: await startBank(t, { name: 'sandbox', timings }),
    production: production ?? (await startBank(t, { name: 'production', basePath: '/psd2', timings })),
  };
}

const sectionsFor = ({ sandbox, production }: Awaited<ReturnType<typeof startSides>>, state: object) => ({
  environments: {
    active: 'sandbox',
    sandbox: { baseUrl: sandbox.baseUrl, standardVersion: '1.3.11' },
    production: { baseUrl: production.baseUrl, standardVersion: '1.3.6' },
  },
  clients: clientSettings(),
  state,
});

/** An instance that does not run yet. @param sections of the configuration, but for the two doors */
export async function createInstance(
  t: Life,
  sections: Sections,
  variables: Readonly<Record<string, string>> = {},
  listen: { readonly port?: number; readonly reusePort?: boolean } = {},
): Promise<Instance> {
  const { port = await freePort() } = listen;
  const adminPort = await freePort();
  const file = writeConfigFile(
    t,
    stringify({ listen: { ...listen, port, publicUrl }, admin: { port: adminPort }, ...unlimited(sections) }),
  );
  const url = `http://127.0.0.1:${port}`;
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const command = (...words: readonly string[]) =>
    startCommand(t, process.execPath, ['src/main.ts', ...words, '--config', file], {
      PENSTOCK_ADMIN_TOKEN: adminToken,
      ...variables,
    });
  let running: RunningCommand | undefined;

  const ask = (client: ClientName, { headers = [], ...rest }: Call) =>
    call(url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf(client)]] }, agent);

  return {
    url,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    ask,
    async pay(client, environment) {
      const one = environment === undefined ? initiation : withEnvironmentHeader(environment, initiation);
      const reply = await repeatWhile('STATE_UNAVAILABLE', () => ask(client, one));
      assert.equal(reply.status, 201, reply.text);
      return String(jsonOf(reply).paymentId);
    },
    async start() {
      const serving = command('serve');
      running = serving;
      const ended = serving
        .exitCode()
        .then((code) => assert.fail(`it ended with ${code}: ${serving.stdout()}`));
      await Promise.race([serving.waitForOutput('"serving"'), ended]);
      await until(5_000, 'it reaches the state', async () => (await ask('shop', statusRead)).status === 404);
    },
    async stop(signal = 'SIGTERM') {
      running?.kill(signal);
      return running?.exitCode() ?? 'it does not run';
    },
    logged: () => linesOf(running?.stdout() ?? '').map((line) => JSON.parse(line)),
    command,
  };
}

/** The last one may still be on its way. */
const linesOf = (text: string) => text.split('\n').slice(0, -1);
