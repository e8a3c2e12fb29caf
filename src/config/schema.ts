/** The schema of the configuration, and its types. */

import { z } from 'zod';
import type { OperationName } from '../pis/operations.ts';
import { admin } from './sections/admin.ts';
import { clients } from './sections/clients.ts';
import { contract } from './sections/contract.ts';
import { type environment, environments } from './sections/environments.ts';
import { listen } from './sections/listen.ts';
import { notifications } from './sections/notifications.ts';
import { idempotency, payments, statusCache } from './sections/payments.ts';
import { shaping } from './sections/shaping.ts';
import { standard } from './sections/standard.ts';
import { state } from './sections/state.ts';
import { log, requests, tracing } from './sections/telemetry.ts';
import { circuit, deadlines, upstream } from './sections/upstream.ts';

/** Every section, in the order of the documentation. */
export const schema = z.strictObject({
  listen,
  admin,
  standard,
  clients,
  environments,
  state,
  idempotency,
  payments,
  statusCache,
  notifications,
  deadlines,
  upstream,
  circuit,
  shaping,
  contract,
  requests,
  log,
  tracing,
});

/** The settings as the schema parses them, each by itself. `Config` is the result of resolving them. */
export type Settings = DeepReadonly<z.output<typeof schema>>;

/** In all settings: durations in milliseconds, sizes in bytes, rates in tokens per second, percentages as fractions. */
export type ListenSettings = Settings['listen'] & {
  /** Scheme, host, port and path under which TPP systems reach the gateway, without a trailing slash. */
  readonly publicUrl: string;
  /** The error reference that errors link to; `null` for no link. */
  readonly errorPageUrl: string | null;
};
export type AdminSettings = Settings['admin'] & {
  /** Scheme, host, port and path under which operators open the console, without a trailing slash. */
  readonly publicUrl: string;
};
export type StandardSettings = Settings['standard'];
export type StateSettings = Settings['state'];
export type IdempotencySettings = Settings['idempotency'];
export type PaymentsSettings = Settings['payments'];
export type StatusCacheSettings = Settings['statusCache'];
export type NotificationSettings = Settings['notifications'];
export type DeadlineSettings = Settings['deadlines'];
export type UpstreamSettings = Settings['upstream'];
export type CircuitSettings = Settings['circuit'];
export type ShapingSettings = Settings['shaping'];
export type ContractSettings = Settings['contract'];
export type RequestsSettings = Settings['requests'];
export type LogSettings = Settings['log'];
export type TracingSettings = Settings['tracing'];

/** A single Redis, a cluster, or one that sentinels monitor. The addresses may contain credentials: never log them. */
export type RedisSettings = NonNullable<StateSettings['redis']>;

export type ClientSettings = Omit<Settings['clients'][number], 'tenant' | 'environments'> & {
  readonly tenant: string;
  /** The names of the environments that the client may use; never empty. */
  readonly environments: readonly string[];
  /** If only one is configured for the client: that of its new payments, whichever is active. */
  readonly onlyEnvironment: string | undefined;
};

/** An environment as the schema parses it. */
export type EnvironmentSection = DeepReadonly<z.output<typeof environment>>;

/** The contract guard in one environment of the bank. */
export type EnvironmentContractSettings = EnvironmentSection['contract'];

/** The signature of requests to one environment of the bank. */
export type SigningSettings = NonNullable<EnvironmentSection['signing']>;

/** One environment of the bank; assignable to `Environment` of `request/`. */
export type EnvironmentSettings = Omit<EnvironmentSection, 'segment' | 'shaping' | 'deadlines'> & {
  readonly name: string;
  /** Scheme, host and port: `https://api.bank.example`. */
  readonly origin: string;
  /** The path before the segment: empty, or such as `/psd2` without a trailing slash. */
  readonly basePath: string;
  /** The bank's path between `basePath` and its version: zero or more path segments. */
  readonly segment: string;
  /** The whole path at the bank before `/{payment-service}`, by operation, without a slash at the end. */
  readonly prefixes: Readonly<Record<OperationName, string>>;
  /** The global shaping with the overrides of this environment. */
  readonly shaping: ShapingSettings;
  /** The global deadlines with the overrides of this environment. */
  readonly deadlines: DeadlineSettings;
};

export interface EnvironmentsSettings {
  /** The name of the environment that new payments go to at the first start. */
  readonly active: string;
  /** In the order of the file. */
  readonly all: readonly EnvironmentSettings[];
  /** The values of the environment variables that `headers` and `query` name, and of HTTPS_PROXY, as far as they are set. Secrets: never log them. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** A valid and complete configuration. */
export type Config = Omit<Settings, 'listen' | 'admin' | 'clients' | 'environments'> & {
  readonly listen: ListenSettings;
  readonly admin: AdminSettings;
  readonly clients: readonly ClientSettings[];
  readonly environments: EnvironmentsSettings;
};

export type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;
