/** `penstock bank`: a simulated bank, until it is stopped. */

import type { LinkStyle } from '../simulated-bank/links.ts';
import { createSimulatedBank } from '../simulated-bank/server.ts';
import { readBankProfile } from './bank-profile.ts';
import { createBankTls } from './bank-tls.ts';
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

/** The payer has a page to decide, and time to open it, before it approves by itself. */
export const payerWithPage = { approvalPage: true, timings: { authorisedAfterMs: 30_000 } } as const;

/** @throws CommandError if an option is invalid, or if the port cannot be opened */
export async function runBank(options: Options): Promise<undefined> {
  const { like, port = '9101', host = '127.0.0.1', name = 'bank' } = options;
  const { basePath, segment, links, publicOrigin, clientCa } = options;
  if (like !== undefined && [basePath, segment, links].some((option) => option !== undefined))
    throw new UsageError('--like already sets --base-path, --segment and --links: change the file instead');
  if (links !== undefined && !isLinkStyle(links))
    throw new UsageError(`--links must be one of ${linkStyles.join(', ')}`);
  if (!isPort(port)) throw new UsageError('--port must be a number from 0 to 65535');
  if (!/^[a-z0-9]+$/.test(name)) throw new UsageError('--name must consist of lower-case letters and digits');
  if (basePath !== undefined && !isPath(basePath))
    throw new UsageError(
      `--base-path must start with a slash and not end with one: --base-path ${asPath(basePath)}`,
    );
  if (segment !== undefined && !isPath(`/${segment}`) && segment !== '')
    throw new UsageError(
      `--segment must not start or end with a slash: --segment ${asPath(segment).slice(1)}`,
    );
  if (publicOrigin !== undefined && URL.parse(publicOrigin)?.origin !== publicOrigin)
    throw new UsageError('--public-origin must be a URL without a path, such as https://bank.example:8443');
  const tls = createBankTls(options, host);

  const bank = createSimulatedBank({
    name,
    ...payerWithPage,
    ...(like !== undefined && { profile: readBankProfile(like) }),
    ...(basePath !== undefined && { basePath }),
    ...(segment !== undefined && { segment }),
    ...(links !== undefined && { links }),
    ...(publicOrigin && { publicOrigin }),
    ...(tls && { tls: tls.options }),
  });
  const baseUrl = await bank.start(Number(port), host).catch((cause: unknown) => {
    throw listenError(cause, 'stop the program that uses the port, or name another one with --port');
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, bank.stop);

  const { origin } = new URL(baseUrl);
  const clientFiles = clientCa === undefined ? '' : ' --cert CLIENT.crt --key CLIENT.key';
  const curl = tls ? `curl --cacert ${tls.certFile}${clientFiles}` : 'curl';
  console.log(`${name} listens at ${origin}${bank.path}; control calls: ${curl} ${origin}/_bank/`);
  if (tls) console.log(settingsWithTls(baseUrl, tls.certFile, clientCa));
  else console.log(`In the configuration of the gateway, the environment has baseUrl: ${baseUrl}`);
  console.log(`Inject a fault: ${curl} -X PUT ${origin}/_bank/faults -d '{"name":"reset","times":1}'`);
}

/** What the environment of the gateway needs, in YAML. */
function settingsWithTls(baseUrl: string, certFile: string, clientCa: string | undefined): string {
  const clientFiles = `
    certFile: CLIENT.crt  # a certificate that the CA of ${clientCa} has issued, such as a QWAC
    keyFile: CLIENT.key`;
  return `In the configuration of the gateway, the environment has:
  baseUrl: ${baseUrl}
  tls:
    caFile: ${certFile}  # removed when the bank stops${clientCa === undefined ? '' : clientFiles}`;
}

const wrongHostCodes = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'];

/**
 * The error of a command whose port cannot be opened.
 *
 * @param advice for a port that is in use
 */
export function listenError(thrown: unknown, advice: string): CommandError {
  const { code, address, port, message } = systemError(thrown);
  const refuse = (text: string) => new CommandError(exitCodes.refused, text, { cause: thrown });
  if (code === 'EADDRINUSE') return refuse(`${code}: port ${port} of ${address} is in use; ${advice}`);
  if (wrongHostCodes.includes(code ?? ''))
    return refuse(`${code}: this is no address of this machine; name one with --host, such as 127.0.0.1`);
  return refuse(message);
}

/** The innermost cause. */
function systemError(thrown: unknown): NodeJS.ErrnoException & { address?: string; port?: number } {
  if (!(thrown instanceof Error)) return new Error(String(thrown));
  return thrown.cause instanceof Error ? systemError(thrown.cause) : thrown;
}

/** Whether `--port` names a port. */
export const isPort = (text: string) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
const isPath = (path: string) => /^(\/[^/?#\s]+)*$/.test(path);
/** What was probably meant. */
const asPath = (path: string) => ['', ...path.split('/').filter((part) => part !== '')].join('/');
