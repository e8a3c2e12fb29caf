import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTimeline, type Timeline } from '../../../src/telemetry/timeline.ts';
import { createFailingState } from '../../kit/failing-state.ts';

const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 0, 31, 12, 30);

/** Two instances with one store and one clock; each reaches the store until its state fails. */
function startTimelines() {
  const clock = { nowMs: startMs };
  const lost: string[] = [];
  const shared = createFailingState();
  const start = (instance: string) => {
    const state = createFailingState(shared);
    const log = (_level: string, message: string) => void lost.push(message);
    return {
      ...createTimeline({ journals: state.journals, instance, log, now: () => clock.nowMs }),
      state,
    };
  };
  return { clock, lost, one: start('one'), other: start('other') };
}

const textsOf = async (timeline: Timeline, fromMs = 0, toMs = startMs + 1_000 * hourMs) =>
  (await timeline.read(fromMs, toMs)).map(({ text }) => text);

describe('the timeline', () => {
  test('shows the events of all instances on each of them, newest first', async () => {
    const { clock, one, other } = startTimelines();
    one.record({ kind: 'start', text: 'first' });
    clock.nowMs += 1;
    other.record({
      kind: 'hold',
      text: 'second',
      who: 'olga',
      environment: 'sandbox',
      lane: 'write',
      details: { reason: 'a test' },
    });
    await Promise.all([one.flush(), other.flush()]);
    const entries = await one.read(startMs, startMs + 1);
    assert.deepEqual(entries, [
      {
        at: '2026-01-31T12:30:00.001Z',
        kind: 'hold',
        instance: 'other',
        who: 'olga',
        environment: 'sandbox',
        lane: 'write',
        text: 'second',
        details: { reason: 'a test' },
      },
      {
        ...{ at: '2026-01-31T12:30:00.000Z', kind: 'start', instance: 'one', text: 'first', details: {} },
        ...{ who: null, environment: null, lane: null },
      },
    ]);
    assert.deepEqual(await other.read(startMs, startMs + 1), entries);
  });

  test('shows an event once that several instances have noticed', async () => {
    const { clock, one, other } = startTimelines();
    one.record({ kind: 'lost', text: 'noticed by one', instance: 'third', id: 'lost:third' });
    await one.flush();
    clock.nowMs += hourMs; // in the next journal
    other.record({ kind: 'lost', text: 'noticed by other', instance: 'third', id: 'lost:third' });
    await other.flush();
    assert.deepEqual(await textsOf(one), ['noticed by one']);
    assert.deepEqual(await textsOf(other), ['noticed by one']);
  });

  test('contains only the entries of the period, and forgets none at the end of an hour', async () => {
    const { clock, one } = startTimelines();
    for (let hour = 0; hour < 30; hour++) {
      one.record({ kind: 'start', text: `hour ${hour}` });
      clock.nowMs += hourMs;
    }
    await one.flush();
    assert.deepEqual(await textsOf(one, startMs + 2 * hourMs, startMs + 4 * hourMs), [
      'hour 4',
      'hour 3',
      'hour 2',
    ]);
    assert.equal((await textsOf(one)).length, 30);
    assert.deepEqual(await textsOf(one, startMs - 9 * hourMs, startMs - 1), []);
  });

  test('keeps events while the state is unavailable, shows those of this instance, and stores them later', async () => {
    const { one, other } = startTimelines();
    one.record({ kind: 'start', text: 'before' });
    other.record({ kind: 'start', text: 'of the other' });
    await Promise.all([one.flush(), other.flush()]);
    one.state.fail();
    one.record({ kind: 'circuit', text: 'during' });
    await one.flush();
    assert.deepEqual((await textsOf(one)).toSorted(), ['before', 'during']);
    assert.equal((await textsOf(other)).includes('during'), false);
    one.state.recover();
    await one.flush();
    assert.deepEqual((await textsOf(other)).toSorted(), ['before', 'during', 'of the other']);
    assert.deepEqual((await textsOf(one)).toSorted(), ['before', 'during', 'of the other']);
  });

  test('shows an event once whose append was repeated, because the state did not answer the first time', async () => {
    const { one, other } = startTimelines();
    const { append } = one.state.journals;
    let attempts = 0;
    const journals = {
      ...one.state.journals,
      async append(key: string, texts: readonly string[], ttlMs: number) {
        await append(key, texts, ttlMs);
        if (attempts++ === 0) throw new Error('no answer');
      },
    };
    const timeline = createTimeline({ journals, instance: 'one', log: () => {}, now: () => startMs });
    timeline.record({ kind: 'start', text: 'once' });
    await timeline.flush();
    await timeline.flush();
    assert.equal(attempts, 2);
    assert.deepEqual(await textsOf(other), ['once']);
  });

  test('drops the oldest waiting events when there are too many, and logs that', async () => {
    const { lost, one } = startTimelines();
    one.state.fail();
    for (let count = 0; count < 505; count++)
      one.record({ kind: 'switch', text: `event ${count}`, who: 'olga' });
    assert.equal(lost.length, 5);
    one.state.recover();
    await one.flush();
    assert.equal((await textsOf(one)).length, 500);
  });

  test('limits the circuit changes of an hour, and never what operators do', async () => {
    const { clock, one } = startTimelines();
    for (let count = 0; count < 300; count++) one.record({ kind: 'circuit', text: `change ${count}` });
    for (let count = 0; count < 150; count++) one.record({ kind: 'hold', text: 'hold', who: 'olga' });
    await one.flush();
    const texts = await textsOf(one);
    assert.equal(texts.filter((text) => text.startsWith('change')).length, 99);
    assert.equal(texts.filter((text) => text.includes('only in the log')).length, 1);
    assert.equal(texts.filter((text) => text === 'hold').length, 150);
    clock.nowMs += hourMs;
    one.record({ kind: 'circuit', text: 'in the next hour' });
    await one.flush();
    assert.ok((await textsOf(one)).includes('in the next hour'));
  });

  test('ignores entries of a newer release and shortens long ones', async () => {
    const { one } = startTimelines();
    const key = `timeline:${Math.floor(startMs / hourMs)}`;
    await one.state.journals.append(key, ['', 'null', '{"kind":"moved"}'], hourMs);
    one.record({
      kind: 'reload',
      text: 'x'.repeat(5_000),
      who: 'olga',
      details: { long: 'x'.repeat(50_000) },
    });
    await one.flush();
    const [entry, ...others] = await one.read(0, startMs);
    assert.deepEqual(others, []);
    assert.deepEqual([entry?.text.length, entry?.details], [1_000, { omitted: 'too long; see the log' }]);
  });

  test('stores the last events when it is closed, and ignores later ones', async () => {
    const { one, other } = startTimelines();
    one.record({ kind: 'stop', text: 'last' });
    await one.close();
    one.record({ kind: 'circuit', text: 'too late' });
    await one.flush();
    assert.deepEqual(await textsOf(other), ['last']);
  });
});
