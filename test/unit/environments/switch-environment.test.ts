import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createActiveEnvironment } from '../../../src/environments/active-environment.ts';
import { createAuditLog } from '../../../src/environments/audit-log.ts';
import type { PreflightReport } from '../../../src/environments/preflight.ts';
import { createSwitchEnvironment, type SwitchRequest } from '../../../src/environments/switch-environment.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { errorOf } from './requests.ts';

const healthy: PreflightReport = { ok: true, steps: [{ step: 'answer', ok: true, detail: 'status 200' }] };
const refused: PreflightReport = { ok: false, steps: [{ step: 'tcp', ok: false, detail: 'ECONNREFUSED' }] };

/** A switch between `sandbox`, `staging` and `production`, each with this pre-flight. */
function startSwitch(report = healthy) {
  const state = createFailingState();
  const { log, lines } = captureLog();
  const active = createActiveEnvironment(state, 'sandbox', log);
  const audit = createAuditLog(state.keyValues, log);
  const tried: string[] = [];
  const preflight = (name: string) => {
    tried.push(name);
    return ['sandbox', 'staging', 'production'].includes(name) ? Promise.resolve(report) : undefined;
  };
  const use = createSwitchEnvironment({ active, audit, preflight });
  const order = (environment: string, more: Partial<SwitchRequest> = {}) =>
    use({ who: 'olga', environment, reason: 'go-live', force: false, ...more });
  return { state, active, audit, lines, tried, order };
}

/** The audit record of the last order, without what makes it a link of the chain. */
async function lastRecord({ audit }: ReturnType<typeof startSwitch>) {
  const { who, action, outcome, details } = (await audit.newest(1))[0] ?? assert.fail('nothing is on record');
  return { who, action, outcome, details };
}

describe('a switch', () => {
  test('is done after a pre-flight, and on record with who, from, to, why and the report', async () => {
    const one = startSwitch();
    const outcome = { kind: 'switched', from: 'sandbox', version: 2, preflight: healthy };
    assert.deepEqual(await one.order('staging'), outcome);
    assert.equal(one.active.known()?.environment, 'staging');
    assert.deepEqual(one.tried, ['staging']);
    assert.deepEqual(await lastRecord(one), {
      who: 'olga',
      action: 'switch environment',
      outcome: 'switched',
      details: { environment: 'staging', reason: 'go-live', force: false, ...outcome },
    });
  });

  test('to production is done if it is confirmed by its name', async () => {
    const one = startSwitch();
    assert.equal((await one.order('production', { confirm: 'production' })).kind, 'switched');
    assert.equal(one.active.known()?.environment, 'production');
  });

  test('to an environment whose pre-flight fails is done by force, and on record as forced', async () => {
    const one = startSwitch(refused);
    assert.equal((await one.order('staging', { force: true })).kind, 'switched');
    const { outcome, details } = await lastRecord(one);
    assert.equal(outcome, 'forced');
    assert.deepEqual(details.preflight, refused);
  });

  test('is not on record as forced if force was not needed', async () => {
    const one = startSwitch();
    await one.order('staging', { force: true });
    assert.equal((await lastRecord(one)).outcome, 'switched');
  });
});

describe('a switch is refused, on record, and changes nothing', () => {
  const orders = {
    'to production without confirmation': ['production', {}, /must be confirmed/],
    'to production, confirmed by another name': [
      'production',
      { confirm: 'Production' },
      /must be confirmed/,
    ],
    'to production without confirmation, even by force': ['production', { force: true }, /must be confirmed/],
    'to an environment that does not exist': ['nowhere', {}, /no environment of this name/],
    'to an environment that does not exist, even by force': ['nowhere', { force: true }, /no environment/],
  } as const;
  for (const [title, [environment, more, why]] of Object.entries(orders)) {
    test(title, async () => {
      const one = startSwitch();
      const outcome = await one.order(environment, more);
      assert.ok(outcome.kind === 'refused');
      assert.match(outcome.why, why);
      const record = await lastRecord(one);
      assert.deepEqual(
        [record.who, record.outcome, record.details.environment, record.details.why],
        ['olga', 'refused', environment, outcome.why],
      );
      assert.equal((await one.active.read()).environment, 'sandbox');
      assert.equal((await one.active.read()).version, 1);
    });
  }

  test('if the pre-flight fails, and shows its report', async () => {
    const one = startSwitch(refused);
    assert.deepEqual(await one.order('staging'), {
      kind: 'refused',
      why: 'the pre-flight failed',
      preflight: refused,
    });
    const { outcome, details } = await lastRecord(one);
    assert.equal(outcome, 'refused');
    assert.deepEqual(details.preflight, refused);
    assert.equal((await one.active.read()).version, 1);
  });

  test('before anything is sent to the bank, if production is not confirmed', async () => {
    const one = startSwitch();
    await one.order('production');
    assert.deepEqual(one.tried, []);
  });
});

describe('a switch, if the state fails,', () => {
  test('fails too, and the log stream has the record all the same: it is not known whether it was done', async () => {
    for (const operation of ['read', 'replace'] as const) {
      const one = startSwitch();
      await one.active.read();
      one.state.fail(operation);
      assert.equal((await errorOf(() => one.order('staging'))).code, 'STATE_UNAVAILABLE');
      const [record, ...more] = one.lines.filter(({ message }) => message === 'audit');
      assert.equal(more.length, 0);
      assert.deepEqual([record?.fields.who, record?.fields.outcome], ['olga', 'failed']);
      assert.match(String(record?.fields.details), /"environment":"staging","reason":"go-live"/);
    }
  });

  test('stays done if only the audit record cannot be kept: the log stream has it, and says that it stands there alone', async () => {
    const one = startSwitch();
    await one.active.read();
    one.state.fail('writeIfAbsent');
    assert.equal((await one.order('staging')).kind, 'switched');
    assert.equal(one.active.known()?.environment, 'staging');
    const told = one.lines.slice(-2).map(({ level, message }) => [level, message]);
    assert.deepEqual(told, [
      ['warn', 'audit'],
      ['error', 'the audit record could not be stored; it is only in this log'],
    ]);
  });
});
