/** The commands that a simulation executes in random order. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { settleTasks } from '../fake-time.ts';
import { type BehaviourName, behaviours } from './fake-bank.ts';
import type { ForgetfulState } from './forgetful-state.ts';
import { checkInvariants, checkMemory } from './invariants.ts';
import { requestKey, type SimulatedInstance, type Simulation, type TppRequest } from './simulation.ts';
import type { StateFailure } from './unreliable-state.ts';

export type SimulationCommand = fc.AsyncCommand<object, Simulation>;

function command(name: string, execute: (simulation: Simulation) => void | Promise<void>): SimulationCommand {
  return {
    check: () => true,
    async run(_, simulation) {
      await execute(simulation);
      await settleTasks();
      await checkInvariants(simulation);
    },
    toString: () => name,
  };
}

const anyInstance = fc.nat(1);
const mostly = <Value>(usual: Value, ...others: readonly Value[]) =>
  fc.constantFrom(usual, usual, usual, usual, ...others);
const behaviourNames = Object.keys(behaviours) as BehaviourName[]; // keys of a literal

const anyBehaviour = fc.oneof(fc.constant('pays' as const), fc.constantFrom(...behaviourNames));
/** The instance, how many steps it runs at once, and whether it is then suspended for longer than its lease. */
const anyStart = fc.record({
  instance: anyInstance,
  steps: fc.nat(10),
  isSuspended: fc.boolean(),
});
interface Start {
  readonly instance: number;
  readonly steps: number;
  readonly isSuspended: boolean;
}

async function send(
  simulation: Simulation,
  { instance: which, steps, isSuspended }: Start,
  request: TppRequest,
): Promise<void> {
  const instance = simulation.instance(which);
  void simulation.send(instance, request);
  for (let step = 0; step < steps; step++) await simulation.scheduler.runOne(0);
  if (!isSuspended) return;
  instance.process.suspend();
  await simulation.advance(7_000);
}

const textOf = ({ instance, steps, isSuspended }: Start) =>
  `instance ${instance}, which runs ${steps} steps${isSuspended ? ' and is suspended' : ''}`;

const requests = fc
  .record({
    tenant: mostly('shop', 'rival'),
    requestId: mostly('first', 'second'),
    body: mostly('1 EUR', '2 EUR', '1 EUR of Berta'),
    behaviour: anyBehaviour,
    start: anyStart,
  })
  .map(({ start, ...request }) => {
    const { tenant, requestId, body, behaviour } = request;
    const name = `${tenant} sends ${requestId} for ${body} to ${textOf(start)}; the bank ${behaviour}`;
    return command(name, (simulation) => send(simulation, start, request));
  });

const repeats = fc.record({ behaviour: anyBehaviour, start: anyStart }).map(({ behaviour, start }) =>
  command(`the last request is repeated to ${textOf(start)}; the bank ${behaviour}`, async (simulation) => {
    const last = simulation.calls.at(-1);
    if (last) await send(simulation, start, { ...last, behaviour });
  }),
);

const singleSteps = fc.array(fc.nat(9), { minLength: 1, maxLength: 12 }).map((which) =>
  command(`the scheduler runs steps ${which.join(' ')}`, async (simulation) => {
    for (const one of which) await simulation.scheduler.runOne(one);
  }),
);

const allSteps = fc.constant(
  command('the scheduler runs all steps', (simulation) => simulation.scheduler.runAll()),
);

const suspensions = anyInstance.map((which) =>
  command(`instance ${which} is suspended`, (simulation) => simulation.instance(which).process.suspend()),
);
const resumptions = anyInstance.map((which) =>
  command(`instance ${which} resumes`, (simulation) => simulation.instance(which).process.resume()),
);
const crashes = anyInstance.map((which) =>
  command(`instance ${which} crashes`, (simulation) => simulation.crash(which)),
);

const stateFailures = fc
  .tuple(
    anyInstance,
    fc.constantFrom<StateFailure[]>('not executed', 'reply lost', 'executed later'),
    fc.integer({ min: 1, max: 6 }),
  )
  .map(([which, failure, operations]) =>
    command(`the state fails ${operations} operations of instance ${which}: ${failure}`, (simulation) =>
      simulation.instance(which).state.fail(failure, operations),
    ),
  );

const scans = anyInstance.map((which) =>
  command(`instance ${which} scans for writes in doubt`, (simulation) => {
    void simulation.instance(which).services.inDoubt.scan().catch(ignoreOutage);
  }),
);

const delays = fc
  .constantFrom(100, 900, 3_000, 7_000, 40_000, 200_000, 25 * 3_600_000)
  .map((ms) => command(`${ms} ms pass`, (simulation) => simulation.advance(ms)));

const resolutions = fc.tuple(anyInstance, fc.nat(3)).map(([instance, which]) =>
  command(`an operator resolves write ${which} at instance ${instance}`, (simulation) => {
    resolve(simulation, simulation.instance(instance), which).catch(
      (thrown) => void simulation.failures.push(thrown),
    );
  }),
);

/** Resolves a write in doubt as the bank knows it, if the bank can know it already. */
async function resolve(
  simulation: Simulation,
  { services, resolve }: SimulatedInstance,
  which: number,
): Promise<void> {
  const all = await services.inDoubt.all().catch(ignoreOutage);
  const write = all?.[which % all.length];
  if (!write) return;
  const { id, entry } = write;
  const key = simulation.keyOf(entry);
  const isSame = (call: { tenant: string; requestId: string }) => requestKey(call) === key;
  const payment = simulation.bank.payments.findLast(
    ({ call, madeAt }) => isSame(call) && madeAt >= entry.since,
  );
  const resolution = { id, who: 'an operator', reason: 'the bank said so' };
  simulation.resolved.add(key);
  if (payment) {
    const { paymentId } = payment;
    await resolve({ ...resolution, outcome: 'happened', paymentId }).catch(ignoreOutage);
  } else if (Date.now() >= entry.listenedUntil) {
    const mayPay = simulation.calls.some((call) => isSame(call) && call.mayPay);
    assert.ok(!mayPay, 'the bank does not pay after the operator may resolve as did-not-happen');
    await resolve({ ...resolution, outcome: 'did-not-happen' }).catch(ignoreOutage);
  }
}

const ignoreOutage = () => undefined;

function reload(simulation: Simulation, which: number): void {
  const { process, reload } = simulation.instance(which);
  if (process.isRunning()) void reload();
}
const reloads = anyInstance.map((which) =>
  command(`instance ${which} reloads its configuration`, (simulation) => reload(simulation, which)),
);
const renamings = fc.tuple(mostly('shop', 'rival'), anyInstance).map(([tenant, which]) =>
  command(`the tenant of ${tenant} is renamed, and instance ${which} reloads`, (simulation) => {
    simulation.configuration.rename(tenant);
    reload(simulation, which);
  }),
);

/**
 * The state loses data while all instances know it and one of them runs. Some steps run, perhaps of an instance that was
 * suspended, before one notices; then one does, because nobody can know of a loss if all instances end before that.
 */
const losses = fc
  .record({
    what: fc.oneof(
      fc.record({ kind: fc.constant('its last changes' as const), count: fc.integer({ min: 1, max: 30 }) }),
      fc.record({ kind: fc.constant('a partition' as const), count: fc.nat(1) }),
      fc.constant({ kind: 'the last mark and all that followed' as const, count: 0 }),
      fc.constant({ kind: 'everything' as const, count: 0 }),
    ),
    /**
     * Long enough for an ended instance to be forgotten. Shorter than the time for which changes are stored again after a
     * restart: heartbeats are rare here, so the last changes can be older than that.
     */
    afterMs: fc.constantFrom(0, 0, 40_000),
    isResumed: fc.boolean(),
    steps: fc.array(fc.nat(9), { maxLength: 8 }),
  })
  .map(({ what, afterMs, isResumed, steps }) => {
    const resumed = isResumed ? ', all instances resume' : '';
    const name = `after ${afterMs} ms, the state loses ${what.kind} (${what.count})${resumed}, and steps ${steps.join(' ')} run`;
    return command(name, async (simulation) => {
      const { instances, store, scheduler } = simulation;
      if (afterMs > 0) await simulation.advance(afterMs);
      const know = instances.every(({ services }) => services.lossGuard.report().status === 'ok');
      if (!know || !instances.some(({ process }) => process.isRunning())) return;
      await lose(store, what);
      await checkMemory(simulation);
      if (isResumed) for (const { process } of instances) process.resume();
      for (const step of steps) await scheduler.runOne(step);
      for (const { state } of instances) state.recover();
      await simulation.advance(2_000);
    });
  });

interface Loss {
  readonly kind: 'its last changes' | 'the last mark and all that followed' | 'a partition' | 'everything';
  readonly count: number;
}

function lose(store: ForgetfulState, { kind, count }: Loss): Promise<void> {
  switch (kind) {
    case 'its last changes':
      return store.loseLast(count);
    case 'the last mark and all that followed':
      return store.loseLastMark();
    case 'a partition':
      return store.losePartition(count);
    case 'everything':
      return store.loseAll();
  }
}

/** Frequent commands are listed several times. */
const commonCommands = [
  ...[requests, requests, requests, repeats, repeats, repeats],
  ...[singleSteps, singleSteps, singleSteps, allSteps, allSteps],
  ...[suspensions, resumptions, resumptions, crashes, stateFailures, stateFailures],
  ...[scans, delays, delays, resolutions, resolutions, renamings, reloads],
];

export const simulationCommands = fc.commands(commonCommands, { maxCommands: 60, size: 'max' });

/** The same, with a state that loses data. */
export const commandsWithLosses = fc.commands([...commonCommands, losses, losses], {
  maxCommands: 60,
  size: 'max',
});
