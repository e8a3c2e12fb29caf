/** The commands that a simulation executes in random order. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { settleTasks } from '../fake-time.ts';
import { type BehaviourName, behaviours } from './fake-bank.ts';
import { checkInvariants } from './invariants.ts';
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
const mostly = <Value>(usual: Value, other: Value) => fc.constantFrom(usual, usual, usual, usual, other);
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
    body: mostly('1 EUR', '2 EUR'),
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
  const isSame = (call: { tenant: string; requestId: string }) => requestKey(call) === requestKey(entry);
  const payment = simulation.bank.payments.findLast(
    ({ call, madeAt }) => isSame(call) && madeAt >= entry.since,
  );
  const resolution = { id, who: 'an operator', reason: 'the bank said so' };
  simulation.resolved.add(requestKey(entry));
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

/** Frequent commands are listed several times. */
export const simulationCommands = fc.commands(
  [
    ...[requests, requests, requests, repeats, repeats, repeats],
    ...[singleSteps, singleSteps, singleSteps, allSteps, allSteps],
    ...[suspensions, resumptions, resumptions, crashes, stateFailures, stateFailures],
    ...[scans, delays, delays, resolutions, resolutions],
  ],
  { maxCommands: 60, size: 'max' },
);
