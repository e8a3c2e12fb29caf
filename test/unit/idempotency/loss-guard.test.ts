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

/**
 * An instance pays and is suspended, the state is restarted, and another instance waits for the first. It was suspended at the
 * time of the payment: it does not know the sequence number, so it cannot tell whether a payment is lost.
 *
 * @returns the instance that is suspended
 */
async function restartAfterPayment(
  simulation: Simulation,
  restart: () => Promise<void>,
): Promise<SimulatedInstance> {
  const [waiting, sender] = [simulation.instance(0), simulation.instance(1)];
  waiting.process.suspend();
  await pay(simulation, sender, 'first');
  sender.process.suspend();
  waiting.process.resume();
  await restart();
  await simulation.advance(3_000);
  return sender;
}

const missingIn = ({ services }: SimulatedInstance) =>
  services.lossGuard.report().missing.map(({ instance }) => instance);

test('new payments stay refused when all instances are restarted while they wait for one that may have sent lost payments', async (t) => {
  const simulation = await startSimulation(t);
  const sender = await restartAfterPayment(simulation, simulation.store.loseLastMark);
  const { ownId } = sender.services.instanceLeases;
  assert.deepEqual(missingIn(simulation.instance(0)), [ownId]);
  simulation.crash(0);
  simulation.crash(1);
  await waitUntilEnded(simulation);

  for (const instance of simulation.instances) {
    assert.deepEqual(missingIn(instance), [ownId]);
    const repeat = { tenant: 'shop', requestId: 'first', body: '1 EUR', behaviour: 'pays' } as const;
    void simulation.send(instance, repeat);
    await simulation.advance(4_000);
  }
  assert.equal(simulation.bank.payments.length, 1);

  await Promise.all([simulation.instance(0).services.lossGuard.acceptLoss(), simulation.advance(8_000)]);
  await pay(simulation, simulation.instance(1), 'second');
});

test('the text of a refusal contains no ids of instances; the report contains those of missing instances', async (t) => {
  const simulation = await startSimulation(t);
  const sender = await restartAfterPayment(simulation, simulation.store.loseLastMark);
  const { ownId } = sender.services.instanceLeases;
  const { lossGuard } = simulation.instance(0).services;
  assert.deepEqual(missingIn(simulation.instance(0)), [ownId]);
  assert.throws(
    () => lossGuard.fenceOf('first'),
    ({ message }: Error) =>
      /waits for another instance to register/.test(message) && !message.includes(ownId),
  );
});

test('when the instance has returned that the others waited for, new payments continue after later restarts', async (t) => {
  const simulation = await startSimulation(t);
  const sender = await restartAfterPayment(simulation, () => simulation.store.loseLast(0));
  assert.deepEqual(missingIn(simulation.instance(0)), [sender.services.instanceLeases.ownId]);
  sender.process.resume();
  await simulation.advance(3_000);
  await pay(simulation, sender, 'second');

  for (const { process } of simulation.instances) process.suspend();
  await simulation.advance(8_000); // the leases end
  simulation.crash(0);
  simulation.crash(1);
  await waitUntilEnded(simulation);
  await pay(simulation, simulation.instance(0), 'third');
});
