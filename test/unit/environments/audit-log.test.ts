import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { type AuditRecord, createAuditLog } from '../../../src/environments/audit-log.ts';
import type { AuditEvent } from '../../../src/request/audit-event.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { errorOf } from './requests.ts';

const event = (reason: string): AuditEvent => ({
  who: 'olga',
  action: 'switch environment',
  outcome: 'switched',
  details: { environment: 'production', reason, preflight: { ok: true, steps: [] } },
});

const silentLog = captureLog().log;

describe('the audit log', () => {
  test('gives each record the next number, the time, and the hash of its predecessor', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T12:00:00Z') });
    const audit = createAuditLog(createMemoryState().keyValues, silentLog);
    const [first, second] = [await audit.append(event('one')), await audit.append(event('two'))];
    assert.deepEqual([first.number, second.number], [1, 2]);
    assert.equal(second.at, '2026-01-01T12:00:00.000Z');
    assert.equal(second.previous, first.hash);
    assert.match(first.previous, /^0{64}$/);
    assert.match(first.hash, /^[0-9a-f]{64}$/);
    assert.deepEqual(second.details, event('two').details);
    assert.deepEqual(await audit.verify(), { records: 2 });
  });

  test('returns the requested number of records, newest first', async () => {
    const audit = createAuditLog(createMemoryState().keyValues, silentLog);
    const records = [];
    for (const reason of ['one', 'two', 'three']) records.push(await audit.append(event(reason)));
    assert.deepEqual(await audit.newest(2), records.toReversed().slice(0, 2));
    assert.deepEqual(await audit.newest(100), records.toReversed());
  });

  test('is empty and valid at first', async () => {
    const audit = createAuditLog(createMemoryState().keyValues, silentLog);
    assert.deepEqual(await audit.newest(100), []);
    assert.deepEqual(await audit.verify(), { records: 0 });
  });

  test('is a single chain even if several instances append at the same time', async () => {
    const { keyValues } = createMemoryState();
    const instances = [createAuditLog(keyValues, silentLog), createAuditLog(keyValues, silentLog)];
    const reasons = Array.from({ length: 20 }, (_, index) => `reason ${index}`);
    await Promise.all(reasons.map((reason, index) => instances[index % 2]?.append(event(reason))));

    for (const audit of instances) assert.deepEqual(await audit.verify(), { records: 20 });
    const written = (await createAuditLog(keyValues, silentLog).newest(100)).map(
      ({ details }) => details.reason,
    );
    assert.deepEqual(new Set(written), new Set(reasons));
  });

  test('needs one write for each of many records that are appended together, and no search for the newest', async () => {
    const { keyValues } = createMemoryState();
    const counts = { reads: 0, writes: 0 };
    const counting = {
      ...keyValues,
      read(key: string) {
        counts.reads += 1;
        return keyValues.read(key);
      },
      writeIfAbsent(key: string, value: string) {
        counts.writes += 1;
        return keyValues.writeIfAbsent(key, value);
      },
    };
    const audit = createAuditLog(counting, silentLog);
    await audit.append(event('first'));
    counts.reads = counts.writes = 0;
    await Promise.all(Array.from({ length: 100 }, (_, index) => audit.append(event(`reason ${index}`))));
    assert.equal(counts.writes, 100);
    assert.ok(counts.reads < 10, `${counts.reads} reads`);
    assert.deepEqual(await audit.verify(), { records: 101 });
  });

  test('fails all records that wait when the state is unavailable, and continues afterwards', async () => {
    const { log, lines } = captureLog();
    const state = createFailingState();
    const audit = createAuditLog(state.keyValues, log);
    state.fail('writeIfAbsent');
    const results = await Promise.allSettled(
      ['one', 'two', 'three'].map((text) => audit.append(event(text))),
    );
    assert.ok(results.every(({ status }) => status === 'rejected'));
    assert.equal(lines.length, 3);
    state.recover();
    assert.equal((await audit.append(event('four'))).number, 1);
  });

  test('continues behind a record whose instance died before it updated the head', async () => {
    const state = createFailingState();
    const audit = createAuditLog(state.keyValues, silentLog);
    await audit.append(event('one'));
    state.fail('write');
    await audit.append(event('two'));
    state.recover();
    assert.equal((await audit.append(event('three'))).number, 3);
    assert.deepEqual(await audit.verify(), { records: 3 });
  });

  test('preserves every character of a reason', async () => {
    const audit = createAuditLog(createMemoryState().keyValues, silentLog);
    const reason = 'ü 🏦 "quoted" \\ \n \u0000 \u2028 \ud800';
    await audit.append(event(reason));
    assert.equal((await audit.newest(1))[0]?.details.reason, reason);
    assert.deepEqual(await audit.verify(), { records: 1 });
  });

  test('is also written to the log stream if the state is unavailable', async () => {
    const { log, lines } = captureLog();
    const state = createFailingState();
    const audit = createAuditLog(state.keyValues, log);
    for (const operation of ['read', 'writeIfAbsent'] as const) {
      state.fail(operation);
      assert.equal((await errorOf(() => audit.append(event(operation)))).code, 'STATE_UNAVAILABLE');
      const { message, fields } = lines.at(-1) ?? assert.fail('nothing was logged');
      assert.equal(message, 'audit');
      assert.deepEqual(
        [fields.who, fields.action, fields.outcome],
        ['olga', 'switch environment', 'switched'],
      );
      assert.deepEqual(fields.details, event(operation).details);
    }
  });
});

const chainLength = 5;

/** A chain of five records, and write access to the state. */
async function createChain() {
  const { keyValues } = createMemoryState();
  const audit = createAuditLog(keyValues, captureLog().log);
  for (let number = 1; number <= chainLength; number += 1) {
    const details = { environment: 'production', reason: `reason ${number}`, force: false };
    await audit.append({ who: 'olga', action: 'switch environment', outcome: 'switched', details });
  }
  const write = (number: number, value: unknown) => keyValues.write(`audit:${number}`, JSON.stringify(value));
  const recordAt = async (number: number): Promise<AuditRecord> =>
    JSON.parse((await keyValues.read(`audit:${number}`)) ?? 'null');
  const change = async (number: number, changes: Partial<AuditRecord>) =>
    write(number, { ...(await recordAt(number)), ...changes });
  return { keyValues, audit, write, recordAt, change };
}

const hashOf = ({ number, at, who, action, outcome, details, previous }: AuditRecord) =>
  createHash('sha256')
    .update(JSON.stringify([number, at, who, action, outcome, details, previous]))
    .digest('hex');

describe('the verification of the audit log', () => {
  const changes: readonly Partial<AuditRecord>[] = [
    { number: 4 },
    { at: '2020-01-01T00:00:00.000Z' },
    { who: 'Olga' },
    { action: 'switch environment ' },
    { outcome: 'refused' },
    { details: { environment: 'production', reason: 'reason 3', force: true } },
    { details: { environment: 'production', reason: 'reason 3' } },
    { previous: '0'.repeat(64) },
    { hash: '0'.repeat(64) },
  ];
  for (const one of changes) {
    test(`finds a changed record: ${JSON.stringify(one)}`, async () => {
      const { audit, change } = await createChain();
      await change(3, one);
      assert.deepEqual(await audit.verify(), { records: chainLength, broken: 'record 3 was altered' });
    });
  }

  test('finds a change in any record, the first and the last included', async () => {
    for (let number = 1; number <= chainLength; number += 1) {
      const { audit, change } = await createChain();
      await change(number, { who: 'somebody else' });
      assert.deepEqual(await audit.verify(), {
        records: chainLength,
        broken: `record ${number} was altered`,
      });
    }
  });

  test('finds a changed record whose own hash was recomputed', async () => {
    const { audit, recordAt, write } = await createChain();
    const changed = { ...(await recordAt(3)), who: 'somebody else' };
    await write(3, { ...changed, hash: hashOf(changed) });
    assert.deepEqual(await audit.verify(), {
      records: chainLength,
      broken: 'record 4 does not follow record 3',
    });
  });

  test('finds a removed record', async () => {
    const { audit, keyValues } = await createChain();
    await keyValues.remove('audit:3');
    assert.deepEqual(await audit.verify(), {
      records: chainLength,
      broken: 'record 3 is missing or unreadable',
    });
  });

  test('finds a removed record if the later ones were moved up', async () => {
    const { audit, keyValues, recordAt, write } = await createChain();
    await write(3, await recordAt(4));
    await write(4, await recordAt(5));
    await keyValues.remove('audit:5');
    await keyValues.write('audit:head', '4');
    assert.deepEqual(await audit.verify(), { records: 4, broken: 'record 3 was altered' });
  });

  test('finds an inserted record with a valid hash', async () => {
    const { audit, recordAt, write } = await createChain();
    for (let number = chainLength; number > 2; number -= 1) await write(number + 1, await recordAt(number));
    const [second, third] = [await recordAt(2), await recordAt(4)];
    const inserted = { ...third, number: 3, previous: second.hash, who: 'nobody' };
    await write(3, { ...inserted, hash: hashOf(inserted) });
    assert.deepEqual(await audit.verify(), { records: 6, broken: 'record 4 was altered' });
  });

  test('finds two records that were swapped', async () => {
    const { audit, recordAt, write } = await createChain();
    const [second, third] = [await recordAt(2), await recordAt(3)];
    await write(2, third);
    await write(3, second);
    assert.deepEqual(await audit.verify(), { records: chainLength, broken: 'record 2 was altered' });
  });

  test('finds values that are not records', async () => {
    for (const value of ['', 'null', '{}', '[]', 'no JSON']) {
      const { audit, keyValues } = await createChain();
      await keyValues.write('audit:2', value);
      assert.deepEqual(await audit.verify(), {
        records: chainLength,
        broken: 'record 2 is missing or unreadable',
      });
    }
  });

  test('finds a head beyond the last record', async () => {
    const { audit, keyValues } = await createChain();
    await keyValues.write('audit:head', '9');
    assert.deepEqual(await audit.verify(), { records: 9, broken: 'record 6 is missing or unreadable' });
  });

  test('includes records behind a head that was decreased, removed or corrupted', async () => {
    for (const value of ['3', '0', '-7', '1.5', 'no number', '']) {
      const { audit, keyValues, change } = await createChain();
      await keyValues.write('audit:head', value);
      assert.deepEqual(await audit.verify(), { records: chainLength }, `head ${value}`);
      await change(5, { who: 'somebody else' });
      assert.equal((await audit.verify()).broken, 'record 5 was altered', `head ${value}`);
      const next = await audit.append({ who: 'olga', action: 'a', outcome: 'done', details: {} });
      assert.equal(next.number, chainLength + 1, `head ${value}`);
    }
  });

  // The log stream reveals the two cases that the chain cannot reveal.
  test('does not find that the newest records were removed together with the head', async () => {
    const { audit, keyValues } = await createChain();
    await keyValues.remove('audit:5');
    await keyValues.remove('audit:4');
    await keyValues.write('audit:head', '3');
    assert.deepEqual(await audit.verify(), { records: 3 });
  });

  test('does not find a change if all later hashes were recomputed', async () => {
    const { audit, recordAt, write } = await createChain();
    let previous = (await recordAt(2)).hash;
    for (let number = 3; number <= chainLength; number += 1) {
      const forged = { ...(await recordAt(number)), who: 'somebody else', previous };
      previous = hashOf(forged);
      await write(number, { ...forged, hash: previous });
    }
    assert.deepEqual(await audit.verify(), { records: chainLength });
  });
});
