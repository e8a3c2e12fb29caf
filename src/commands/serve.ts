/** `penstock serve`: runs the gateway until a signal stops it, and reloads the configuration on SIGHUP. */

import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { createCredentialsReader } from '../admin/operators.ts';
import { UnusableConfigError } from '../config/config-errors.ts';
import { configSource, loadConfigAndFiles } from '../config/load.ts';
import { longestDeadlines } from '../config/resolve-defaults.ts';
import type { Config } from '../config/schema.ts';
import { assembleGateway, type Gateway, type GatewayOrigin } from '../gateway.ts';
import { logDerived, logExposure } from '../reload-config.ts';
import { newInstanceName } from '../telemetry/instance-name.ts';
import { createLog, type Log, safeStack } from '../telemetry/log.ts';
import { type Output, standardOutput } from '../telemetry/standard-output.ts';
import { exitCodes } from './exit-codes.ts';
import { validConfig } from './valid-config.ts';

/** How long a draining gateway continues to serve, so that load balancers notice. Milliseconds. */
const drainNoticeMs = 1_000;
/** How much longer than the longest deadline running requests may take. Milliseconds. */
const shutdownMarginMs = 5_000;
/** How long the process waits at the end until its log is read. Milliseconds. */
const finalFlushMs = 1_000;

/**
 * @param file the configuration file, if the command line names one
 * @throws CommandError if the configuration is invalid
 */
export async function serve(file: string | undefined): Promise<void> {
  disablePretenuring();
  const load = () => loadConfigAndFiles(configSource(file));
  const { config, derived, isWritten } = validConfig(load());
  const output = standardOutput();
  const format = isWritten(['log', 'format']) || !output.terminal ? config.log.format : 'text';
  const instance = newInstanceName();
  const log = createLog({ ...config.log, format }, output, instance);
  output.onLinesDropped((lostLines) =>
    log('warn', 'log lines were dropped: nobody read them', { lostLines }),
  );
  logDerived(derived, log);
  logExposure(config, log);
  process.on('SIGHUP', () => {}); // without a listener, a SIGHUP during the start would end the process
  const started = await start(config, log, { instanceId: instance, loadConfig: load }).catch(
    (cause: unknown): never => {
      log('error', 'the gateway cannot start', {
        why: cause instanceof Error ? cause.message : String(cause),
      });
      process.exit(isUnusableConfig(cause) ? exitCodes.config : exitCodes.refused);
    },
  );
  const { gateway, tppPort, adminPort } = started;
  process.on('SIGHUP', (signal) => void gateway.reloadFromSource({ by: 'signal', signal }));
  const shutDown = createShutdown(gateway, log, output);
  let isSignalled = false;
  const stop = (signal: NodeJS.Signals) => {
    if (isSignalled) process.exit(exitCodes.refused);
    isSignalled = true;
    log('info', 'stopping: waiting for running requests; send the signal again to exit now', { signal });
    shutDown(exitCodes.ok, signal);
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // Also called for unhandled rejections. The state of the process is unknown: it must not continue.
  process.on('uncaughtException', (thrown) => {
    log('error', 'stopping: uncaught error', { stack: safeStack(thrown) });
    shutDown(exitCodes.internal, 'uncaught error');
  });
  // The last step: a program that reads this line may send a signal at once, and the signal must drain the gateway.
  log('info', 'serving', {
    tppSystems: `${config.listen.host}:${tppPort}`,
    operators: `${config.admin.host}:${adminPort}`,
    publicUrl: config.listen.publicUrl,
  });
}

/**
 * After requests had to wait, V8 allocates some of their objects in the old generation. From then on, such an object keeps its whole
 * request alive during collections of the young generation (ADR 112).
 */
const disablePretenuring = () => setFlagsFromString('--no-allocation-site-pretenuring');

async function start(config: Config, log: Log, origin: GatewayOrigin) {
  const gateway = assembleGateway(config, log, createCredentialsReader(showToken), undefined, origin);
  return { gateway, ...(await gateway.start()) };
}

function showToken(token: string): void {
  process.stderr.write(`The operators' token for this run: PENSTOCK_ADMIN_TOKEN=${token}\n`);
}

/** System errors that a restart does not end: a missing file or folder, or a missing permission. */
const permanentCodes: ReadonlySet<unknown> = new Set([
  ...['ENOENT', 'ENOTDIR', 'EISDIR'],
  ...['EACCES', 'EPERM', 'EROFS'],
]);

/** Whether the start fails until somebody changes the configuration or what it names. systemd does not restart it then. */
function isUnusableConfig(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  if (thrown instanceof UnusableConfigError || ('code' in thrown && permanentCodes.has(thrown.code)))
    return true;
  return isUnusableConfig(thrown.cause);
}

/** @returns a function that drains the gateway and exits the process. A further call can only raise the exit code. */
function createShutdown(
  gateway: Gateway,
  log: Log,
  output: Output,
): (exitCode: number, why: string) => Promise<void> {
  let highestExitCode = -1;
  return async (exitCode, why) => {
    const isShuttingDown = highestExitCode >= 0;
    highestExitCode = Math.max(highestExitCode, exitCode);
    if (isShuttingDown) return;
    gateway.drain();
    await setTimeout(drainNoticeMs);
    const timeoutMs = Math.max(...Object.values(longestDeadlines(gateway.config()))) + shutdownMarginMs;
    const inTime = await Promise.race([
      gateway.stop(why).then(
        () => true,
        () => false,
      ),
      setTimeout(timeoutMs, false, { ref: false }),
    ]);
    log('info', inTime ? 'stopped' : 'stopped with requests still running');
    await Promise.race([output.flush(), setTimeout(finalFlushMs)]);
    process.exit(inTime ? highestExitCode : Math.max(highestExitCode, exitCodes.refused));
  };
}
