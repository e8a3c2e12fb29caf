import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { asGatewayError } from '../../../../src/request/errors.ts';
import { seededRandom } from '../../../kit/random.ts';
import { seededRuns } from '../../../kit/seeded-runs.ts';
import { type CircuitFixture, startCircuit } from './circuit-fixture.ts';

const tenantNames = (count: number) => Array.from({ length: count }, (_, index) => `tenant-${index}`);

/** Makes one call of each tenant in turn, as often as given. */
async function callInTurn(fixture: CircuitFixture, tenants: readonly string[], result: number, times = 1) {
  const results: string[] = [];
  for (let count = 0; count < times; count++)
    for (const tenant of tenants) results.push(await fixture.call(result, tenant));
  await fixture.time.settle();
  return results;
}

const statesOf = ({ circuits }: CircuitFixture) =>
  Object.fromEntries(circuits.view().tenants.map(({ tenant, state }) => [tenant, state]));

describe('circuits of several tenants', () => {
  for (const count of [2, 3, 10]) {
    test(`accept every payment of ${count - 1} tenants for a minute while the bank fails those of another tenant`, async (t) => {
      const fixture = startCircuit(t, 'write');
      const [poisoned = '', ...others] = tenantNames(count);
      const refused: string[] = [];
      for (let halfSeconds = 0; halfSeconds < 120; halfSeconds++) {
        await fixture.call(500, poisoned);
        if (halfSeconds % 3 === 0) refused.push(...(await callInTurn(fixture, others, 201)));
        await fixture.time.pass(500, 100);
      }
      assert.deepEqual(
        refused.filter((result) => result !== '201'),
        [],
      );
      const changed = new Set(fixture.changes.map(({ tenant }) => tenant));
      assert.deepEqual([...changed], [poisoned]);
      assert.ok(fixture.reached.length - refused.length < 15, 'the poisoned tenant is refused');
      assert.equal(fixture.circuits.view().state, 'closed');
    });

    test(`open for all ${count} tenants after the configured number of calls if the bank fails them all`, async (t) => {
      const fixture = startCircuit(t, 'write');
      const tenants = tenantNames(count);
      for (let calls = 0; calls < 10; calls++) {
        assert.equal(fixture.circuits.view().state, 'closed', `after ${calls} failures`);
        assert.equal(await fixture.call(500, tenants[calls % count]), '500');
        await fixture.time.settle();
      }
      const { state, reason } = fixture.circuits.view();
      assert.deepEqual([state, reason], ['open', `10 of 10 calls of ${count} tenants failed`]);
      assert.deepEqual(
        await callInTurn(fixture, tenants, 201),
        tenants.map(() => 'CIRCUIT_OPEN 10'),
      );
    });
  }

  test('refuse for a reason of the tenant alone while the bank works for another one', async (t) => {
    const fixture = startCircuit(t, 'write');
    const isOfTenant = () => {
      try {
        fixture.circuits.of('poisoned').admit();
      } catch (thrown) {
        return asGatewayError(thrown).isOfTenant;
      }
      return undefined;
    };
    await fixture.call(201, 'calm');
    await callInTurn(fixture, ['poisoned'], 500, 20);
    assert.equal(isOfTenant(), true);
    await callInTurn(fixture, ['calm'], 500, 20);
    assert.equal(isOfTenant(), false);
  });

  test('open for all after as many failures as earlier successes', async (t) => {
    const fixture = startCircuit(t, 'write');
    const tenants = tenantNames(10);
    await callInTurn(fixture, tenants, 201, 3);
    await callInTurn(fixture, tenants, 500, 3);
    assert.equal(fixture.circuits.view().state, 'open');
  });

  test('pause once if a call reaches the threshold of its tenant and of all tenants at the same time', async (t) => {
    const fixture = startCircuit(t, 'write');
    await callInTurn(fixture, ['first'], 201, 9);
    await callInTurn(fixture, ['second'], 500);
    await callInTurn(fixture, ['first'], 500, 9);
    assert.deepEqual(await callInTurn(fixture, ['first', 'second'], 201), [
      'CIRCUIT_OPEN 10',
      'CIRCUIT_OPEN 10',
    ]);
  });

  test('open for all if no connection can be made, also for tenants whose last calls succeeded', async (t) => {
    const fixture = startCircuit(t, 'write');
    const tenants = tenantNames(5);
    await callInTurn(fixture, tenants, 201, 2);
    for (let calls = 0; calls < 10; calls++) await fixture.call('UPSTREAM_UNREACHED', `tenant-${calls % 2}`);
    await fixture.time.settle();
    const everyone = [...tenants, 'without calls'];
    assert.deepEqual(
      await callInTurn(fixture, everyone, 201),
      everyone.map(() => 'CIRCUIT_OPEN 10'),
    );
    await fixture.time.pass(10_000, 100);
    assert.deepEqual(
      await callInTurn(fixture, everyone, 201),
      everyone.map(() => '201'),
    );
    assert.deepEqual(statesOf(fixture), {});
  });

  test('open also for a tenant whose first calls are in progress, if no connection can be made', async (t) => {
    const fixture = startCircuit(t, 'write');
    const first = fixture.begin('late');
    for (let calls = 0; calls < 10; calls++) await fixture.call('UPSTREAM_UNREACHED', 'one');
    await fixture.time.settle();
    assert.equal(statesOf(fixture).late, 'open');
    first.end(201);
    await first.result;
    assert.match(await fixture.call(201, 'late'), /^CIRCUIT_OPEN/);
  });

  test('admit one call at a time of a tenant whose first calls are in progress, if the bank fails for all others', async (t) => {
    const fixture = startCircuit(t, 'write');
    const first = fixture.begin('late');
    await callInTurn(fixture, ['one', 'two'], 500, 5);
    assert.deepEqual(statesOf(fixture), { one: 'open', two: 'open', late: 'probation' });
    first.end(201);
    await first.result;
    assert.equal(await fixture.call(201, 'late'), '201');
    assert.equal(statesOf(fixture).late, undefined);
  });

  test('send one probe for all tenants', async (t) => {
    const fixture = startCircuit(t, 'write');
    fixture.probeOutcome = 'failure';
    await callInTurn(fixture, tenantNames(10), 500);
    await fixture.time.pass(29_000, 100);
    assert.equal(fixture.reached.filter((kind) => kind === 'probe').length, 1);
    await fixture.time.pass(1_001, 100);
    assert.equal(fixture.reached.filter((kind) => kind === 'probe').length, 2);
  });

  test('send no probe shortly after one that failed, and none of the circuits counts it twice', async (t) => {
    const fixture = startCircuit(t, 'write');
    fixture.probeOutcome = 'failure';
    await callInTurn(fixture, ['early'], 500, 10);
    await fixture.time.pass(2_000, 100);
    assert.equal(await fixture.call(500, 'late'), '500', 'a trial');
    await fixture.time.pass(12_000, 100);
    assert.deepEqual(statesOf(fixture), { early: 'open', late: 'half-open' });
    fixture.probeOutcome = 'success';
    await fixture.time.pass(2_000, 100);
    assert.deepEqual(statesOf(fixture), { early: 'open', late: 'probation' });
  });
});

describe('tenant without calls in the window, while the circuit of another tenant is open', () => {
  test('gets a trial of its own, and is not refused after it succeeded', async (t) => {
    const fixture = startCircuit(t, 'write');
    await callInTurn(fixture, ['quiet'], 201);
    await fixture.time.pass(11_000, 100);
    await callInTurn(fixture, ['poisoned'], 500, 10);
    assert.equal(fixture.circuits.view().state, 'open');

    const trial = fixture.begin('quiet');
    assert.equal(await fixture.call(201, 'quiet'), 'CIRCUIT_OPEN 1', 'the trial is active');
    assert.equal(await fixture.call(201, 'third'), '201', 'another tenant has another trial');
    trial.end(201);
    assert.equal(await trial.result, '201');
    const parallel = [fixture.begin('quiet'), fixture.begin('quiet')];
    for (const { end } of parallel) end(201);
    assert.deepEqual(await Promise.all(parallel.map(({ result }) => result)), ['201', '201']);
    assert.equal(fixture.circuits.view().state, 'closed');
    assert.deepEqual(statesOf(fixture), { poisoned: 'open' });
  });

  test('is refused after its trial failed, and the pause of the other tenant stays as it was', async (t) => {
    const fixture = startCircuit(t, 'write');
    await callInTurn(fixture, ['first'], 500, 10);
    await fixture.time.pass(6_000, 100);
    assert.equal(await fixture.call(500, 'second'), '500');
    assert.equal(await fixture.call(201, 'second'), 'CIRCUIT_OPEN 10');
    assert.equal(await fixture.call(201, 'first'), 'CIRCUIT_OPEN 4');
  });

  test('is admitted freely if the bank works for a third tenant', async (t) => {
    const fixture = startCircuit(t, 'write');
    await callInTurn(fixture, ['poisoned', 'healthy'], 201);
    await callInTurn(fixture, ['poisoned'], 500, 10);
    const parallel = [fixture.begin('new'), fixture.begin('new')];
    for (const { end } of parallel) end(201);
    assert.deepEqual(await Promise.all(parallel.map(({ result }) => result)), ['201', '201']);
  });
});

describe('trial calls of several tenants', () => {
  test('are separate: one tenant neither takes the trial of another nor doubles its pause', async (t) => {
    const fixture = startCircuit(t, 'write');
    await callInTurn(fixture, ['poisoned', 'other'], 500, 5);
    await fixture.time.pass(10_100, 100);
    const [poisoned, other] = [fixture.begin('poisoned'), fixture.begin('other')];
    poisoned.end(500);
    other.end(201);
    assert.deepEqual(await Promise.all([poisoned.result, other.result]), ['500', '201']);
    assert.deepEqual(statesOf(fixture), { poisoned: 'open' });
    await callInTurn(fixture, ['other'], 500, 10);
    assert.equal(await fixture.call(201, 'other'), 'CIRCUIT_OPEN 10');
    assert.equal(await fixture.call(201, 'poisoned'), 'CIRCUIT_OPEN 20');
  });
});

test('a tenant whose calls succeed is never refused in a random sequence of calls of failing tenants', async (t) => {
  const { seed } = seededRuns(t, 1);
  const random = seededRandom(seed);
  const fixture = startCircuit(t, 'write');
  const failureRates = { 'healthy-1': 0, 'healthy-2': 0, flaky: 0.3, 'poisoned-1': 1, 'poisoned-2': 1 };
  const tenants = Object.entries(failureRates);
  for (let step = 0; step < 2_000; step++) {
    const [tenant, failureRate] = tenants[Math.floor(random() * tenants.length)] ?? ['', 0];
    const result = await fixture.call(random() < failureRate ? 500 : 201, tenant);
    if (failureRate === 0) assert.equal(result, '201', `${tenant} in step ${step}`);
    const passes = random();
    if (passes < 0.02) await fixture.time.pass(passes * 1_000_000, 1_000);
    else if (passes < 0.5) await fixture.time.pass(passes * 1_000, 100);
  }
  assert.ok(fixture.changes.length > 0);
});
