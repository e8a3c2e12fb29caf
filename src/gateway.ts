/** Builds every part once from the configuration, wires them, and opens and closes the two doors together. */

import { createServer } from 'node:http';
import { createAdminApp } from './admin/admin-app.ts';
import type { Config } from './config/schema.ts';
import { createListener } from './http/listener.ts';
import { createPisApp } from './http/pis-app.ts';
import { createRequestReader } from './http/read-request.ts';
import { close, open } from './http/server-life.ts';
import { pipeline } from './pipeline.ts';
import { createMatcher } from './pis/operations.ts';
import type { Log } from './telemetry/log.ts';
import { observeRefusal } from './telemetry/observe.ts';
import { createAgent } from './upstream/agent.ts';
import { createTransport } from './upstream/transport.ts';

/** A gateway that is either serving or not, never half. */
export interface Gateway {
  /** Opens both doors; if one cannot be opened, the other is closed again and the promise rejects. */
  start(): Promise<Addresses>;
  /** Takes no new connections, lets running requests end, and closes. */
  stop(): Promise<void>;
}

/** Where a started gateway listens. */
export interface Addresses {
  readonly tppPort: number;
  readonly adminPort: number;
}

/** A gateway by this configuration; nothing is opened yet. */
export function createGateway(config: Config, log: Log): Gateway {
  const { listen, admin, standard, deadlines, upstream } = config;
  const environments = new Map(config.environments.all.map((environment) => [environment.name, environment]));
  const ways = new Map(
    config.environments.all.map((environment) => {
      const agent = createAgent(environment, upstream);
      return [environment.name, { agent, transport: createTransport(environment, agent, deadlines.connect) }];
    }),
  );

  const refused = observeRefusal(log);
  const line = pipeline({
    log,
    environments,
    activeEnvironment: present(environments.get(config.environments.active)),
    publicUrl: listen.publicUrl,
    segment: standard.segment,
    transportTo: (name) => present(ways.get(name)).transport,
  });
  const read = createRequestReader({
    match: createMatcher(standard),
    maxBodyBytes: listen.maxBody,
    deadlineMs: deadlines,
  });

  let serving = false;
  const tppDoor = createListener(createPisApp({ read, line, refused }), refused);
  const adminDoor = createServer(
    createAdminApp(() => ({ ready: serving, reasons: serving ? [] : ['not serving'] })),
  );

  return {
    async start() {
      const adminPort = await open(adminDoor, admin.host, admin.port);
      const tppPort = await open(tppDoor, listen.host, listen.port).catch(async (error: unknown) => {
        await close(adminDoor);
        throw error;
      });
      serving = true;
      return { tppPort, adminPort };
    },
    async stop() {
      serving = false;
      await Promise.all([close(tppDoor), close(adminDoor)]);
      for (const { agent } of ways.values()) agent.destroy();
    },
  };
}

/** What a valid configuration guarantees to be there. */
function present<Value>(value: Value | undefined): Value {
  if (value === undefined)
    throw new Error('the configuration names an environment that it does not describe');
  return value;
}
