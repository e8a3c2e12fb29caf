/** Opens and closes the two doors together, keeps the hearts beating, and takes a new configuration while it runs. */

import { isDeepStrictEqual } from 'node:util';
import type { Readiness } from './admin/admin-app.ts';
import type { Operator } from './admin/authenticate-operator.ts';
import { createAdminServer } from './admin-server.ts';
import { expiryWarning, type InstalledCertificate } from './certificates/installed-certificates.ts';
import type { Config } from './config/schema.ts';
import { closeServer, createListener, defaultListenerLimits, openServer } from './http/listener.ts';
import { readListenerTls, watchListenerTls } from './http/listener-tls.ts';
import { reusePortWarning } from './http/reuse-port.ts';
import { createPeriodicTask, heartbeatMs } from './periodic-task.ts';
import { asGatewayError } from './request/errors.ts';
import { createRequestHandler } from './request-handler.ts';
import { createServices } from './services.ts';
import { createState, lostOnRestart } from './state/create-state.ts';
import type { State } from './state/ports.ts';
import { createCertificateLog } from './telemetry/certificate-log.ts';
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
const filePollMs = 500;

/** A gateway by this configuration; it does not listen yet. @param state where it keeps what must last */
export function createGateway(
  config: Config,
  log: Log,
  operators: readonly Operator[] = [],
  state: State = createConfiguredState(config, log),
): Gateway {
  const current = () => handler;
  const services = createServices(config, log, state, { current, certificates });
  const { telemetry, activeEnvironment, affinity, ledger, stateHeartbeat, maintenance, loadShedding } =
    services;
  let handler = createRequestHandler(config, services);
  let phase: 'closed' | 'serving' | 'draining' = 'closed';

  const listener = createListener(
    (request, answer) => handler.serve(request, answer),
    observeRefusal(telemetry.observer),
    defaultListenerLimits,
    readListenerTls(config.listen.tls),
  );
  listener.server.on('drop', services.onConnectionRefused);
  const listenerCertificate = watchListenerTls(config.listen.tls, listener.server, createCertificateLog(log));
  const { host } = config.admin;
  const adminServer = createAdminServer({
    ...{ host, operators, services, current, readiness, condition },
    listenerCertificate: () => listenerCertificate.certificates()[0]?.info,
  });
  const { events } = adminServer;
  const eventTicks = createPeriodicTask(async () => {
    events.tick();
    return heartbeatMs;
  });
  // Apart from the others: nothing of this waits for the shared state.
  const filePolling = createPeriodicTask(async () => {
    await Promise.all([listenerCertificate.refresh(), handler.upstreams.pollCertificateFiles()]);
    return filePollMs;
  });
  const tasks = [stateHeartbeat, maintenance, eventTicks, filePolling, loadShedding];

  function certificates(): readonly InstalledCertificate[] {
    return [...listenerCertificate.certificates(), ...handler.upstreams.certificates()];
  }

  function condition(): Readiness {
    const trouble = stateHeartbeat.problem();
    const emptied = activeEnvironment.stateWasEmptied()
      ? ['the shared state was emptied since this instance runs']
      : [];
    const forgotten = lostOnRestart(config.state) ?? [];
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
    listener.drain();
    events.end();
  }

  async function stop(): Promise<void> {
    drain();
    await Promise.all([listener.close(), closeServer(adminServer.server)]);
    phase = 'closed';
    for (const heart of tasks) heart.stop();
    handler.upstreams.close();
    await ledger.deregister();
    await affinity.flush().catch((thrown: unknown) => {
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
        const loss = config.listen.reusePort ? reusePortWarning() : undefined;
        if (loss) log('warn', loss);
        await state.open();
        await telemetry.open();
        await services.loadSharedState();
        const adminPort = await openServer(adminServer.server, { host, port: config.admin.port });
        const { host: tppHost, port, reusePort } = config.listen;
        const tppPort = await openServer(listener.server, { host: tppHost, port, reusePort });
        for (const heart of tasks) heart.start();
        phase = 'serving';
        return { tppPort, adminPort };
      } catch (cause) {
        await stop();
        throw cause;
      }
    },
    reload(next) {
      const before = handler;
      handler = createRequestHandler(next, services);
      before.upstreams.close();
      return restartRequired.filter(
        (section) => !isDeepStrictEqual(valueAt(config, section), valueAt(next, section)),
      );
    },
    drain,
    stop,
  };
}

/** What the doors and the state were built with; the rest of the configuration can be exchanged. */
const restartRequired = [
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

function valueAt(config: Config, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => Object(value)[name], config);
}

function createConfiguredState({ state }: Config, log: Log): State {
  const forgotten = lostOnRestart(state);
  if (forgotten) log('warn', forgotten);
  return createState(state, (trouble) => {
    if (trouble === undefined) log('info', 'the shared state is well');
    else log('error', 'the shared state is in trouble', { why: trouble });
  });
}
