/** The client of the admin API of a running gateway, with an operator's token. */

import type { EnvironmentVariables } from '../config/environment-variables.ts';
import { adminToken, configSource, loadConfig } from '../config/load.ts';
import type { AdminSettings } from '../config/schema.ts';
import type { AdminResponse } from './admin-response.ts';
import type { Options } from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';
import { validConfig } from './valid-config.ts';

/** @param path below `/api` @throws CommandError if no gateway answers */
export type AdminClient = (
  method: 'GET' | 'PUT' | 'POST' | 'DELETE',
  path: string,
  body?: unknown,
) => Promise<AdminResponse>;

export interface AdminListener {
  /** `http://127.0.0.1:9090`, or with a path if a proxy in front of the listener adds one. No slash at the end. */
  readonly url: string;
  readonly token: string;
}

type ListenerOptions = Pick<Options, 'config' | 'url' | 'tokenFile'>;

/** @throws CommandError that says what to do, if the address or the token is not known */
export const connectToGateway = (options: ListenerOptions): AdminClient =>
  createAdminClient(adminListenerOf(options));

/**
 * With `--url`, no configuration is read: the command may run on another machine. Otherwise the configuration names
 * the address and the token. It does not open the other files of the configuration: an operator may not be allowed to
 * read the keys.
 *
 * @throws CommandError that says what to do, if the address or the token is not known
 */
export function adminListenerOf(
  { url, tokenFile, config }: ListenerOptions,
  variables?: EnvironmentVariables,
): AdminListener {
  if (url !== undefined) return { url: parseUrl(url), token: readToken(tokenFile, null, variables) };
  const settings = loadAdminSettings(config, variables);
  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host;
  return {
    url: `http://${host}:${settings.port}`,
    token: readToken(tokenFile, settings.tokenFile, variables),
  };
}

export function createAdminClient({ url, token }: AdminListener): AdminClient {
  return async (method, path, body) => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      redirect: 'error', // the token is for this address only
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch((cause: unknown) => {
      throw unavailable(`No gateway answers at ${url}${reasonOf(cause)}`, cause);
    });
    const { ok, status } = response;
    if (status === 204) return { ok, status, body: undefined };
    const json: unknown = await response.json().catch((cause: unknown) => {
      throw unavailable(`The program at ${url} is not a gateway: its response is not JSON`, cause);
    });
    return { ok, status, body: json };
  };
}

const unavailable = (what: string, cause: unknown) =>
  new CommandError(
    exitCodes.unavailable,
    `${what}. Start the gateway, or name its admin listener with --url.`,
    { cause },
  );

/** ` (ECONNREFUSED)`; empty if the error has no code. */
function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined; // fetch itself throws `TypeError: fetch failed`
  return cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
}

function parseUrl(text: string): string {
  const url = URL.parse(text);
  const isPlain =
    url && /^https?:$/.test(url.protocol) && `${url.username}${url.password}${url.search}${url.hash}` === '';
  if (!isPlain) throw new UsageError(`--url: expected an address such as http://192.0.2.1:9090`);
  return url.href.replace(/\/+$/, '');
}

function loadAdminSettings(file: string | undefined, variables?: EnvironmentVariables): AdminSettings {
  const source = configSource(file, variables);
  const loaded = loadConfig(source, variables);
  if (loaded.kind === 'invalid' && source === undefined)
    throw new UsageError('Name the gateway with --url URL, or its configuration with --config FILE.');
  return validConfig(loaded).config.admin;
}

/**
 * @param file            of the command line
 * @param configuredFile  `admin.tokenFile`
 */
function readToken(
  file: string | undefined,
  configuredFile: string | null,
  variables?: EnvironmentVariables,
): string {
  const token = readingToken(() =>
    file === undefined
      ? adminToken({ tokenFile: configuredFile }, variables)
      : adminToken({ tokenFile: file }, {}),
  );
  if (token !== undefined) return token;
  throw new CommandError(
    exitCodes.permission,
    'No operator token: set PENSTOCK_ADMIN_TOKEN, or name a file with --token-file FILE. Without configured operators, the gateway prints a token when it starts.',
  );
}

function readingToken<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(exitCodes.permission, `The operator token cannot be read: ${why}`, { cause });
  }
}
