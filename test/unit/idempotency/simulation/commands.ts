/** Everything that can happen in a history, in any order. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { settleTasks } from '../fake-time.ts';
import { type BehaviourName, behaviours } from './fake-bank.ts';
import { checkInvariants } from './invariants.ts';
import { requestKey, type SimulatedInstance, type Simulation, type TppRequest } from './simulation.ts';
import type { StateFailure } from './unreliable-state.ts';

export type SimulationCommand = fc.AsyncCommand<object, Simulation>;

function happening(name: string, happen: (world: Simulation) => void | Promise<void>): SimulationCommand {
  return {
    check: () => true,
    async run(_, world) {
      await happen(world);
      await settleTasks();
      await checkInvariants(world);
    },
    toString: () => name,
  };
}

const who = fc.nat(1);
const mostly = <Value>(usual: Value, other: Value) => fc.constantFrom(usual, usual, usual, usual, other);
const names = Object.keys(behaviours) as BehaviourName[]; // keys of a literal

const manner = fc.oneof(fc.constant('pays' as const), fc.constantFrom(...names));
/** How far an instance gets with a request at once, and whether it then stands still for longer than a lease. */
const beginning = fc.record({
  instance: who,
  steps: fc.nat(10),
  after: fc.constantFrom('goes on', 'sleeps'),
});
type Beginning = { readonly instance: number; readonly steps: number; readonly after: string };

async function begin(
  world: Simulation,
  { instance, steps, after }: Beginning,
  asked: TppRequest,
): Promise<void> {
  const run = world.instance(instance);
  void world.send(run, asked);
  for (let step = 0; step < steps; step++) await world.scheduler.runOne(0);
  if (after !== 'sleeps') return;
  run.process.sleep();
  await world.advance(7_000);
}

const told = ({ instance, steps, after }: Beginning) =>
  `${instance}, which takes ${steps} steps and ${after}`;

const asks = fc
  .record({
    tenant: mostly('shop', 'rival'),
    requestId: mostly('first', 'second'),
    body: mostly('1 EUR', '2 EUR'),
    manner,
    beginning,
  })
  .map(({ beginning, ...asked }) => {
    const { tenant, requestId, body, manner } = asked;
    const name = `${tenant} asks ${told(beginning)}, ${requestId} for ${body}; the bank ${manner}`;
    return happening(name, (world) => begin(world, beginning, asked));
  });

const repeats = fc.record({ manner, beginning }).map(({ manner, beginning }) =>
  happening(`the last is repeated at ${told(beginning)}; the bank ${manner}`, async (world) => {
    const last = world.calls.at(-1);
    if (last) await begin(world, beginning, { ...last, manner });
  }),
);

const stepsGo = fc.array(fc.nat(9), { minLength: 1, maxLength: 12 }).map((which) =>
  happening(`steps ${which.join(' ')}`, async (world) => {
    for (const one of which) await world.scheduler.runOne(one);
  }),
);

const settles = fc.constant(happening('all settles', (world) => world.scheduler.runAll()));

const sleeps = who.map((which) =>
  happening(`${which} sleeps`, (world) => world.instance(which).process.sleep()),
);
const wakes = who.map((which) =>
  happening(`${which} wakes`, (world) => world.instance(which).process.wake()),
);
const crashes = who.map((which) => happening(`${which} crashes`, (world) => world.crash(which)));

const fails = fc
  .tuple(
    who,
    fc.constantFrom<StateFailure[]>('refused', 'done-untold', 'done-later'),
    fc.integer({ min: 1, max: 6 }),
  )
  .map(([which, failure, operations]) =>
    happening(`the state of ${which} fails ${operations} times: ${failure}`, (world) =>
      world.instance(which).state.fail(failure, operations),
    ),
  );

const looks = who.map((which) =>
  happening(`${which} looks around`, (world) => {
    void world.instance(which).services.inDoubt.scan().catch(unavailable);
  }),
);

const passes = fc
  .constantFrom(100, 900, 3_000, 7_000, 40_000, 200_000, 25 * 3_600_000)
  .map((ms) => happening(`${ms} ms pass`, (world) => world.advance(ms)));

const resolves = fc.tuple(who, fc.nat(3)).map(([instance, which]) =>
  happening(`an operator resolves ${which} at ${instance}`, (world) => {
    resolve(world, world.instance(instance), which).catch((thrown) => void world.failures.push(thrown));
  }),
);

/** Asks the bank what became of one doubt, once it can be known, and says so. */
async function resolve(
  world: Simulation,
  { services, resolve }: SimulatedInstance,
  which: number,
): Promise<void> {
  const all = await services.inDoubt.all().catch(unavailable);
  const doubt = all?.[which % all.length];
  if (!doubt) return;
  const { id, entry } = doubt;
  const isIt = (call: { tenant: string; requestId: string }) => requestKey(call) === requestKey(entry);
  const payment = world.bank.payments.findLast(({ call, madeAt }) => isIt(call) && madeAt >= entry.since);
  const resolution = { id, who: 'an operator', reason: 'the bank says so' };
  world.resolved.add(requestKey(entry));
  if (payment) {
    const { paymentId } = payment;
    await resolve({ ...resolution, outcome: 'happened', paymentId }).catch(unavailable);
  } else if (Date.now() >= entry.listenedUntil) {
    const mayPay = world.calls.some((call) => isIt(call) && call.mayPay);
    assert.ok(!mayPay, 'the bank does nothing more when it may be said that it has not');
    await resolve({ ...resolution, outcome: 'did-not-happen' }).catch(unavailable);
  }
}

const unavailable = () => undefined;

/** What happens often stands here often. */
export const simulationCommands = fc.commands(
  [
    ...[asks, asks, asks, repeats, repeats, repeats, stepsGo, stepsGo, stepsGo, settles, settles],
    ...[sleeps, wakes, wakes, crashes, fails, fails, looks, passes, passes, resolves, resolves],
  ],
  { maxCommands: 60, size: 'max' },
);
