/** `penstock serve`: runs the gateway until it is told to end, and reads its configuration again when told to. */

import { setTimeout } from 'node:timers/promises';
import { operatorsOf } from '../admin/operators.ts';
import { adminToken, type Loaded } from '../config/load.ts';
import { notInEffectYet } from '../config/not-in-effect.ts';
import type { Config } from '../config/schema.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { createLog, type Log } from '../telemetry/log.ts';

/** How long a gateway that is told to end goes on serving, so that load balancers notice. Milliseconds. */
const noticeMs = 1_000;
/** How much longer than the longest call running requests may take to end. Milliseconds. */
const spareMs = 5_000;

/** @param reread loads the configuration again, for SIGHUP */
export async function serve(config: Config, reread: () => Loaded): Promise<void> {
  const log = createLog(config.log);
  for (const sentence of notInEffectYet(config)) log('warn', sentence);
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
  const end = endOnce(gateway, config, log);
  process.on('SIGINT', end).on('SIGTERM', end);
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

/** The first signal lets running requests end; the second does not wait for them. */
function endOnce(
  gateway: Gateway,
  { deadlines }: Config,
  log: Log,
): (signal: NodeJS.Signals) => Promise<void> {
  let ending = false;
  return async (signal) => {
    if (ending) process.exit(1);
    ending = true;
    log('info', 'stopping: running requests are let end, a second signal ends at once', { signal });
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
    process.exit(inTime ? 0 : 1);
  };
}
