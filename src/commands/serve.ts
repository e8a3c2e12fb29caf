/** `penstock serve`: runs the gateway until it is told to end, and reads its configuration again when told to. */

import { setTimeout } from 'node:timers/promises';
import { operatorsOf } from '../admin/operators.ts';
import { adminToken, type Loaded } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { placeOf } from '../telemetry/place-of.ts';
import { type Output, standardOutput } from '../telemetry/standard-output.ts';

/** How long a gateway that is told to end goes on serving, so that load balancers notice. Milliseconds. */
const noticeMs = 1_000;
/** How much longer than the longest call running requests may take to end. Milliseconds. */
const spareMs = 5_000;
/** How long the end waits for whoever reads the log. Milliseconds. */
const lastLinesMs = 1_000;
/** Exit code of sysexits.h for a fault of our own. */
const exitSoftware = 70;

/** @param reread loads the configuration again, for SIGHUP */
export async function serve(config: Config, reread: () => Loaded): Promise<void> {
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
  process.on('SIGHUP', () => gateway && reload(gateway, reread, log)); // before it serves, there is nothing to reload
  const { tppPort, adminPort, madeToken, ...started } = await start(config, log).catch(
    (cause: unknown): never => {
      log('error', 'the gateway cannot start', {
        why: cause instanceof Error ? cause.message : String(cause),
      });
      process.exit(1);
    },
  );
  if (madeToken)
    process.stderr.write(`The operators' token for this run: PENSTOCK_ADMIN_TOKEN=${madeToken}\n`);
  log('info', 'serving', {
    tppSystems: `${config.listen.host}:${tppPort}`,
    operators: `${config.admin.host}:${adminPort}`,
    publicUrl: config.listen.publicUrl,
  });

  gateway = started.gateway;
  const end = createEnd(gateway, config, log, output);
  let signalled = false;
  const stop = (signal: NodeJS.Signals) => {
    if (signalled) process.exit(1);
    signalled = true;
    log('info', 'stopping: running requests are let end, a second signal ends at once', { signal });
    end(0);
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // Rejections that nobody handles come here, too. Nobody knows in what state the gateway is: it does not go on.
  process.on('uncaughtException', (thrown) => {
    log('error', 'stopping: an error was caught by nobody', { stack: placeOf(thrown) });
    end(exitSoftware);
  });
}

async function start(config: Config, log: Log) {
  const { operators, madeToken } = operatorsOf(config.admin, adminToken(config.admin));
  const gateway = createGateway(config, log, operators);
  return { gateway, madeToken, ...(await gateway.start()) };
}

function reload(gateway: Gateway, reread: () => Loaded, log: Log): void {
  const loaded = reread();
  if (loaded.kind === 'faulty') {
    log('error', 'the configuration is faulty; the old one stays', { faults: loaded.faults.join('\n') });
    return;
  }
  try {
    const waiting = gateway.reload(loaded.config);
    log('info', 'the configuration was read again', { needRestart: waiting.join(', ') || undefined });
  } catch (cause) {
    log('error', 'the configuration cannot be used; the old one stays', { why: String(cause) });
  }
}

/** Lets running requests end, and then ends the process; asked more than once, with the highest exit code. */
function createEnd(
  gateway: Gateway,
  { deadlines }: Config,
  log: Log,
  output: Output,
): (exitCode: number) => Promise<void> {
  let highest = -1;
  return async (exitCode) => {
    const ending = highest >= 0;
    highest = Math.max(highest, exitCode);
    if (ending) return;
    gateway.drain();
    await setTimeout(noticeMs);
    const longest = Math.max(deadlines.status, deadlines.read, deadlines.write) + spareMs;
    const inTime = await Promise.race([
      gateway.stop().then(
        () => true,
        () => false,
      ),
      setTimeout(longest, false, { ref: false }),
    ]);
    log('info', inTime ? 'stopped' : 'stopped with requests still running');
    await Promise.race([output.flushed(), setTimeout(lastLinesMs)]);
    process.exit(inTime ? highest : Math.max(highest, 1));
  };
}
