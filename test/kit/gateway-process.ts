/** `penstock serve` as a process of its own. */

import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { type RunningCommand, startCommand, writeConfigFile } from './command.ts';
import type { CommandOrder } from './command-runner.ts';
import { migrateFor } from './database.ts';
import { adminToken, publicUrl, type Sections, withoutLimits } from './gateway.ts';
import { freePort } from './ports.ts';
import type { TestScope } from './test-scope.ts';

export interface GatewayProcess {
  readonly url: string;
  readonly adminUrl: string;
  readonly port: number;
  /** The process that was started last. */
  readonly command: RunningCommand;
  /** Starts it again, on the same ports, and waits until it serves. Rejects if the process ends before that. */
  start(): Promise<void>;
  /** Ends it, by SIGTERM if no other is named. @returns the exit code, or the name of the signal that ended it */
  stop(signal?: NodeJS.Signals): Promise<number | string>;
  /** The lines that the last process has logged so far. */
  logged(): readonly Readonly<Record<string, unknown>>[];
  /** Another command with the same configuration, for a `RunCommand`. */
  order(...args: readonly string[]): CommandOrder;
  /** Runs another command with the same configuration, as a process of its own. */
  run(...args: readonly string[]): RunningCommand;
  /** Writes another configuration, or any text, into the file. */
  rewrite(content: Sections | string): void;
}

interface GatewayProcessOptions {
  /** Additional environment variables. */
  readonly variables?: Readonly<Record<string, string>>;
  /** A shell's words before the program, such as `ulimit -n 60; exec`. */
  readonly shell?: string;
  /** Of another version. */
  readonly main?: string;
}

/**
 * Starts a gateway on free ports, unless `sections` names others, and waits until it serves; killed when the test ends.
 * Rejects if the process ends before that.
 */
export async function startGatewayProcess(
  life: TestScope,
  sections: Sections,
  { variables = {}, shell = 'exec', main = 'src/main.ts' }: GatewayProcessOptions = {},
): Promise<GatewayProcess> {
  const ports = { listen: await freePort(), admin: await freePort() };
  const file = writeConfigFile(life, stringify(onPorts(ports, sections)));
  const loaded = loadConfig(file, variables);
  if (loaded.kind === 'valid') await migrateFor(loaded.config);
  let ownVariables: Readonly<Record<string, string>> = { PENSTOCK_ADMIN_TOKEN: adminToken, ...variables };
  const start = async () => {
    const words = [process.execPath, main, 'serve', '--config', file];
    const command = startCommand(life, 'sh', ['-c', `${shell} "$@"`, 'sh', ...words], ownVariables);
    const ended = command.exitCode().then((code) => {
      throw new Error(`the gateway ended with ${code}: ${command.stdout()}`);
    });
    ended.catch(() => {});
    await Promise.race([command.waitForOutput('"serving"'), ended]);
    return command;
  };

  let command = await start();
  const [port, adminPort] = ['tppSystems', 'operators'].map((listener) => portIn(command, listener));
  ownVariables = {
    ...ownVariables,
    PENSTOCK_LISTEN_PORT: String(port),
    PENSTOCK_ADMIN_PORT: String(adminPort),
  };
  const order = (...args: readonly string[]) => ({
    args: [...args, '--config', file],
    variables: ownVariables,
  });
  return {
    url: `http://127.0.0.1:${port}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    port: Number(port),
    get command() {
      return command;
    },
    async start() {
      command = await start();
    },
    stop(signal = 'SIGTERM') {
      command.kill(signal);
      return command.exitCode();
    },
    logged: () => {
      const complete = command.stdout().split('\n').slice(0, -1); // the last line may be incomplete
      return complete.map((line) => JSON.parse(line));
    },
    order,
    run: (...args) => startCommand(life, process.execPath, [main, ...order(...args).args], ownVariables),
    rewrite(content) {
      writeFileSync(file, typeof content === 'string' ? content : stringify(onPorts(ports, content)));
    },
  };
}

const onPorts = (ports: { listen: number; admin: number }, sections: Sections): Sections => ({
  admin: { port: ports.admin },
  ...withoutLimits(sections),
  listen: { port: ports.listen, publicUrl, ...(sections.listen as object | undefined) }, // as in the YAML file
});

const portIn = (command: RunningCommand, listener: string) =>
  new RegExp(`"${listener}":"[^"]*:(\\d+)"`).exec(command.stdout())?.[1];
