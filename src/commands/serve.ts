/** `penstock serve`: runs the gateway until a signal stops it, and reloads the configuration on SIGHUP. */

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { configuredOperators } from '../admin/authenticate-operator.ts';
import { type DerivedDefault, describeDerived } from '../config/derive-defaults.ts';
import { adminToken, configSource, type LoadedConfig, loadConfigAndFiles } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { assembleGateway, type Gateway } from '../gateway.ts';
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
  const load = () => loadConfigAndFiles(configSource(file));
  const { config, derived, isWritten } = validConfig(load());
  const output = standardOutput();
  const format = isWritten(['log', 'format']) || !output.terminal ? config.log.format : 'text';
  const instance = randomUUID();
  const log = createLog({ ...config.log, format }, output, instance);
  output.onLinesDropped((lostLines) =>
    log('warn', 'log lines were dropped: nobody read them', { lostLines }),
  );
  if (config.idempotency.ifStateFails === 'allow')
    log(
      'warn',
      'idempotency.ifStateFails: allow: without the state, payments are not protected from duplicates',
    );
  logDerived(derived, log);
  process.on('SIGHUP', () => {}); // without a listener, a SIGHUP during the start would end the process
  const { gateway, tppPort, adminPort, generatedToken } = await start(config, log, instance).catch(
    (cause: unknown): never => {
      log('error', 'the gateway cannot start', {
        why: cause instanceof Error ? cause.message : String(cause),
      });
      process.exit(exitCodes.refused);
    },
  );
  process.on('SIGHUP', () => void reload(gateway, load, log));
  if (generatedToken)
    process.stderr.write(`The operators' token for this run: PENSTOCK_ADMIN_TOKEN=${generatedToken}\n`);
  log('info', 'serving', {
    tppSystems: `${config.listen.host}:${tppPort}`,
    operators: `${config.admin.host}:${adminPort}`,
    publicUrl: config.listen.publicUrl,
  });

  const shutDown = createShutdown(gateway, config, log, output);
  let isSignalled = false;
  const stop = (signal: NodeJS.Signals) => {
    if (isSignalled) process.exit(exitCodes.refused);
    isSignalled = true;
    log('info', 'stopping: waiting for running requests; send the signal again to exit now', { signal });
    shutDown(exitCodes.ok);
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // Also called for unhandled rejections. The state of the process is unknown: it must not continue.
  process.on('uncaughtException', (thrown) => {
    log('error', 'stopping: uncaught error', { stack: safeStack(thrown) });
    shutDown(exitCodes.internal);
  });
}

async function start(config: Config, log: Log, instanceId: string) {
  const { operators, generatedToken } = configuredOperators(config.admin, adminToken(config.admin));
  const gateway = assembleGateway(config, log, operators, undefined, instanceId);
  return { gateway, generatedToken, ...(await gateway.start()) };
}

async function reload(gateway: Gateway, load: () => LoadedConfig, log: Log): Promise<void> {
  const loaded = load();
  if (loaded.kind === 'invalid') {
    log('error', 'the configuration is faulty; the old one stays', { faults: loaded.errors.join('\n') });
    return;
  }
  try {
    const needRestart = await gateway.reload(loaded.config);
    logDerived(loaded.derived, log);
    log('info', 'the configuration was read again', { needRestart: needRestart.join(', ') || undefined });
  } catch (cause) {
    log('error', 'the configuration cannot be used; the old one stays', { why: String(cause) });
  }
}

function logDerived(derived: readonly DerivedDefault[], log: Log): void {
  if (derived.length === 0) return;
  log('info', 'some defaults follow other settings', { derived: derived.map(describeDerived).join('\n') });
}

/** @returns waits for running requests, then exits the process; called repeatedly, with the highest exit code */
function createShutdown(
  gateway: Gateway,
  { deadlines }: Config,
  log: Log,
  output: Output,
): (exitCode: number) => Promise<void> {
  let highestExitCode = -1;
  return async (exitCode) => {
    const isShuttingDown = highestExitCode >= 0;
    highestExitCode = Math.max(highestExitCode, exitCode);
    if (isShuttingDown) return;
    gateway.drain();
    await setTimeout(drainNoticeMs);
    const timeoutMs = Math.max(deadlines.status, deadlines.read, deadlines.write) + shutdownMarginMs;
    const inTime = await Promise.race([
      gateway.stop().then(
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
