/** A gateway in a simulated process. Everything of it is real but the listeners, and the connections to the bank. */

import type { Config } from '../../src/config/schema.ts';
import { createRequestHandlers } from '../../src/request-handler.ts';
import { createServices, type Services, type Stores } from '../../src/services.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { createTransport } from '../../src/upstream/transport.ts';
import { configOf, publicUrl, withoutLimits } from './gateway.ts';
import { type EnvironmentName, environmentNames, type HistoryBank } from './history-bank.ts';
import { createSimulatedPool, createSimulatedServer, type SimulatedServer } from './simulated-connections.ts';
import type { SimulatedProcess } from './simulated-processes.ts';
import { client } from './tenants.ts';

export const tenants = ['shop', 'market'] as const;

/** Nothing is sent there: connections are simulated. */
const originOf = (name: EnvironmentName) => `http://127.0.0.1:${1 + environmentNames.indexOf(name)}`;

const environmentSettings = (name: EnvironmentName) => ({
  baseUrl: originOf(name),
  contract: { requests: 'off', responses: 'off' },
});

export const createHistoryConfig = (): Config =>
  configOf(
    withoutLimits({
      listen: { publicUrl },
      environments: {
        active: environmentNames[0],
        ...Object.fromEntries(environmentNames.map((name) => [name, environmentSettings(name)])),
      },
      clients: tenants.map((name) => client(name)),
      deadlines: { connect: '1s', status: '2s', read: '2s', write: '3s' },
      shaping: { maxWait: { write: '1s', read: '1s', status: '1s' } },
      idempotency: { wait: '500ms', lateAnswer: '5s' },
    }),
  );

/** How long after the end of all faults nothing changes any more: the deadline of a write, its late answer, and two leases. Milliseconds. */
export const recoveryMs = 3_000 + 5_000 + 2 * 6_000;

export interface HistoryGateway {
  readonly process: SimulatedProcess;
  /** `undefined` until it has started. */
  running: { readonly services: Services; readonly server: SimulatedServer } | undefined;
}

interface HistoryGatewayOptions {
  readonly config: Config;
  readonly process: SimulatedProcess;
  readonly createStores: () => Stores;
  readonly bank: HistoryBank;
  readonly log: Log;
  /** Its process has ended then, as that of a gateway that cannot start. */
  readonly onRefusal: (thrown: unknown) => void;
}

/** Starts it in the background. */
export function startHistoryGateway(options: HistoryGatewayOptions): HistoryGateway {
  const { process, onRefusal } = options;
  const gateway: HistoryGateway = { process, running: undefined };
  process.run(() => {
    start(gateway, options).catch((thrown: unknown) => {
      onRefusal(thrown);
      process.kill();
    });
  });
  return gateway;
}

/** As `assembleGateway` does it. */
async function start(
  gateway: HistoryGateway,
  { config, process, createStores, bank, log }: HistoryGatewayOptions,
): Promise<void> {
  const services = createServices(config, log, createStores(), process.name);
  const handlers = createRequestHandlers(config, services);
  const { identities, upstreams } = handlers.current;
  process.onKill(() => upstreams.close());
  for (const name of environmentNames) {
    const pool = createSimulatedPool(process, bank.serverOf(name), bank.fateOfConnection);
    const times = { connectMs: config.deadlines.connect, writeSocketIdleMs: config.upstream.writeSocketIdle };
    const transport = createTransport({ origin: originOf(name) }, () => pool, times);
    Object.assign(upstreams.of(name), { transport });
  }
  await services.databaseHeartbeat.first();
  await identities.establish().catch(() => {}); // requests try it again
  await services.loadSharedState();
  const { databaseHeartbeat, stateHeartbeat, maintenance, ledgerTask } = services;
  for (const task of [databaseHeartbeat, stateHeartbeat, maintenance, ledgerTask]) task.start();
  setInterval(() => void identities.refresh(), 1_000);
  const serve = (...[request, response]: Parameters<typeof handlers.current.serve>) =>
    handlers.current.serve(request, response);
  gateway.running = { services, server: createSimulatedServer(process, serve) };
}
