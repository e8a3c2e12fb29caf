/**
 * The library: a gateway inside another program. The package exports this file only.
 *
 * The gateway opens its own listeners. It is not a middleware: another server would have parsed the request head before the
 * gateway could refuse an ambiguous one (ADR 5). It installs no signal handlers and never exits the process.
 */

import type { z } from 'zod';
import { createCredentialsReader } from './admin/operators.ts';
import {
  type LoadedConfig,
  type LoadedValidConfig,
  loadConfigAndFiles,
  loadSettingsAndFiles,
} from './config/load.ts';
import type { DeepReadonly, schema } from './config/schema.ts';
import type { environment } from './config/sections/environments.ts';
import { assembleGateway } from './gateway.ts';
import { newInstanceName } from './telemetry/instance-name.ts';
import { createLog, type LogOutput } from './telemetry/log.ts';
import { standardOutput } from './telemetry/standard-output.ts';

export interface GatewayOptions {
  /** The path of a YAML file, or the settings themselves, with the names and units of that file. */
  readonly config: string | GatewaySettings;
  /**
   * Environment variables that override settings and contain secrets, such as `PENSTOCK_STATE_REDIS`. Those that begin with
   * `PENSTOCK_`, and those that the settings name, are read. Default: those of the process.
   */
  readonly variables?: Readonly<Record<string, string | undefined>>;
  /**
   * Receives each line of the log, with its line break. A line for which it throws, for example because the disk is full, is
   * lost. Default: standard output, without waiting for its reader.
   */
  readonly logTo?: { write(line: string): void };
}

/** The settings of the configuration file: `{ listen: { port: 8080 }, deadlines: { write: '35s' }, ... }`. */
export type GatewaySettings = DeepReadonly<
  Omit<z.input<typeof schema>, 'environments'> & {
    /** `active`, and each environment by its name. */
    environments?: Record<string, string | z.input<typeof environment>>;
  }
>;

export interface PenstockGateway {
  /**
   * Opens both listeners. If one cannot be opened, closes the other one.
   *
   * @throws Error with a sentence that says what to change
   */
  start(): Promise<ListeningGateway>;
  /**
   * Uses another configuration for all requests to come. Running requests end with the previous one.
   *
   * @returns changed settings that need a restart to take effect
   * @throws ConfigurationError if it is invalid; Error if the database contradicts it. The previous one stays in use.
   */
  reload(config: string | GatewaySettings): Promise<readonly string[]>;
  /** Announces the end (not ready, `Connection: close`), and continues to serve. */
  drain(): void;
  /** Takes no new connections, waits for running requests, and closes everything. Every request has a deadline. */
  stop(): Promise<void>;
}

export interface ListeningGateway {
  /** The port of the public API. */
  readonly tppPort: number;
  readonly adminPort: number;
  /** Identifies this instance among those that share the state; new after every start. */
  readonly instanceId: string;
  /** The token of the operator "admin" for this run, if no operators are configured. Show it to a person; do not log it. */
  readonly generatedToken?: string;
}

/** An invalid configuration. */
export class ConfigurationError extends Error {
  /** One for each error: the location, the setting, and what to write instead. */
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(`the configuration is invalid:\n${errors.join('\n')}`);
    this.name = 'ConfigurationError';
    this.errors = errors;
  }
}

/**
 * Creates a gateway that does not listen yet.
 *
 * @throws ConfigurationError if the configuration is invalid; Error if a file that it names cannot be used
 */
export function createGateway({ config: source, variables, logTo }: GatewayOptions): PenstockGateway {
  const load = (from: string | GatewaySettings) => loadSource(from, variables);
  const { config } = valid(load(source));
  let generatedToken: string | undefined;
  const readCredentials = createCredentialsReader((token) => {
    generatedToken = token;
  }, variables);
  const instance = newInstanceName();
  const log = createLog(config.log, logTo ? withoutErrors(logTo) : standardOutput(), instance);
  const gateway = assembleGateway(
    config,
    log,
    readCredentials,
    {},
    {
      instanceId: instance,
      loadConfig: () => load(source),
    },
  );
  return {
    async start() {
      const started = await gateway.start();
      return generatedToken === undefined ? started : { ...started, generatedToken };
    },
    async reload(next) {
      const { restartRequired } = await gateway.reload(valid(load(next)).config);
      return restartRequired.map(({ setting }) => setting);
    },
    drain: gateway.drain,
    stop: () => gateway.stop(),
  };
}

/** The gateway logs outside of requests, too, where an error would end the process. */
const withoutErrors = (output: NonNullable<GatewayOptions['logTo']>): LogOutput => ({
  write(line) {
    try {
      output.write(line);
    } catch {} // there is nowhere to report it
  },
});

const loadSource = (source: GatewayOptions['config'], variables: GatewayOptions['variables']) =>
  typeof source === 'string'
    ? loadConfigAndFiles(source, variables)
    : loadSettingsAndFiles(source, variables);

function valid(loaded: LoadedConfig): LoadedValidConfig {
  if (loaded.kind === 'invalid') throw new ConfigurationError(loaded.errors);
  return loaded;
}
