import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAudit } from '../../../src/environments/audit.ts';
import type { AuditEvent } from '../../../src/flow/audit-event.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createLogLines } from '../../kit/log-lines.ts';
import { errorOf } from './requests.ts';

const event = (reason: string): AuditEvent => ({
  who: 'olga',
  action: 'switch environment',
  outcome: 'switched',
  details: { environment: 'production', reason, preflight: { ok: true, steps: [] } },
});

const quiet = createLogLines().log;

describe('the audit log', () => {
  test('gives each record the next number, the time, and the hash of the one before', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T12:00:00Z') });
    const audit = createAudit(createMemoryState().keyValues, quiet);
    const [first, second] = [await audit.append(event('one')), await audit.append(event('two'))];
    assert.deepEqual([first.number, second.number], [1, 2]);
    assert.equal(second.at, '2026-01-01T12:00:00.000Z');
    assert.equal(second.previous, first.hash);
    assert.match(first.previous, /^0{64}$/);
    assert.match(first.hash, /^[0-9a-f]{64}$/);
    assert.deepEqual(second.details, event('two').details);
    assert.deepEqual(await audit.verify(), { records: 2 });
  });

  test('shows the newest records first, as many as are asked for', async () => {
    const audit = createAudit(createMemoryState().keyValues, quiet);
    const records = [];
    for (const reason of ['one', 'two', 'three']) records.push(await audit.append(event(reason)));
    assert.deepEqual(await audit.newest(2), records.toReversed().slice(0, 2));
    assert.deepEqual(await audit.newest(100), records.toReversed());
  });

  test('is empty and whole before anything happened', async () => {
    const audit = createAudit(createMemoryState().keyValues, quiet);
    assert.deepEqual(await audit.newest(100), []);
    assert.deepEqual(await audit.verify(), { records: 0 });
  });

  test('is one chain, whichever instances write to it at the same moment', async () => {
    const { keyValues } = createMemoryState();
    const instances = [createAudit(keyValues, quiet), createAudit(keyValues, quiet)];
    const reasons = Array.from({ length: 20 }, (_, index) => `reason ${index}`);
    await Promise.all(reasons.map((reason, index) => instances[index % 2]?.append(event(reason))));

    for (const audit of instances) assert.deepEqual(await audit.verify(), { records: 20 });
    const written = (await createAudit(keyValues, quiet).newest(100)).map(({ details }) => details.reason);
    assert.deepEqual(new Set(written), new Set(reasons));
  });

  test('goes on behind a record whose writer died before it moved the head', async () => {
    const state = createFailingState();
    const audit = createAudit(state.keyValues, quiet);
    await audit.append(event('one'));
    state.fail('write');
    await audit.append(event('two'));
    state.heal();
    assert.equal((await audit.append(event('three'))).number, 3);
    assert.deepEqual(await audit.verify(), { records: 3 });
  });

  test('keeps every character as it was given', async () => {
    const audit = createAudit(createMemoryState().keyValues, quiet);
    const reason = 'ü 🏦 "quoted" \\ \n \u0000 \u2028 \ud800';
    await audit.append(event(reason));
    assert.equal((await audit.newest(1))[0]?.details.reason, reason);
    assert.deepEqual(await audit.verify(), { records: 1 });
  });

  test('stands in the log stream too, whatever becomes of the state', async () => {
    const { log, lines } = createLogLines();
    const state = createFailingState();
    const audit = createAudit(state.keyValues, log);
    for (const operation of ['read', 'writeIfAbsent'] as const) {
      state.fail(operation);
      assert.equal((await errorOf(() => audit.append(event(operation)))).code, 'STATE_UNAVAILABLE');
      const { message, fields } = lines.at(-1) ?? assert.fail('nothing was logged');
      assert.equal(message, 'audit');
      assert.deepEqual(
        [fields.who, fields.action, fields.outcome],
        ['olga', 'switch environment', 'switched'],
      );
      assert.deepEqual(JSON.parse(String(fields.details)), event(operation).details);
    }
  });
});
