import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import {
  createGroupCommit,
  createPersistentClock,
  createSqliteState,
} from '../../../src/state/former/sqlite.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** A file, the clocks of the machine, and a function that opens the state as a new process would. */
function createMachine(t: TestContext) {
  const file = `${temporaryFolder(t)}/state`;
  const clock = { wallMs: 1_000_000, monotonicMs: 0 };
  return {
    file,
    clock,
    pass(ms: number) {
      clock.wallMs += ms;
      clock.monotonicMs += ms;
    },
    async open() {
      const state = createSqliteState(file, () => {}, {
        wall: () => clock.wallMs,
        monotonic: () => clock.monotonicMs,
      });
      t.after(() => state.close());
      await state.open();
      return state;
    },
  };
}

const unavailable = { code: 'STATE_UNAVAILABLE' };

describe('the SQLite state', () => {
  test('keeps values across a restart', async (t) => {
    const { open } = createMachine(t);
    const before = await open();
    await before.keyValues.write('no expiry', 'value');
    await before.keyValues.write('expiring', 'value', 60_000);
    await before.keyValues.writeIfAbsent('claimed', 'value');
    await before.keyValues.write('removed', 'value');
    await before.keyValues.remove('removed');
    await before.close();

    const { keyValues } = await open();
    const keys = ['no expiry', 'expiring', 'claimed', 'removed'];
    assert.deepEqual(await Promise.all(keys.map(keyValues.read)), ['value', 'value', 'value', undefined]);
    assert.equal(await keyValues.writeIfAbsent('claimed', 'again'), false);
  });

  test('replaces invalid UTF-8 that another program wrote, if it is compared as it is read', async (t) => {
    const { open, file } = createMachine(t);
    const before = await open();
    await before.keyValues.write('key', 'value');
    await before.close();
    const database = new DatabaseSync(file);
    database.prepare('UPDATE value SET text = ?').run(Buffer.from([0x61, 0xff]));
    database.close();

    const { keyValues } = await open();
    assert.equal(await keyValues.read('key'), 'a\uFFFD');
    assert.equal(await keyValues.replace('key', 'a', 'text'), false);
    assert.equal(await keyValues.replace('key', 'a\uFFFD', 'text'), true);
    assert.equal(await keyValues.read('key'), 'text');
  });

  test('expires values while the process does not run', async (t) => {
    const { open, pass, clock } = createMachine(t);
    const before = await open();
    await before.keyValues.write('short', 'value', 1_000);
    await before.keyValues.write('long', 'value', 86_400_000);
    await before.close();
    pass(1_000);
    clock.monotonicMs = 5; // the machine was restarted as well
    const { keyValues } = await open();
    assert.deepEqual(await Promise.all(['short', 'long'].map(keyValues.read)), [undefined, 'value']);
  });

  test('neither restores an expired value nor prolongs a TTL if the wall clock was set back', async (t) => {
    const { open, pass, clock } = createMachine(t);
    const before = await open();
    await before.keyValues.write('expired', 'value', 1_000);
    pass(120_000);
    await before.keyValues.write('live', 'value', 1_000); // this saves the time as well
    await before.close();
    clock.wallMs -= 86_400_000;
    const { keyValues } = await open();
    assert.equal(await keyValues.read('expired'), undefined);
    assert.equal(await keyValues.read('live'), 'value');
    pass(1_000);
    assert.equal(await keyValues.read('live'), undefined);
  });

  test('deletes expired values so that the file does not grow, and keeps live ones', async (t) => {
    const { open, pass, file } = createMachine(t);
    let state = await open();
    await state.keyValues.write('no expiry', 'value');
    await state.keyValues.write('long', 'value', 400 * 86_400_000);
    const sizes: number[] = [];
    for (let round = 0; round < 8; round++) {
      const keys = Array.from({ length: 1_000 }, (_, index) => `round ${round}, ${index}`);
      await Promise.all(keys.map((key) => state.keyValues.write(key, 'x'.repeat(500), 60_000)));
      await state.close();
      sizes.push(statSync(file).size);
      state = await open();
      pass(60_000);
    }
    assert.ok((sizes[7] ?? 0) <= 2.2 * (sizes[0] ?? 0), sizes.join());
    assert.equal(await state.keyValues.read('no expiry'), 'value');
    assert.equal(await state.keyValues.read('long'), 'value');
  });

  test('creates its files with access for its user only', async (t) => {
    const { open, file } = createMachine(t);
    const { keyValues } = await open();
    await keyValues.write('key', 'value');
    for (const path of [file, `${file}-wal`]) assert.equal(statSync(path).mode & 0o777, 0o600, path);
  });

  test('is unavailable before it is opened and after it is closed', async (t) => {
    const { open, file } = createMachine(t);
    const unopened = createSqliteState(file);
    await assert.rejects(unopened.keyValues.read('key'), unavailable);
    await assert.rejects(unopened.keyValues.write('key', 'value'), unavailable);
    await unopened.close();
    assert.equal(unopened.problem(), undefined);

    const state = await open();
    await state.close();
    await assert.rejects(state.keyValues.write('key', 'value'), unavailable);
  });

  test('commits pending changes when it is closed', async (t) => {
    const { open } = createMachine(t);
    const state = await open();
    const written = state.keyValues.write('key', 'value');
    await state.close();
    await written;
    assert.equal(await (await open()).keyValues.read('key'), 'value');
  });
});

describe('group commit', () => {
  /** A disk that counts transactions, and fails while it is full. */
  function createDisk() {
    const disk = { transactions: 0, isFull: false };
    const change = createGroupCommit((work) => {
      work();
      if (disk.isFull) throw new Error('full');
      disk.transactions += 1;
    });
    return { disk, change };
  }

  test('applies simultaneous changes in order in one transaction, and resolves each with its result', async () => {
    const { disk, change } = createDisk();
    let count = 0;
    const results = await Promise.all(Array.from({ length: 100 }, () => change(() => ++count)));
    assert.deepEqual(
      results,
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    assert.equal(disk.transactions, 1);
    assert.equal(await change(() => 'later'), 'later');
    assert.equal(disk.transactions, 2);
  });

  test('resolves a change only after its transaction', async () => {
    const { disk, change } = createDisk();
    assert.equal(await change(() => disk.transactions).then(() => disk.transactions), 1);
  });

  test('rejects all changes of a failed transaction, and continues with later ones', async () => {
    const { disk, change } = createDisk();
    disk.isFull = true;
    const outcomes = await Promise.allSettled([change(() => 1), change(() => 2)]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    disk.isFull = false;
    assert.equal(await change(() => 3), 3);
  });

  test('commits none of the changes if one of them throws', async () => {
    const { disk, change } = createDisk();
    const bad = change(() => {
      throw new Error('bad');
    });
    await assert.rejects(Promise.all([change(() => 1), bad]), /bad/);
    assert.equal(disk.transactions, 0);
  });
});

describe('the persistent clock', () => {
  test('starts at the wall clock, and ignores later changes of it', () => {
    let [wallMs, monotonicMs] = [5_000, 100];
    const now = createPersistentClock({ wall: () => wallMs, monotonic: () => monotonicMs }, 0);
    assert.equal(now(), 5_000);
    [wallMs, monotonicMs] = [1, 130];
    assert.equal(now(), 5_030);
    [wallMs, monotonicMs] = [9_000_000, 131];
    assert.equal(now(), 5_031);
  });

  test('starts at the last saved time if the wall clock was set back before that', () => {
    const now = createPersistentClock({ wall: () => 5_000, monotonic: () => 100 }, 7_000);
    assert.equal(now(), 7_000);
  });
});
