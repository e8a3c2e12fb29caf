/** The first failed call of an open circuit, which operators see until it is closed. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CircuitFixture, startCircuit } from './circuit-fixture.ts';

const causeOf = ({ circuits }: CircuitFixture) => circuits.view().cause;
const shown = (fixture: CircuitFixture) => {
  const { xRequestId, tenant, why, count, calls } = causeOf(fixture) ?? assert.fail('no cause');
  return [xRequestId, tenant, why, `${count} of ${calls}`];
};

describe('the cause of an open circuit', () => {
  test('is the first failed call, with its reason, its time and the number of failed calls', async (t) => {
    const fixture = startCircuit(t, 'write');
    for (let call = 1; call <= 4; call++) await fixture.call(201);
    const at = new Date(fixture.time.now()).toISOString();
    await fixture.call(503);
    await fixture.time.pass(2_000, 100);
    await fixture.fail(5);
    assert.deepEqual(shown(fixture), ['call 5', 'shop', 'status 503', '6 of 10']);
    const { at: failedAt, openedAt } = causeOf(fixture) ?? assert.fail();
    assert.deepEqual([failedAt, openedAt], [at, new Date(fixture.time.now()).toISOString()]);
  });

  test('is not a call that has left the window', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.call(500);
    await fixture.time.pass(10_100, 100);
    await fixture.fail(10);
    assert.deepEqual(shown(fixture), ['call 2', 'shop', 'UPSTREAM_UNREACHED', '10 of 10']);
  });

  test('stays while probes and trial calls fail, and after the hold of an operator', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    const first = causeOf(fixture);
    fixture.probeOutcome = 'failure';
    await fixture.time.pass(10_100, 100);
    assert.deepEqual([fixture.circuits.view().reason, causeOf(fixture)], ['the probe failed', first]);
    fixture.probeOutcome = 'success';
    await fixture.time.pass(20_100, 100);
    assert.equal(fixture.circuits.view().state, 'probation');
    assert.deepEqual(causeOf(fixture), first);
    await fixture.call(500);
    assert.deepEqual([fixture.circuits.view().reason, causeOf(fixture)], ['the trial call failed', first]);
    const untilMs = fixture.time.now() + 1_000;
    fixture.hold = { environment: 'sandbox', lane: 'write', as: 'open', reason: 'maintenance', untilMs };
    assert.deepEqual(causeOf(fixture), first);
  });

  test('ends when the circuit is closed, and the next opening has another one', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.fail();
    await fixture.time.pass(10_100, 100);
    await fixture.call(201);
    assert.equal(causeOf(fixture), null);
    await fixture.fail();
    assert.deepEqual(shown(fixture), ['call 12', 'shop', 'UPSTREAM_UNREACHED', '10 of 10']);
  });

  test('is reported with each change of the state, and without one when it is closed', async (t) => {
    const fixture = startCircuit(t, 'read');
    await fixture.fail();
    await fixture.time.pass(10_100, 100);
    assert.deepEqual(
      fixture.changes.map(({ to, cause }) => [to, cause?.xRequestId]),
      [
        ['open', 'call 1'],
        ['half-open', 'call 1'],
        ['closed', undefined],
      ],
    );
  });

  test('is a call without failures of its own tenant, if the bank fails for all tenants', async (t) => {
    const fixture = startCircuit(t, 'write');
    await fixture.call(201, 'quiet');
    for (let calls = 0; calls < 10; calls++) await fixture.call('UPSTREAM_UNREACHED', 'busy');
    await fixture.call(201, 'new');
    const causes = fixture.circuits.view().tenants.map(({ tenant, cause }) => [tenant, cause?.tenant]);
    assert.deepEqual(causes, [
      ['quiet', 'busy'],
      ['busy', 'busy'],
      ['new', 'busy'],
    ]);
    assert.deepEqual(shown(fixture).slice(0, 2), ['call 2', 'busy']);
  });

  test('does not name the call of a tenant whose circuit has been open for longer than the window', async (t) => {
    const fixture = startCircuit(t, 'write', { openFor: 600_000 });
    await fixture.call(201, 'healthy');
    for (let calls = 0; calls < 10; calls++) await fixture.call(500, 'poisoned');
    await fixture.time.settle();
    assert.equal(causeOf(fixture), null, 'the lane is closed: it works for another tenant');
    assert.equal(fixture.circuits.view().tenants[0]?.cause?.tenant, 'poisoned');
    await fixture.time.pass(60_000, 1_000);
    for (let calls = 0; calls < 10; calls++) await fixture.call(500, 'healthy');
    assert.equal(fixture.circuits.view().state, 'open');
    assert.equal(causeOf(fixture)?.tenant, 'healthy');
  });
});
