import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PreflightReport } from '../../../src/environments/preflight.ts';
import {
  createIsSwitchBack,
  createSwitchEnvironment,
  type SwitchRequest,
} from '../../../src/environments/switch-environment.ts';
import type { ContractComparison, ContractDifference } from '../../../src/request/contract-comparison.ts';

import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { createSwitchable } from '../../kit/switchable.ts';
import { errorOf } from './requests.ts';

const healthy: PreflightReport = { ok: true, steps: [{ step: 'answer', ok: true, detail: 'status 200' }] };
const refused: PreflightReport = { ok: false, steps: [{ step: 'tcp', ok: false, detail: 'ECONNREFUSED' }] };

const unforced = { force: false, acknowledgeDifferences: false };

/** @param report the result of every preflight check @param comparison of each switch that is compared, or why it fails */
function startSwitch(report = healthy, comparison?: ContractComparison | Error) {
  const state = createFailingState();
  const { log, lines } = captureLog();
  const { database, active, audit } = createSwitchable(state.pubsub, log);
  const checked: string[] = [];
  const preflight = (name: string) => {
    checked.push(name);
    return ['sandbox', 'staging', 'production'].includes(name) ? Promise.resolve(report) : undefined;
  };
  const switchEnvironment = createSwitchEnvironment({
    active,
    audit,
    environmentNames: () => ['sandbox', 'staging', 'production'],
    preflight,
    async compareContracts() {
      if (comparison instanceof Error) throw comparison;
      return comparison;
    },
    isSwitchBack: createIsSwitchBack(audit),
  });
  const switchTo = (environment: string, more: Partial<SwitchRequest> = {}) =>
    switchEnvironment({ who: 'olga', environment, reason: 'go-live', ...unforced, ...more });
  return { state, database, active, audit, lines, checked, switchTo };
}

/** The last audit record, without the fields of the hash chain. */
async function lastRecord({ audit }: ReturnType<typeof startSwitch>) {
  const { who, action, outcome, details } =
    (await audit.newest(1))[0] ?? assert.fail('there is no audit record');
  return { who, action, outcome, details };
}

describe('a switch of the active environment', () => {
  test('runs a preflight check and writes an audit record with its report', async () => {
    const setup = startSwitch();
    const outcome = { kind: 'switched', from: 'sandbox', version: 2, preflight: healthy };
    assert.deepEqual(await setup.switchTo('staging'), outcome);
    assert.equal(setup.active.known()?.environment, 'staging');
    assert.deepEqual(setup.checked, ['staging']);
    assert.deepEqual(await lastRecord(setup), {
      who: 'olga',
      action: 'switch environment',
      outcome: 'switched',
      details: { environment: 'staging', reason: 'go-live', force: false, ...outcome },
    });
  });

  test('to production is done if the name is confirmed', async () => {
    const setup = startSwitch();
    assert.equal((await setup.switchTo('production', { confirm: 'production' })).kind, 'switched');
    assert.equal(setup.active.known()?.environment, 'production');
  });

  test('is done by force if the preflight check fails, and recorded as forced', async () => {
    const setup = startSwitch(refused);
    assert.equal((await setup.switchTo('staging', { force: true })).kind, 'switched');
    const { outcome, details } = await lastRecord(setup);
    assert.equal(outcome, 'forced');
    assert.deepEqual(details.preflight, refused);
  });

  test('is not recorded as forced if the preflight check succeeds', async () => {
    const setup = startSwitch();
    await setup.switchTo('staging', { force: true });
    assert.equal((await lastRecord(setup)).outcome, 'switched');
  });
});

describe('a switch to an environment that would refuse requests', () => {
  const difference: ContractDifference = {
    operation: 'initiatePayment',
    path: 'body/creditorAgentName',
    rule: 'max-length',
    level: 'harmful',
    effect: 'refused',
    count: 3,
    clients: [{ client: 'shop', count: 3 }],
    lastMs: 0,
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    isInBoth: false,
    mustAcknowledge: true,
  };
  const comparison: ContractComparison = {
    from: 'sandbox',
    to: 'staging',
    requests: 10,
    sinceMs: 0,
    judgedSinceMs: 0,
    skipped: [],
    isComplete: true,
    differences: [difference],
  };

  test('is refused with the differences until they are acknowledged, and both are recorded', async () => {
    const setup = startSwitch(healthy, comparison);
    const refusal = await setup.switchTo('staging', { force: true });
    assert.ok(refusal.kind === 'refused');
    assert.deepEqual(refusal.contract, comparison);
    assert.match(refusal.why, /acknowledged/);
    const { operation, path, rule, effect, count } = difference;
    assert.deepEqual((await lastRecord(setup)).details.differences, [
      { operation, path, rule, effect, count },
    ]);

    assert.equal((await setup.switchTo('staging', { acknowledgeDifferences: true })).kind, 'switched');
    assert.equal((await lastRecord(setup)).details.acknowledgeDifferences, true);
    assert.equal((await setup.audit.verify()).broken, undefined);
  });

  test('is done without the comparison if the report cannot be read, only when differences are acknowledged', async () => {
    const setup = startSwitch(healthy, new Error('the report is too large'));
    await assert.rejects(setup.switchTo('staging', { force: true }));
    const outcome = await setup.switchTo('staging', { acknowledgeDifferences: true });
    assert.ok(outcome.kind === 'switched');
    assert.ok(outcome.notCompared);
    assert.equal((await lastRecord(setup)).details.notCompared, outcome.notCompared);
  });

  test('is done without a question if it is a switch back within an hour', async () => {
    const setup = startSwitch(healthy, comparison);
    await setup.switchTo('staging', { acknowledgeDifferences: true });
    assert.equal((await setup.switchTo('sandbox')).kind, 'switched');
    assert.equal((await setup.switchTo('staging')).kind, 'switched');
  });

  test('is done without a question if the other environment only ignores something', async () => {
    const ignored = { ...difference, level: 'notable', effect: 'ignored', mustAcknowledge: false };
    const setup = startSwitch(healthy, { ...comparison, differences: [ignored] });
    const outcome = await setup.switchTo('staging');
    assert.ok(outcome.kind === 'switched');
    assert.deepEqual(outcome.contract?.differences, [ignored]);
  });
});

describe('a refused switch of the active environment', () => {
  const requests = {
    'is recorded and changes nothing: production without confirmation': [
      'production',
      {},
      /must be confirmed/,
    ],
    'is recorded and changes nothing: production, confirmed by another name': [
      'production',
      { confirm: 'Production' },
      /must be confirmed/,
    ],
    'is recorded and changes nothing: production by force without confirmation': [
      'production',
      { force: true },
      /must be confirmed/,
    ],
    'is recorded and changes nothing: an unknown environment': [
      'nowhere',
      {},
      /^unknown environment; expected sandbox or staging or production$/,
    ],
    'is recorded and changes nothing: an unknown environment by force': [
      'nowhere',
      { force: true },
      /unknown environment/,
    ],
  } as const;
  for (const [title, [environment, more, why]] of Object.entries(requests)) {
    test(title, async () => {
      const setup = startSwitch();
      const outcome = await setup.switchTo(environment, more);
      assert.ok(outcome.kind === 'refused');
      assert.match(outcome.why, why);
      const record = await lastRecord(setup);
      assert.deepEqual(
        [record.who, record.outcome, record.details.environment, record.details.why],
        ['olga', 'refused', environment, outcome.why],
      );
      assert.equal((await setup.active.read()).environment, 'sandbox');
      assert.equal((await setup.active.read()).version, 1);
    });
  }

  test('contains the report of a failed preflight check', async () => {
    const setup = startSwitch(refused);
    assert.deepEqual(await setup.switchTo('staging'), {
      kind: 'refused',
      why: 'the pre-flight failed',
      preflight: refused,
    });
    const { outcome, details } = await lastRecord(setup);
    assert.equal(outcome, 'refused');
    assert.deepEqual(details.preflight, refused);
    assert.equal((await setup.active.read()).version, 1);
  });

  test('sends nothing to the bank if production is not confirmed', async () => {
    const setup = startSwitch();
    await setup.switchTo('production');
    assert.deepEqual(setup.checked, []);
  });
});

describe('a switch of the active environment during an outage', () => {
  test('fails while the database is unavailable, and its audit record is in the log stream', async () => {
    for (const statement of [/^SELECT/, /^UPDATE/]) {
      const setup = startSwitch();
      await setup.active.read();
      setup.database.fail('before', statement);
      assert.equal((await errorOf(() => setup.switchTo('staging'))).code, 'STATE_UNAVAILABLE');
      const [record, ...more] = setup.lines.filter(({ message }) => message === 'audit');
      assert.equal(more.length, 0);
      assert.deepEqual([record?.fields.who, record?.fields.outcome], ['olga', 'failed']);
      assert.partialDeepStrictEqual(record?.fields.details, { environment: 'staging', reason: 'go-live' });
    }
  });

  test('succeeds if only the audit record cannot be stored, and logs that the record may be only in the log', async () => {
    const setup = startSwitch();
    await setup.active.read();
    setup.database.fail('before', /INSERT INTO audit/);
    assert.equal((await setup.switchTo('staging')).kind, 'switched');
    assert.equal(setup.active.known()?.environment, 'staging');
    const logged = setup.lines.slice(-2).map(({ level, message }) => [level, message]);
    assert.deepEqual(logged, [
      ['warn', 'audit'],
      ['error', 'the database has not confirmed the audit record; it may be only in this log'],
    ]);
  });
});
