/** Opens and closes the two doors together, keeps the hearts beating, and takes a new configuration while it runs. */

import { isDeepStrictEqual } from 'node:util';
import type { Operator } from './admin/access.ts';
import type { Readiness } from './admin/admin-app.ts';
import { assemble } from './assembly/assembly.ts';
import { createHeart, heartbeatMs } from './assembly/heart.ts';
import { createLasting } from './assembly/lasting.ts';
import { createOperatorsDoor } from './assembly/operators-door.ts';
import { expiryWarning, type HeldCertificate } from './certificates/held.ts';
import type { Config } from './config/schema.ts';
import { asGatewayError } from './flow/errors.ts';
import { createListener, edgeLimits } from './http/listener.ts';
import { readListenerTls, watchListenerTls } from './http/listener-tls.ts';
import { close, open } from './http/server-life.ts';
import { lossAtStop } from './http/shared-port.ts';
import { createState, forgottenByRestart } from './state/create-state.ts';
import type { State } from './state/ports.ts';
import { createCertificateNews } from './telemetry/certificate-news.ts';
import type { Log } from './telemetry/log.ts';
import { observeRefusal } from './telemetry/observe.ts';

/** A gateway that is either serving or not, never half. */
export interface Gateway {
  /**
   * Opens both doors; if one cannot be opened, the other is closed again.
   *
   * @throws Error with a sentence that says what to change
   */
  start(): Promise<Addresses>;
  /** Takes another configuration for all requests to come. @returns settings that need a restart to take effect */
  reload(config: Config): readonly string[];
  /** Says that it is going (readiness, `Connection: close`), and goes on serving. */
  drain(): void;
  /** Takes no new connections, lets running requests end, and closes. */
  stop(): Promise<void>;
}

/** Where a started gateway listens. */
export interface Addresses {
  readonly tppPort: number;
  readonly adminPort: number;
}

/** How often files are looked at that may change. Milliseconds; they are taken over when two looks find the same. */
const lookedAtMs = 500;

/** A gateway by this configuration; it does not listen yet. @param state where it keeps what must last */
export function createGateway(
  config: Config,
  log: Log,
  operators: readonly Operator[] = [],
  state: State = stateOf(config, log),
): Gateway {
  const current = () => assembly;
  const lasting = createLasting(config, log, state, { current, certificates });
  const { telemetry, active, affinity, ledger, pulse, chores, overload } = lasting;
  let assembly = assemble(config, lasting);
  let phase: 'closed' | 'serving' | 'draining' = 'closed';

  const tppDoor = createListener(
    (request, answer) => assembly.serve(request, answer),
    observeRefusal(telemetry.observer),
    edgeLimits,
    readListenerTls(config.listen.tls),
  );
  tppDoor.server.on('drop', lasting.connectionRefused);
  const doorTls = watchListenerTls(config.listen.tls, tppDoor.server, createCertificateNews(log));
  const { host } = config.admin;
  const operatorsDoor = createOperatorsDoor({
    ...{ host, operators, lasting, current, readiness, condition },
    listenerCertificate: () => doorTls.certificates()[0]?.facts,
  });
  const { events } = operatorsDoor;
  const watch = createHeart(async () => {
    events.tick();
    return heartbeatMs;
  });
  // Apart from the others: nothing of this waits for the shared state.
  const files = createHeart(async () => {
    await Promise.all([doorTls.look(), assembly.upstreams.lookAtFiles()]);
    return lookedAtMs;
  });
  const hearts = [pulse, chores, watch, files, overload];

  function certificates(): readonly HeldCertificate[] {
    return [...doorTls.certificates(), ...assembly.upstreams.certificates()];
  }

  function condition(): Readiness {
    const trouble = pulse.trouble();
    const emptied = active.stateWasEmptied() ? ['the shared state was emptied since this instance runs'] : [];
    const forgotten = forgottenByRestart(config.state) ?? [];
    const reasons = [phase === 'serving' ? [] : phase, trouble ?? [], emptied, forgotten].flat();
    return { ready: phase === 'serving' && trouble === undefined, reasons };
  }

  function readiness(): Readiness {
    const { ready, reasons } = condition();
    const expiring = certificates().flatMap((one) => expiryWarning(one, Date.now()) ?? []);
    return { ready, reasons: [...reasons, ...expiring] };
  }

  function drain(): void {
    phase = 'draining';
    tppDoor.drain();
    events.end();
  }

  async function stop(): Promise<void> {
    drain();
    await Promise.all([close(tppDoor.server, tppDoor.isBusy), close(operatorsDoor.server)]);
    phase = 'closed';
    for (const heart of hearts) heart.stop();
    assembly.upstreams.close();
    await ledger.leave();
    await affinity.settle().catch((thrown: unknown) => {
      log('error', 'some payments are remembered by no instance any more', {
        why: asGatewayError(thrown).message,
      });
    });
    await state.close();
    await telemetry.close();
  }

  return {
    async start() {
      try {
        const loss = config.listen.reusePort ? lossAtStop() : undefined;
        if (loss) log('warn', loss);
        await state.open();
        await telemetry.open();
        await lasting.learn();
        const adminPort = await open(operatorsDoor.server, host, config.admin.port);
        const { host: tppHost, port, reusePort } = config.listen;
        const tppPort = await open(tppDoor.server, tppHost, port, reusePort ? 'with others' : 'alone');
        for (const heart of hearts) heart.start();
        phase = 'serving';
        return { tppPort, adminPort };
      } catch (cause) {
        await stop();
        throw cause;
      }
    },
    reload(next) {
      const before = assembly;
      assembly = assemble(next, lasting);
      before.upstreams.close();
      return needingRestart.filter((section) => !isDeepStrictEqual(at(config, section), at(next, section)));
    },
    drain,
    stop,
  };
}

/** What the doors and the state were built with; the rest of the configuration can be exchanged. */
const needingRestart = [
  'listen.host',
  'listen.port',
  'listen.reusePort',
  'listen.tls',
  'admin',
  'state',
  'payments',
  'log',
  'tracing',
];

function at(config: Config, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => Object(value)[name], config);
}

function stateOf({ state }: Config, log: Log): State {
  const forgotten = forgottenByRestart(state);
  if (forgotten) log('warn', forgotten);
  return createState(state, (trouble) => {
    if (trouble === undefined) log('info', 'the shared state is well');
    else log('error', 'the shared state is in trouble', { why: trouble });
  });
}
