/** The configuration: its sections, and the types that the rest of the house reads. */

import { z } from 'zod';
import { admin } from './sections/admin.ts';
import { clients } from './sections/clients.ts';
import { type environment, environments } from './sections/environments.ts';
import { listen } from './sections/listen.ts';
import { idempotency, payments, statusCache } from './sections/payments.ts';
import { shaping } from './sections/shaping.ts';
import { standard } from './sections/standard.ts';
import { state } from './sections/state.ts';
import { log, tracing } from './sections/telemetry.ts';
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
  deadlines,
  upstream,
  circuit,
  shaping,
  log,
  tracing,
});

/** The settings as the schema reads them, one by one; `Config` is what they mean together. */
export type Settings = DeepReadonly<z.output<typeof schema>>;

/** Durations in milliseconds, sizes in bytes, rates in tokens per second, percentages as fractions, throughout. */
export type ListenSettings = Settings['listen'] & {
  /** Scheme, host, port and path under which TPP systems reach the gateway, without a slash at its end. */
  readonly publicUrl: string;
};
export type AdminSettings = Settings['admin'];
export type StandardSettings = Settings['standard'];
export type StateSettings = Settings['state'];
export type IdempotencySettings = Settings['idempotency'];
export type PaymentsSettings = Settings['payments'];
export type StatusCacheSettings = Settings['statusCache'];
export type DeadlineSettings = Settings['deadlines'];
export type UpstreamSettings = Settings['upstream'];
export type CircuitSettings = Settings['circuit'];
export type ShapingSettings = Settings['shaping'];
export type LogSettings = Settings['log'];
export type TracingSettings = Settings['tracing'];

/** Which Redis to use: one, a cluster, or what sentinels watch. The addresses may hold credentials: never log them. */
export type RedisSettings = NonNullable<StateSettings['redis']>;

/** One TPP system that may call. */
export type ClientSettings = Omit<Settings['clients'][number], 'tenant' | 'environments'> & {
  readonly tenant: string;
  /** The names of the environments that it may use, never none. */
  readonly environments: readonly string[];
};

/** One side of the bank as the file has it. */
export type EnvironmentSection = DeepReadonly<z.output<typeof environment>>;

/** The client certificate shown to one side of the bank, and whom the gateway believes there. */
export type EnvironmentTlsSettings = NonNullable<EnvironmentSection['tls']>;

/** The seal for the requests to one side of the bank. */
export type SigningSettings = NonNullable<EnvironmentSection['signing']>;

/** One side of the bank; fits `Environment` of the flow. */
export type EnvironmentSettings = Omit<EnvironmentSection, 'shaping'> & {
  readonly name: string;
  /** Scheme, host and port: `https://api.bank.example`. */
  readonly origin: string;
  /** What stands before the standard's segment: empty, or `/psd2` without a slash at its end. */
  readonly basePath: string;
  /** The global shaping, with what this environment overrides. */
  readonly shaping: ShapingSettings;
};

/** The sides of the bank, in the order of the file. */
export interface EnvironmentsSettings {
  /** The name of the one where new payments go at the first start. */
  readonly active: string;
  readonly all: readonly EnvironmentSettings[];
}

/** A valid configuration, complete: nothing in it is raw text any more. */
export type Config = Omit<Settings, 'listen' | 'clients' | 'environments'> & {
  readonly listen: ListenSettings;
  readonly clients: readonly ClientSettings[];
  readonly environments: EnvironmentsSettings;
};

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;
