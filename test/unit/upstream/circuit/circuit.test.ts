import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable } from '../../../../src/request/errors.ts';
import { createCircuits } from '../../../../src/upstream/circuit/tenant-circuits.ts';
import { type CallResult, callThrough, settings, startCircuit } from './circuit-fixture.ts';

const failures: readonly CallResult[] = [
  ...[500, 502, 503, 504, 599],
  ...(['UPSTREAM_UNREACHED', 'UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN'] as const),
];
const neutral: readonly CallResult[] = [
  ...[400, 401, 403, 404, 409, 429, 501],
  ...(Object.keys(errorTable) as CallResult[]).filter((code) => !failures.includes(code)),
];

for (const lane of ['write', 'read', 'status'] as const) {
  describe(`circuit of the ${lane} lane`, () => {
    for (const failure of failures) {
      test(`opens after enough calls ended with ${failure}, and then refuses calls without sending them`, async (t) => {
        const { time, circuit, reached, call } = startCircuit(t, lane);
        for (let count = 0; count < 9; count++) await call(failure);
        await time.settle();
        assert.equal(circuit.view().state, 'closed');
        await call(failure);
        await time.settle();
        assert.equal(circuit.view().state, 'open');
        assert.equal(await call(), 'CIRCUIT_OPEN 10');
        assert.equal(reached.length, 10);
      });
    }

    test('stays closed after outcomes that are no evidence about the bank', async (t) => {
      const { time, circuit, changes, call } = startCircuit(t, lane);
      for (const outcome of neutral) {
        for (let count = 0; count < 15; count++) await call(outcome);
        await time.settle();
      }
      assert.deepEqual([circuit.view().state, changes], ['closed', []]);
    });
  });
}

describe('failure rate of a circuit', () => {
  test('ignores 4xx responses', async (t) => {
    const { time, circuit, call } = startCircuit(t, 'write');
    for (let count = 0; count < 100; count++) {
      await call(404);
      if (count % 10 === 0) await call(500);
    }
    await time.settle();
    assert.equal(circuit.view().state, 'open');
  });

  for (const [failureRate, of10, state] of [
    [0.5, 4, 'closed'],
    [0.5, 5, 'open'],
    [1, 9, 'closed'],
    [1, 10, 'open'],
    [0.01, 1, 'open'],
  ] as const) {
    test(`leaves the circuit ${state} if ${of10} of 10 calls fail at a threshold of ${failureRate * 100} %`, async (t) => {
      const { time, circuit, call } = startCircuit(t, 'read', { failureRate });
      for (let count = 0; count < 10; count++) await call(count < 10 - of10 ? 200 : 500);
      await time.settle();
      assert.equal(circuit.view().state, state);
    });
  }

  test('ignores calls that have left the window', async (t) => {
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

describe('open circuit', () => {
  test('states the remaining seconds in Retry-After and in the error text', async (t) => {
    const { time, circuit, call, fail } = startCircuit(t, 'write');
    await fail();
    await time.pass(3_500);
    assert.equal(await call(), 'CIRCUIT_OPEN 7');
    await assert.rejects(
      callThrough(circuit, async () => ({ status: 200 })),
      /nothing was sent\. Try again in 7 s\./,
    );
  });

  test('refuses a call that was admitted earlier and has waited for its permit since', async (t) => {
    const { circuit, reached, fail } = startCircuit(t, 'write');
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = callThrough(circuit, async () => ({ status: 200 }), promise);
    await fail();
    resolve();
    await assert.rejects(waiting, { code: 'CIRCUIT_OPEN' });
    assert.equal(reached.length, 10);
  });

  test('shows operators why it opened and when it probes the bank', async (t) => {
    const { time, circuits, changes, fail } = startCircuit(t, 'write');
    await fail();
    const id = { environment: 'sandbox', lane: 'write' };
    const reason = '10 of 10 calls failed';
    const until = new Date(time.now() + 10_000).toISOString();
    const openedAt = new Date(time.now()).toISOString();
    const call = {
      xRequestId: 'call 1',
      operation: 'anOperation',
      tenant: 'shop',
      why: 'UPSTREAM_UNREACHED',
    };
    const cause = { ...call, at: openedAt, openedAt, count: 10, calls: 10 };
    const measured = { state: 'open', until, reason, cause };
    const tenants = [{ tenant: 'shop', ...measured }];
    assert.deepEqual(circuits.view(), { ...id, ...measured, hold: null, tenants });
    assert.deepEqual(changes, [{ ...id, tenant: 'shop', from: 'closed', to: 'open', why: reason, cause }]);
  });
});

describe('circuit held by operators', () => {
  const hold = (as: 'open' | 'closed', untilMs: number) =>
    ({ environment: 'sandbox', lane: 'write', as, reason: 'maintenance', untilMs }) as const;

  test('held open, refuses every call, sends no probe, and limits Retry-After to a minute', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    fixture.hold = hold('open', fixture.time.now() + 3_600_000);
    assert.equal(await fixture.call(), 'CIRCUIT_OPEN 60');
    await fixture.time.pass(60_000);
    assert.ok(!fixture.reached.includes('probe'));
    const { state, hold: heldAs, reason } = fixture.circuits.view();
    assert.deepEqual([state, heldAs, reason], ['open', 'open', 'maintenance']);
    fixture.hold = undefined;
    await fixture.time.pass(1_001);
    assert.ok(fixture.reached.includes('probe'));
  });

  test('held closed, sends every call and does not count its outcome', async (t) => {
    const fixture = startCircuit(t, 'write');
    fixture.hold = hold('closed', fixture.time.now() + 3_600_000);
    for (let count = 0; count < 30; count++) assert.equal(await fixture.call(500), '500');
    fixture.hold = undefined;
    await fixture.time.settle();
    assert.equal(fixture.circuit.view().state, 'closed');
  });

  test('is in the state of the hold, as far as requests are concerned, and in the measured state after it', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    const states = ([undefined, 'closed', 'open'] as const).map((as) => {
      fixture.hold = as && hold(as, fixture.time.now() + 1_000);
      return fixture.circuit.effectiveState();
    });
    assert.deepEqual(states, ['open', 'closed', 'held open']);
  });

  test('held closed while a trial call waits on probation, admits another trial after the hold', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    await fixture.time.pass(10_000);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = callThrough(fixture.circuit, async () => ({ status: 200 }), promise);
    fixture.hold = hold('closed', fixture.time.now() + 1_000);
    resolve();
    await waiting;
    fixture.hold = undefined;
    assert.equal(fixture.circuit.view().state, 'probation');
    assert.equal(await fixture.call(), '200');
  });
});

describe('circuit after close()', () => {
  test('sends no probe and keeps refusing calls', async (t) => {
    const { time, circuit, reached, call, fail } = startCircuit(t, 'read');
    await fail();
    circuit.close();
    await time.pass(60_000);
    assert.ok(!reached.includes('probe'));
    assert.match(await call(), /^CIRCUIT_OPEN/);
  });

  test('has reported a change to closed, and reports nothing more', async (t) => {
    const { time, circuit, reached, changes, begin, fail } = startCircuit(t, 'write');
    await fail();
    await time.pass(10_000);
    const trial = begin();
    circuit.close();
    trial.end('OUTCOME_UNKNOWN');
    await trial.result;
    await time.pass(60_000);
    const { from, to } = changes.at(-1) ?? {};
    assert.deepEqual([from, to], ['probation', 'closed']);
    assert.equal(reached.filter((kind) => kind === 'probe').length, 1);
  });
});

test('failures in one environment and lane open only the circuit of that environment and lane', async (t) => {
  const changes: unknown[] = [];
  const probe = async () => 'success' as const;
  const circuits = createCircuits(settings, {
    probes: new Map([
      ['sandbox', probe],
      ['production', probe],
    ]),
    holds: { of: () => undefined },
    onChange: (change) => void changes.push(change),
  });
  t.after(() => circuits.close());

  for (let count = 0; count < 10; count++)
    await callThrough(circuits.of('sandbox', 'write').of('shop'), async () => ({ status: 500 }));
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
