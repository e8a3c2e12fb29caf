/** Which losses of the state need an operator: those of writes that no running instance remembers. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { oneServer } from './simulation/forgetful-state.ts';
import { createSimulation, type SimulatedInstance, type Simulation } from './simulation/simulation.ts';

async function startSimulation(t: TestContext): Promise<Simulation> {
  const simulation = createSimulation(2, oneServer);
  t.after(simulation.time.restore);
  await simulation.advance(3_000);
  return simulation;
}

async function pay(simulation: Simulation, instance: SimulatedInstance, requestId: string): Promise<void> {
  const request = { tenant: 'shop', requestId, body: '1 EUR', behaviour: 'pays' } as const;
  const response = simulation.send(instance, request);
  await simulation.advance(2_000);
  assert.equal((await response).status, 201);
}

/** Longer than an instance without a lease counts as suspended; the heartbeats stay one second apart. */
async function waitUntilEnded(simulation: Simulation): Promise<void> {
  for (let seconds = 0; seconds < 32; seconds += 8) await simulation.advance(8_000);
}

async function empty(simulation: Simulation): Promise<void> {
  await simulation.store.loseAll();
  await simulation.advance(3_000);
}

const reports = ({ instances }: Simulation) => instances.map(({ services }) => services.lossGuard.report());

test('new payments continue after the state was emptied, when all instances that wrote to it still run', async (t) => {
  const simulation = await startSimulation(t);
  await pay(simulation, simulation.instance(0), 'first');
  await empty(simulation);
  await pay(simulation, simulation.instance(1), 'second');
  await empty(simulation);

  assert.deepEqual(
    reports(simulation).map(({ status }) => status),
    ['ok', 'ok'],
  );
});

test('new payments stay refused after the state was emptied, when an instance that wrote to it has ended', async (t) => {
  const simulation = await startSimulation(t);
  await pay(simulation, simulation.instance(1), 'first');
  simulation.crash(1);
  await waitUntilEnded(simulation);
  await empty(simulation);

  for (const { status, isUncovered } of reports(simulation))
    assert.deepEqual([status, isUncovered], ['lost', true]);
});

test('new payments stay refused after a second loss, when an instance has ended that stored its payments again after the first', async (t) => {
  const simulation = await startSimulation(t);
  await pay(simulation, simulation.instance(1), 'first');
  await empty(simulation);
  simulation.crash(1);
  await waitUntilEnded(simulation);
  await empty(simulation);

  for (const { status, isUncovered } of reports(simulation))
    assert.deepEqual([status, isUncovered], ['lost', true]);
});

test('an instance that was suspended for longer than its lease sends nothing before the others know it again', async (t) => {
  const simulation = await startSimulation(t);
  const suspended = simulation.instance(1);
  suspended.process.suspend();
  await waitUntilEnded(simulation);
  suspended.process.resume();
  const request = { tenant: 'shop', requestId: 'first', body: '1 EUR', behaviour: 'pays' } as const;
  void simulation.send(suspended, request);
  await simulation.scheduler.runAll();
  assert.equal(simulation.bank.payments.length, 0);

  await simulation.advance(8_000);
  await pay(simulation, suspended, 'second');
});
