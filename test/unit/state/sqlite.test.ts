/** What a state in a file keeps across restarts, how long, and how large it gets. */

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { createGroupCommit, createPersistentClock, createSqliteState } from '../../../src/state/sqlite.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** A file, the machine's clocks, and runs of a process on them. */
function createMachine(t: TestContext) {
  const file = `${temporaryFolder(t)}/state`;
  const clock = { wallMs: 1_000_000, steadyMs: 0 };
  return {
    file,
    clock,
    pass(ms: number) {
      clock.wallMs += ms;
      clock.steadyMs += ms;
    },
    async started() {
      const state = createSqliteState(file, () => {}, {
        wall: () => clock.wallMs,
        steady: () => clock.steadyMs,
      });
      t.after(() => state.close());
      await state.open();
      return state;
    },
  };
}

const unavailable = { code: 'STATE_UNAVAILABLE' };

describe('a state in a file', () => {
  test('knows after a restart what it knew before', async (t) => {
    const { started } = createMachine(t);
    const before = await started();
    await before.keyValues.write('for ever', 'value');
    await before.keyValues.write('for a while', 'value', 60_000);
    await before.keyValues.writeIfAbsent('claimed', 'value');
    await before.keyValues.write('removed', 'value');
    await before.keyValues.remove('removed');
    await before.sets.add('set', 'member');
    await before.sets.add('set', 'removed');
    await before.sets.remove('set', 'removed');
    await before.close();

    const { keyValues, sets } = await started();
    const names = ['for ever', 'for a while', 'claimed', 'removed'];
    assert.deepEqual(await Promise.all(names.map(keyValues.read)), ['value', 'value', 'value', undefined]);
    assert.equal(await keyValues.writeIfAbsent('claimed', 'again'), false);
    assert.deepEqual(await sets.members('set'), ['member']);
  });

  test('lets what was made illegible meanwhile be replaced as it is read', async (t) => {
    const { started, file } = createMachine(t);
    const before = await started();
    await before.keyValues.write('key', 'value');
    await before.close();
    const database = new DatabaseSync(file);
    database.prepare('UPDATE value SET text = ?').run(Buffer.from([0x61, 0xff]));
    database.close();

    const { keyValues } = await started();
    assert.equal(await keyValues.read('key'), 'a\uFFFD');
    assert.equal(await keyValues.replace('key', 'a', 'text'), false);
    assert.equal(await keyValues.replace('key', 'a\uFFFD', 'text'), true);
    assert.equal(await keyValues.read('key'), 'text');
  });

  test('counts the time while it was closed', async (t) => {
    const { started, pass, clock } = createMachine(t);
    const before = await started();
    await before.keyValues.write('short', 'value', 1_000);
    await before.keyValues.write('long', 'value', 86_400_000);
    await before.close();
    pass(1_000);
    clock.steadyMs = 5; // the machine was started anew, too
    const { keyValues } = await started();
    assert.deepEqual(await Promise.all(['short', 'long'].map(keyValues.read)), [undefined, 'value']);
  });

  test('revives nothing when the clock was set back, and lets nothing live longer', async (t) => {
    const { started, pass, clock } = createMachine(t);
    const before = await started();
    await before.keyValues.write('over', 'value', 1_000);
    pass(120_000);
    await before.keyValues.write('alive', 'value', 1_000); // and the time is noted
    await before.close();
    clock.wallMs -= 86_400_000;
    const { keyValues } = await started();
    assert.equal(await keyValues.read('over'), undefined);
    assert.equal(await keyValues.read('alive'), 'value');
    pass(1_000);
    assert.equal(await keyValues.read('alive'), undefined);
  });

  test('is as large as what lives in it, and removes nothing that lives', async (t) => {
    const { started, pass, file } = createMachine(t);
    let state = await started();
    await state.keyValues.write('kept', 'value');
    await state.keyValues.write('kept for long', 'value', 400 * 86_400_000);
    await state.sets.add('set', 'member');
    const sizes: number[] = [];
    for (let round = 0; round < 8; round++) {
      const names = Array.from({ length: 1_000 }, (_, index) => `round ${round}, ${index}`);
      await Promise.all(names.map((name) => state.keyValues.write(name, 'x'.repeat(500), 60_000)));
      await state.close();
      sizes.push(statSync(file).size);
      state = await started();
      pass(60_000);
    }
    assert.ok((sizes[7] ?? 0) <= 2.2 * (sizes[0] ?? 0), sizes.join());
    assert.equal(await state.keyValues.read('kept'), 'value');
    assert.equal(await state.keyValues.read('kept for long'), 'value');
    assert.deepEqual(await state.sets.members('set'), ['member']);
  });

  test('is for its user alone, and so is what stands beside it', async (t) => {
    const { started, file } = createMachine(t);
    const { keyValues } = await started();
    await keyValues.write('name', 'value');
    for (const path of [file, `${file}-wal`]) assert.equal(statSync(path).mode & 0o777, 0o600, path);
  });

  test('answers nothing before it is open and after it is closed; a change that waits when it closes is made', async (t) => {
    const { started, file } = createMachine(t);
    const unopened = createSqliteState(file);
    await assert.rejects(unopened.keyValues.read('name'), unavailable);
    await assert.rejects(unopened.sets.add('set', 'member'), unavailable);
    await unopened.close();
    assert.equal(unopened.problem(), undefined);

    const state = await started();
    const written = state.keyValues.write('name', 'value');
    await state.close();
    await written;
    await assert.rejects(state.keyValues.write('name', 'other'), unavailable);
    assert.equal(await (await started()).keyValues.read('name'), 'value');
  });
});

// MERGED HEADER (rewrite or remove):
/* Changes that come at the same time are one transaction: all of them, or none. */

/** A disk that counts transactions, and fails while it is told to. */
function createDisk() {
  const disk = { transactions: 0, isFull: false };
  const change = createGroupCommit((work) => {
    work();
    if (disk.isFull) throw new Error('full');
    disk.transactions += 1;
  });
  return { disk, change };
}

describe('changes', () => {
  test('of one moment are made in their order, in one transaction; each hears its own answer', async () => {
    const { disk, change } = createDisk();
    let count = 0;
    const answers = await Promise.all(Array.from({ length: 100 }, () => change(() => ++count)));
    assert.deepEqual(
      answers,
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    assert.equal(disk.transactions, 1);
    assert.equal(await change(() => 'later'), 'later');
    assert.equal(disk.transactions, 2);
  });

  test('are not answered before they are on the disk', async () => {
    const { disk, change } = createDisk();
    assert.equal(await change(() => disk.transactions).then(() => disk.transactions), 1);
  });

  test('that went together fail together, and later ones are made', async () => {
    const { disk, change } = createDisk();
    disk.isFull = true;
    const settled = await Promise.allSettled([change(() => 1), change(() => 2)]);
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    disk.isFull = false;
    assert.equal(await change(() => 3), 3);
  });

  test('that came with one that throws are not made either', async () => {
    const { disk, change } = createDisk();
    const bad = change(() => {
      throw new Error('bad');
    });
    await assert.rejects(Promise.all([change(() => 1), bad]), /bad/);
    assert.equal(disk.transactions, 0);
  });
});

// MERGED HEADER (rewrite or remove):
/* The time of a state in a file, whatever becomes of the machine's clock. */

test('H11: it begins with the wall clock, and goes on steadily, whoever sets the clock meanwhile', () => {
  let [wallMs, steadyMs] = [5_000, 100];
  const now = createPersistentClock({ wall: () => wallMs, steady: () => steadyMs }, 0);
  assert.equal(now(), 5_000);
  [wallMs, steadyMs] = [1, 130];
  assert.equal(now(), 5_030);
  [wallMs, steadyMs] = [9_000_000, 131];
  assert.equal(now(), 5_031);
});

test('H11: it goes on from the last time that is known, if the clock was set back before the start', () => {
  const now = createPersistentClock({ wall: () => 5_000, steady: () => 100 }, 7_000);
  assert.equal(now(), 7_000);
});
