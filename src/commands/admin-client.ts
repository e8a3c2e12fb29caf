/** The client of the admin API of a running gateway, with an operator's token. */

import type { EnvironmentVariables } from '../config/environment-variables.ts';
import { adminToken, configSource, loadAdminSettings, loadConfig } from '../config/load.ts';
import { listenUrl } from '../config/resolve-defaults.ts';
import type { AdminSettings } from '../config/schema.ts';
import { type AdminResponse, refusalSchema } from './admin-response.ts';
import type { Options } from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';
import { certificateAdvice, type FetchUrl, trustAuthorities } from './trusted-authorities.ts';
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

type ListenerOptions = Pick<Options, 'config' | 'url' | 'tokenFile' | 'caFile'>;

/** More than the pre-flight test of a switch takes. Milliseconds. */
const responseTimeoutMs = 60_000;

/**
 * @param timeoutMs for each request
 * @throws CommandError that says what to do, if the address or the token is not known
 */
export function connectToGateway(options: ListenerOptions, timeoutMs?: number): AdminClient {
  trustAuthorities(options.caFile);
  return createAdminClient(adminListenerOf(options), timeoutMs);
}

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
  const settings = validAdminSettings(config, variables);
  return { url: urlOf(settings), token: readToken(tokenFile, settings.tokenFile, variables) };
}

/**
 * The address of the admin listener, for requests without a token. Errors in other sections of the configuration do not
 * matter: somebody may have changed the file since the gateway has started.
 *
 * @throws CommandError if the address is not known
 */
export function adminUrlOf(
  { url, config }: Pick<ListenerOptions, 'config' | 'url'>,
  variables?: EnvironmentVariables,
): string {
  if (url !== undefined) return parseUrl(url);
  return urlOf(loadAdminSettings(configSource(config, variables), variables));
}

/** @param timeoutMs for each request */
export function createAdminClient(
  { url, token }: AdminListener,
  timeoutMs: number = responseTimeoutMs,
): AdminClient {
  return async (method, path, body) => {
    const response = await sendToAdminListener(`${url}/api${path}`, timeoutMs, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (response.ok || isRefusal(response.body)) return response;
    throw notAGateway(url, response.status);
  };
}

/** The path with those of the parameters that are set. */
export function pathWithQuery(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query}`;
}

/**
 * Sends a request to the admin listener.
 *
 * @throws CommandError if no complete response arrives within `timeoutMs`, or if it is not JSON
 */
export async function sendToAdminListener(
  url: string,
  timeoutMs: number,
  request: RequestInit = {},
  fetchWith: FetchUrl = fetch,
): Promise<AdminResponse> {
  const signal = AbortSignal.timeout(timeoutMs);
  const { ok, status, text } = await exchange(url, { ...request, signal }, fetchWith);
  if (status === 204) return { ok, status, body: undefined };
  const body = parseJson(text);
  if (body === undefined) throw notAGateway(url, status);
  return { ok, status, body };
}

async function exchange(url: string, request: RequestInit, fetchWith: FetchUrl) {
  try {
    const response = await fetchWith(url, { ...request, redirect: 'error' }); // the token is for this address only
    return { ok: response.ok, status: response.status, text: await response.text() };
  } catch (cause) {
    const { origin } = new URL(url);
    throw (
      certificateAdvice(origin, cause) ??
      unavailable(`No gateway answers at ${origin}${reasonOf(cause)}`, cause)
    );
  }
}

/** Every refusal of the admin API has the member `error`. */
const isRefusal = (body: unknown) => refusalSchema.safeParse(body).success;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error for a response that no admin listener sends. */
export const notAGateway = (url: string, status: number): CommandError =>
  unavailable(
    `The program at ${new URL(url).origin} is not the admin listener of a gateway: it answered ${status}`,
  );

const unavailable = (what: string, cause?: unknown) =>
  new CommandError(
    exitCodes.unavailable,
    `${what}. Start the gateway, or name its admin listener with --url.`,
    { cause },
  );

/** Such as ` (ECONNREFUSED)` or ` (timeout)`. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return '';
  if (thrown.name === 'TimeoutError') return ' (timeout)';
  const { cause } = thrown; // fetch itself throws `TypeError: fetch failed`
  if (!(cause instanceof Error)) return '';
  return ` (${'code' in cause ? cause.code : cause.message})`;
}

function parseUrl(text: string): string {
  const url = URL.parse(text);
  const isPlain =
    url && /^https?:$/.test(url.protocol) && `${url.username}${url.password}${url.search}${url.hash}` === '';
  if (!isPlain) throw new UsageError(`--url: expected an address such as http://192.0.2.1:9090`);
  return url.href.replace(/\/+$/, '');
}

function urlOf({ host, port, tls }: Pick<AdminSettings, 'host' | 'port' | 'tls'>): string {
  if (port !== 0) return listenUrl({ host, port, tls });
  throw new UsageError(
    'admin.port is 0, so the gateway listens on any free port: name its address with --url URL.',
  );
}

function validAdminSettings(file: string | undefined, variables?: EnvironmentVariables): AdminSettings {
  const source = configSource(file, variables);
  const loaded = loadConfig(source, variables);
  if (loaded.kind === 'invalid' && source === undefined)
    throw new UsageError('Name the gateway with --url URL, or its configuration with --config FILE.');
  return validConfig(loaded, ['With --url URL, the command needs no configuration.']).config.admin;
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
  if (token === undefined)
    throw new CommandError(
      exitCodes.permission,
      'No operator token: set PENSTOCK_ADMIN_TOKEN, or name a file with --token-file FILE. Without configured operators, the gateway prints a token when it starts.',
    );
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CommandError(
    exitCodes.permission,
    'The operator token contains a space, a line break or another character that no token has: write the token alone into the file or the variable.',
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
