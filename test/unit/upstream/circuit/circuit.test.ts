/** When a circuit opens, and what never moves it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable } from '../../../../src/request/errors.ts';
import { createCircuits } from '../../../../src/upstream/circuit/circuit.ts';
import { type CallResult, settings, startCircuit } from './circuit-fixture.ts';

const failures: readonly CallResult[] = [
  500,
  502,
  503,
  504,
  599,
  'UPSTREAM_UNREACHED',
  'UPSTREAM_MALFORMED',
  'OUTCOME_UNKNOWN',
];
const neither: readonly CallResult[] = [
  ...[400, 401, 403, 404, 409, 429, 501],
  ...(Object.keys(errorTable) as CallResult[]).filter((code) => !failures.includes(code)),
];

for (const lane of ['write', 'read', 'status'] as const) {
  describe(`the ${lane} lane`, () => {
    for (const outcome of failures) {
      test(`opens after enough of ${outcome}, and then refuses without asking the bank`, async (t) => {
        const { time, circuit, reached, call } = startCircuit(t, lane);
        for (let one = 0; one < 9; one++) await call(outcome);
        await time.settle();
        assert.equal(circuit.view().state, 'closed');
        await call(outcome);
        await time.settle();
        assert.equal(circuit.view().state, 'open');
        assert.equal(await call(), 'CIRCUIT_OPEN 10');
        assert.equal(reached.length, 10);
      });
    }

    test('is moved by nothing that says nothing about the bank', async (t) => {
      const { time, circuit, changes, call } = startCircuit(t, lane);
      for (const outcome of neither) {
        for (let one = 0; one < 15; one++) await call(outcome);
        await time.settle();
      }
      assert.deepEqual([circuit.view().state, changes], ['closed', []]);
    });
  });
}

test('4xx in between neither hide failures nor excuse them', async (t) => {
  const { time, circuit, call } = startCircuit(t, 'write');
  for (let one = 0; one < 100; one++) {
    await call(404);
    if (one % 10 === 0) await call(500);
  }
  await time.settle();
  assert.equal(circuit.view().state, 'open');
});

describe('the part of failed calls', () => {
  for (const [failureRate, of10, state] of [
    [0.5, 4, 'closed'],
    [0.5, 5, 'open'],
    [1, 9, 'closed'],
    [1, 10, 'open'],
    [0.01, 1, 'open'],
  ] as const) {
    test(`${of10} of 10, with ${failureRate * 100} % allowed: ${state}`, async (t) => {
      const { time, circuit, call } = startCircuit(t, 'read', { failureRate });
      for (let one = 0; one < 10; one++) await call(one < 10 - of10 ? 200 : 500);
      await time.settle();
      assert.equal(circuit.view().state, state);
    });
  }

  test('is of the calls in the window: what is older is forgotten', async (t) => {
    const { time, circuit, call, fail } = startCircuit(t, 'read');
    await fail(9);
    await time.pass(11_000);
    await fail(9);
    assert.equal(circuit.view().state, 'closed');
    await time.pass(5_000);
    await call(500);
    await time.settle();
    assert.equal(circuit.view().state, 'open');
  });
});

test('the seconds to wait grow fewer, and stand in the text as well', async (t) => {
  const { time, circuit, call, fail } = startCircuit(t, 'write');
  await fail();
  await time.pass(3_500);
  assert.equal(await call(), 'CIRCUIT_OPEN 7');
  await assert.rejects(
    circuit.run(async () => ({ status: 200 })),
    /nothing was sent\. Try again in 7 s\./,
  );
});

test('a call that waits for its turn while the circuit opens is not sent', async (t) => {
  const { circuit, reached, fail } = startCircuit(t, 'write');
  const { promise, resolve } = Promise.withResolvers<void>();
  const waiting = circuit.run(async (goOn) => {
    await promise;
    goOn();
    return { status: 200 };
  });
  await fail();
  resolve();
  await assert.rejects(waiting, { code: 'CIRCUIT_OPEN' });
  assert.equal(reached.length, 10);
});

test('operators see why it opened, and until when', async (t) => {
  const { time, circuit, changes, fail } = startCircuit(t, 'write');
  await fail();
  const place = { environment: 'sandbox', lane: 'write' };
  const reason = '10 of 10 calls failed';
  const until = new Date(time.now() + 10_000).toISOString();
  assert.deepEqual(circuit.view(), { ...place, state: 'open', hold: null, until, reason });
  assert.deepEqual(changes, [{ ...place, from: 'closed', to: 'open', why: reason }]);
});

describe('held by operators', () => {
  const hold = (as: 'open' | 'closed', untilMs: number) =>
    ({ environment: 'sandbox', lane: 'write', as, reason: 'maintenance', untilMs }) as const;

  test('open, it refuses all, sends no probe, and tells nobody to stay away for hours', async (t) => {
    const world = startCircuit(t, 'write');
    await world.fail();
    world.hold = hold('open', world.time.now() + 3_600_000);
    assert.equal(await world.call(), 'CIRCUIT_OPEN 60');
    await world.time.pass(60_000);
    assert.ok(!world.reached.includes('probe'));
    const { state, hold: held, reason } = world.circuit.view();
    assert.deepEqual([state, held, reason], ['open', 'open', 'maintenance']);
    world.hold = undefined;
    await world.time.pass(1_001);
    assert.ok(world.reached.includes('probe'));
  });

  test('closed, it lets all through, and learns nothing of it', async (t) => {
    const world = startCircuit(t, 'write');
    world.hold = hold('closed', world.time.now() + 3_600_000);
    for (let one = 0; one < 30; one++) assert.equal(await world.call(500), '500');
    world.hold = undefined;
    await world.time.settle();
    assert.equal(world.circuit.view().state, 'closed');
  });

  test('closed while a payment is on probation, it does not keep others away afterwards', async (t) => {
    const world = startCircuit(t, 'write');
    await world.fail();
    await world.time.pass(10_000);
    await world.circuit.run(async (goOn) => {
      world.hold = hold('closed', world.time.now() + 1_000);
      goOn();
      return { status: 200 };
    });
    world.hold = undefined;
    assert.equal(world.circuit.view().state, 'probation');
    assert.equal(await world.call(), '200');
  });
});

test('a circuit that is shut down has no timers, and refuses or lets through as it did', async (t) => {
  const { time, circuit, reached, call, fail } = startCircuit(t, 'read');
  await fail();
  circuit.close();
  await time.pass(60_000);
  assert.ok(!reached.includes('probe'));
  assert.match(await call(), /^CIRCUIT_OPEN/);
});

test('a circuit that is shut down tells that what follows is closed, and nothing more', async (t) => {
  const { time, circuit, reached, changes, begin, fail } = startCircuit(t, 'write');
  await fail();
  await time.pass(10_000);
  const trial = begin();
  circuit.close();
  trial.end('OUTCOME_UNKNOWN');
  await trial.result;
  await time.pass(60_000);
  const { from, to } = changes.at(-1) ?? {};
  assert.deepEqual([from, to, reached.filter((one) => one === 'probe').length], ['probation', 'closed', 1]);
  circuit.close();
});

test('each environment and lane has a circuit of its own: what fails in one is no matter of another', async (t) => {
  const changes: unknown[] = [];
  const probe = async () => 'well' as const;
  const circuits = createCircuits(settings, {
    probes: new Map([
      ['sandbox', probe],
      ['production', probe],
    ]),
    holds: { of: () => undefined },
    onChange: (change) => void changes.push(change),
  });
  t.after(() => circuits.close());

  for (let one = 0; one < 10; one++) await circuits.of('sandbox', 'write').run(async () => ({ status: 500 }));
  await Promise.resolve();

  const states = circuits.views().map(({ environment, lane, state }) => `${environment} ${lane} ${state}`);
  assert.deepEqual(states, [
    'sandbox write open',
    'sandbox read closed',
    'sandbox status closed',
    'production write closed',
    'production read closed',
    'production status closed',
  ]);
  assert.equal(changes.length, 1);
  assert.throws(() => circuits.of('nowhere', 'read'), /no environment nowhere/);
});
