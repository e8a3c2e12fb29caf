/** `penstock serve`: runs the gateway until it is told to end, and reads its configuration again when told to. */

import { setTimeout } from 'node:timers/promises';
import { configuredOperators } from '../admin/authenticate-operator.ts';
import { adminToken, type LoadedConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { createLog, type Log, safeStack } from '../telemetry/log.ts';
import { type Output, standardOutput } from '../telemetry/standard-output.ts';

/** How long a gateway that is told to end goes on serving, so that load balancers notice. Milliseconds. */
const drainNoticeMs = 1_000;
/** How much longer than the longest call running requests may take to end. Milliseconds. */
const shutdownMarginMs = 5_000;
/** How long the end waits for whoever reads the log. Milliseconds. */
const finalFlushMs = 1_000;
/** Exit code of sysexits.h for a fault of our own. */
const exitSoftware = 70;

/** @param loadAgain loads the configuration again, for SIGHUP */
export async function serve(config: Config, loadAgain: () => LoadedConfig): Promise<void> {
  const output = standardOutput((lostLines) =>
    log('warn', 'nobody read the log: lines are lost', { lostLines }),
  );
  const log = createLog(config.log, output);
  if (config.idempotency.ifStateFails === 'allow')
    log(
      'warn',
      'idempotency.ifStateFails: allow: without the state, payments are not protected from duplicates',
    );
  let gateway: Gateway | undefined;
  process.on('SIGHUP', () => gateway && reload(gateway, loadAgain, log)); // before it serves, there is nothing to reload
  const { tppPort, adminPort, generatedToken, ...started } = await start(config, log).catch(
    (cause: unknown): never => {
      log('error', 'the gateway cannot start', {
        why: cause instanceof Error ? cause.message : String(cause),
      });
      process.exit(1);
    },
  );
  if (generatedToken)
    process.stderr.write(`The operators' token for this run: PENSTOCK_ADMIN_TOKEN=${generatedToken}\n`);
  log('info', 'serving', {
    tppSystems: `${config.listen.host}:${tppPort}`,
    operators: `${config.admin.host}:${adminPort}`,
    publicUrl: config.listen.publicUrl,
  });

  gateway = started.gateway;
  const shutDown = createShutdown(gateway, config, log, output);
  let signalled = false;
  const stop = (signal: NodeJS.Signals) => {
    if (signalled) process.exit(1);
    signalled = true;
    log('info', 'stopping: running requests are let end, a second signal ends at once', { signal });
    shutDown(0);
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // Rejections that nobody handles come here, too. Nobody knows in what state the gateway is: it does not go on.
  process.on('uncaughtException', (thrown) => {
    log('error', 'stopping: an error was caught by nobody', { stack: safeStack(thrown) });
    shutDown(exitSoftware);
  });
}

async function start(config: Config, log: Log) {
  const { operators, generatedToken } = configuredOperators(config.admin, adminToken(config.admin));
  const gateway = createGateway(config, log, operators);
  return { gateway, generatedToken, ...(await gateway.start()) };
}

function reload(gateway: Gateway, loadAgain: () => LoadedConfig, log: Log): void {
  const loaded = loadAgain();
  if (loaded.kind === 'invalid') {
    log('error', 'the configuration is faulty; the old one stays', { faults: loaded.errors.join('\n') });
    return;
  }
  try {
    const needRestart = gateway.reload(loaded.config);
    log('info', 'the configuration was read again', { needRestart: needRestart.join(', ') || undefined });
  } catch (cause) {
    log('error', 'the configuration cannot be used; the old one stays', { why: String(cause) });
  }
}

/** Lets running requests end, and then ends the process; asked more than once, with the highest exit code. */
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
    const longestMs = Math.max(deadlines.status, deadlines.read, deadlines.write) + shutdownMarginMs;
    const inTime = await Promise.race([
      gateway.stop().then(
        () => true,
        () => false,
      ),
      setTimeout(longestMs, false, { ref: false }),
    ]);
    log('info', inTime ? 'stopped' : 'stopped with requests still running');
    await Promise.race([output.flush(), setTimeout(finalFlushMs)]);
    process.exit(inTime ? highestExitCode : Math.max(highestExitCode, 1));
  };
}
