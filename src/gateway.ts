/** Builds what lasts, opens and closes the two doors together, and takes a new configuration while it runs. */

import { createServer } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { Operator } from './admin/access.ts';
import { createAdminApp, type Readiness } from './admin/admin-app.ts';
import { createRoutes } from './admin/routes.ts';
import { assemble } from './assembly.ts';
import { masked } from './config/masked.ts';
import type { Config } from './config/schema.ts';
import { createActiveEnvironment } from './environments/active-environment.ts';
import { createAffinity } from './environments/affinity.ts';
import { createAudit } from './environments/audit.ts';
import { createSwitch } from './environments/switch-environment.ts';
import { asGatewayError } from './flow/errors.ts';
import { createListener, edgeLimits } from './http/listener.ts';
import { readListenerTls } from './http/listener-tls.ts';
import { close, open } from './http/server-life.ts';
import { lossAtStop } from './http/shared-port.ts';
import { createLastingLedger } from './idempotency/create-ledger.ts';
import { createResolve } from './idempotency/resolve.ts';
import { confidential, createState, forgottenByRestart } from './state/create-state.ts';
import { insuredReservations } from './state/insured-reservations.ts';
import type { State } from './state/ports.ts';
import { createLastingStatus } from './status-cache/create-status-cache.ts';
import type { Log } from './telemetry/log.ts';
import { createMetrics } from './telemetry/metrics.ts';
import { observeRefusal } from './telemetry/observe.ts';
import { createHoldCircuit } from './upstream/hold-circuit.ts';
import { createHolds } from './upstream/holds.ts';

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

/** How often what instances share is looked at, in milliseconds: the longest that a switch goes unnoticed. */
const heartbeatMs = 1_000;
/** How soon it is looked at again when that failed: trouble that is over must not last until the next beat. */
const retriedMs = 250;
/** How long the proof is kept that the state could be written. Milliseconds. */
const beatKeptMs = 60_000;

/** A gateway by this configuration; it does not listen yet. @param state where it keeps what must last */
export function createGateway(
  config: Config,
  log: Log,
  operators: readonly Operator[] = [],
  state: State = stateOf(config, log),
): Gateway {
  const active = createActiveEnvironment(state, config.environments.active, log);
  const affinity = createAffinity(state, config.payments.rememberFor, log);
  const audit = createAudit(state.keyValues, log);
  const metrics = createMetrics();
  const sealed = { ...state, keyValues: confidential(state, config.state) };
  const ledger = createLastingLedger(sealed, log, metrics.doubts);
  const status = createLastingStatus(sealed);
  const holds = createHolds(state);
  const quotaTurns = insuredReservations(state.reservations, { part: 1, beginsWith: 'all of it' });
  let failedBeats = 0;
  const stateTrouble = () =>
    state.trouble() ?? (failedBeats > 1 ? 'the shared state takes no changes' : undefined);
  const lasting = { log, active, affinity, ledger, status, metrics, state, holds, quotaTurns, stateTrouble };
  let assembly = assemble(config, lasting);
  let phase: 'closed' | 'serving' | 'draining' = 'closed';

  const tppDoor = createListener(
    (request, answer) => assembly.serve(request, answer),
    observeRefusal(log),
    edgeLimits,
    readListenerTls(config.listen.tls),
  );
  const api = createRoutes({
    environments: () => assembly.config.environments.all,
    active,
    switchEnvironment: createSwitch({ active, audit, tryOut: (name) => assembly.tryOut(name) }),
    audit,
    circuits: () => assembly.upstreams.circuits(),
    holdCircuit: createHoldCircuit(holds, audit),
    configuration: () => masked(assembly.config),
    purge: (payment) => assembly.purge(payment),
    doubts: ledger.doubts,
    resolve: createResolve({
      ...ledger,
      audit,
      affinity,
      windowMs: () => assembly.config.idempotency.window,
    }),
  });
  const adminDoor = createServer(
    createAdminApp({ host: config.admin.host, operators, readiness, metrics, log }, api),
  );
  const nextMs = () => (failedBeats === 0 ? heartbeatMs : retriedMs);
  const pulse = createHeart(async () => {
    const shared = state.keyValues.write('environment:beat', '', beatKeptMs).then(() => active.read());
    const [outcome] = await Promise.allSettled([shared, ledger.holders.renew(), holds.refresh()]);
    failedBeats = outcome.status === 'fulfilled' ? 0 : failedBeats + 1;
    return nextMs();
  });
  // Apart from the pulse: after an outage they may take long, and an instance without pulse counts as dead.
  const chores = createHeart(async () => {
    const { places, forgetting } = status;
    const upstreams = assembly.upstreams.refresh();
    await Promise.allSettled([
      affinity.settle(),
      ledger.tidy(),
      places.refresh(),
      forgetting.settle(),
      upstreams,
    ]);
    return nextMs();
  });

  function readiness(): Readiness {
    const trouble = stateTrouble();
    const emptied = active.stateWasEmptied() ? ['the shared state was emptied since this instance runs'] : [];
    const forgotten = forgottenByRestart(config.state) ?? [];
    const reasons = [phase === 'serving' ? [] : phase, trouble ?? [], emptied, forgotten].flat();
    return { ready: phase === 'serving' && trouble === undefined, reasons };
  }

  function drain(): void {
    phase = 'draining';
    tppDoor.drain();
  }

  async function stop(): Promise<void> {
    drain();
    await Promise.all([close(tppDoor.server, tppDoor.isBusy), close(adminDoor)]);
    phase = 'closed';
    pulse.stop();
    chores.stop();
    assembly.upstreams.close();
    await ledger.leave();
    await affinity.settle().catch((thrown: unknown) => {
      log('error', 'some payments are remembered by no instance any more', {
        why: asGatewayError(thrown).message,
      });
    });
    await state.close();
  }

  return {
    async start() {
      try {
        const loss = config.listen.reusePort ? lossAtStop() : undefined;
        if (loss) log('warn', loss);
        await state.open();
        // Out of reach: the heartbeat goes on trying, and readiness says so.
        await Promise.allSettled([active.read(), ledger.holders.introduce(), holds.refresh()]);
        const adminPort = await open(adminDoor, config.admin.host, config.admin.port);
        const { host, port, reusePort } = config.listen;
        const tppPort = await open(tppDoor.server, host, port, reusePort ? 'with others' : 'alone');
        pulse.start();
        chores.start();
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
  ...['listen.host', 'listen.port', 'listen.reusePort', 'listen.tls'],
  ...['admin', 'state', 'payments', 'log'],
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

/** Beats regularly, never twice at once. @param beat never rejects; says in how many milliseconds the next one is due */
function createHeart(beat: () => Promise<number>) {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const beatIn = (ms: number) => {
    timer = setTimeout(async () => {
      const nextMs = await beat();
      if (!stopped) beatIn(nextMs);
    }, ms);
  };
  return {
    start: () => beatIn(heartbeatMs),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
