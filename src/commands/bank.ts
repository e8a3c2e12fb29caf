/** `penstock bank`: a simulated bank, until it is stopped. */

import type { LinkStyle } from '../simulated-bank/links.ts';
import { createSimulatedBank } from '../simulated-bank/server.ts';
import type { Options } from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';

const linkStyles: readonly string[] = [
  'absolute',
  'relative',
  'relative-without-segment',
  'relative-without-base',
] satisfies LinkStyle[];
const isLinkStyle = (value: string): value is LinkStyle => linkStyles.includes(value);

/** @throws CommandError if an option is invalid, or if the port cannot be opened */
export async function runBank({
  port = '9101',
  host = '127.0.0.1',
  name = 'bank',
  basePath = '',
  segment = 'berlingroup',
  links = 'absolute',
  publicOrigin,
}: Options): Promise<undefined> {
  if (!isLinkStyle(links)) throw new UsageError(`--links must be one of ${linkStyles.join(', ')}`);
  if (!isPort(port)) throw new UsageError('--port must be a number from 0 to 65535');
  if (!isBasePath(basePath))
    throw new UsageError(
      `--base-path must start with a slash and not end with one: --base-path ${asBasePath(basePath)}`,
    );

  const bank = createSimulatedBank({ name, segment, links, basePath, ...(publicOrigin && { publicOrigin }) });
  const baseUrl = await bank.start(Number(port), host).catch((cause: unknown) => {
    throw listenError(cause);
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, bank.stop);

  const { origin } = new URL(baseUrl);
  const resources = [baseUrl, segment, 'v1'].filter((part) => part !== '').join('/');
  console.log(`${name} listens at ${resources}; control calls: curl ${origin}/_bank/`);
  console.log(`Inject a fault: curl -X PUT ${origin}/_bank/faults -d '{"name":"reset","times":1}'`);
}

/** The error of a command whose port cannot be opened. */
export function listenError(cause: unknown): CommandError {
  const message = cause instanceof Error ? cause.message : String(cause);
  const isInUse = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
  const advice = isInUse ? ': stop the program that uses the port (another demo?), then try again.' : '';
  return new CommandError(exitCodes.refused, message + advice, { cause });
}

const isPort = (text: string) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
const isBasePath = (path: string) => /^(\/[^/?#\s]+)*$/.test(path);
/** What was probably meant. */
const asBasePath = (path: string) => ['', ...path.split('/').filter((part) => part !== '')].join('/');
