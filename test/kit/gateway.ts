/** A gateway in this process, in front of simulated banks, with its log at hand. */

import { stringify } from 'yaml';
import { createCredentialsReader } from '../../src/admin/operators.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { assembleGateway } from '../../src/gateway.ts';
import type { Stores } from '../../src/services.ts';
import type { BankOptions, SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { createSimulatedBank } from '../../src/simulated-bank/server.ts';
import type { State } from '../../src/state/ports.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { migrateFor, storesOf } from './database.ts';
import { withFile } from './folder.ts';
import { freePort } from './ports.ts';
import { endWith, type TestScope } from './test-scope.ts';

/** Where TPP systems reach the gateway under test: in links only, never on the network. */
export const publicUrl = 'https://gateway.example';

/** The operator's token of every gateway under test. */
export const adminToken = 'token-of-the-tests';

/** The operators of a configuration, and `admin` with that token. */
export const readTestCredentials = createCredentialsReader(() => {}, { PENSTOCK_ADMIN_TOKEN: adminToken });

export interface GatewayUnderTest {
  /** Origin of the public API on this machine. */
  readonly url: string;
  readonly port: number;
  readonly adminUrl: string;
  /** Origin of `notifications.listen`, if it is set. */
  readonly notificationUrl: string;
  /** Every line logged so far. */
  readonly logLines: readonly string[];
  /** Uses another configuration; rejects if the gateway refuses it. */
  reload(sections: Sections): Promise<void>;
}

/** Settings as in the YAML file, by section. */
export type Sections = Readonly<Record<string, unknown>>;

/** The section `state` for tests of a Redis that does not answer: without `timeout`, they would wait longer. */
export const impatientState = { timeout: '250ms' };

/**
 * For requests that end at their deadline, and nothing else of them should. With less time, a busy machine does not connect to the bank, or
 * send the request, before the deadline.
 */
export const shortDeadlines = {
  deadlines: { connect: '900ms', status: '2s', read: '2s', write: '2s' },
  shaping: { maxWait: { write: '1500ms', read: '1500ms', status: '1500ms' } },
  idempotency: { wait: '50ms' },
};

/**
 * For tests about other things than limits: hardly anything is shaped, no circuit opens, and the gateway waits for Redis
 * as long as it can, because a busy machine delays the answers.
 */
export function withoutLimits(sections: Sections): Sections {
  const { maxSockets = 128 } = section(sections, 'upstream') as { maxSockets?: number }; // as in the YAML file
  const wide = { rate: '100000/s', burst: 100_000, maxConcurrent: maxSockets, queue: 100_000 };
  return {
    ...sections,
    shaping: { ...wide, ...section(sections, 'shaping') },
    circuit: { minimumCalls: 100_000, ...section(sections, 'circuit') },
    state: { timeout: '2s', ...section(sections, 'state') },
  };
}

/** A valid configuration of these sections and environment variables; fails with every fault if it is not one. */
export function configOf(sections: Sections, variables: Readonly<Record<string, string>> = {}): Config {
  const loaded = withFile(stringify(sections), (file) => loadConfig(file, variables));
  if (loaded.kind === 'invalid') throw new Error(loaded.errors.join('\n'));
  return loaded.config;
}

const onFreePorts = (sections: Sections): Sections => ({
  ...withoutLimits(sections),
  listen: { host: '127.0.0.1', port: 0, publicUrl, ...section(sections, 'listen') },
  admin: { port: 0, ...section(sections, 'admin') },
});

/**
 * A started gateway on free ports; closed when the test ends. Its database has been migrated.
 *
 * @param given instead of what is configured; gateways with the same state have the same database, too
 */
export async function startGateway(
  scope: TestScope,
  sections: Sections,
  given?: Partial<Stores> | State,
): Promise<GatewayUnderTest> {
  const logLines: string[] = [];
  const config = configOf(onFreePorts(sections));
  const log = createLog({ level: 'debug', format: 'json' }, { write: (line) => void logLines.push(line) });
  await migrateFor(config);
  const gateway = assembleGateway(config, log, readTestCredentials, await storesOf(given, config));
  const { tppPort, adminPort, notificationPort } = await gateway.start();
  endWith(scope, () => gateway.stop());
  return {
    url: `http://127.0.0.1:${tppPort}`,
    port: tppPort,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    notificationUrl: notificationPort === undefined ? '' : `http://127.0.0.1:${notificationPort}`,
    logLines,
    reload: async (next) => void (await gateway.reload(configOf(onFreePorts(next)))),
  };
}

/** A started bank; closed when the test ends. */
export async function startBank(scope: TestScope, options: BankOptions = {}): Promise<SimulatedBank> {
  const bank = createSimulatedBank(options);
  await bank.start(await freePort()); // tests stop a bank, and expect that nothing else answers there
  endWith(scope, () => bank.stop());
  return bank;
}

/** A gateway with one environment, `sandbox`, in front of one bank. */
export async function startGatewayWithBank(t: TestScope, sections: Sections = {}, options: BankOptions = {}) {
  const bank = await startBank(t, options);
  const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } };
  const gateway = await startGateway(t, { environments, ...sections });
  return { bank, gateway };
}

const section = (sections: Sections, name: string) => (sections[name] ?? {}) as object; // as in the YAML file
